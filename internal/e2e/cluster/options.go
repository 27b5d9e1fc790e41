package cluster

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
)

// The lines of containerd that a node can run.
const (
	Containerd24 = "2.4" // calls STATUS; CNI specification up to 1.1.0
	Containerd16 = "1.6" // never calls STATUS; CNI specification up to 1.0.0
)

// PauseImage is on every node: a program that waits for a signal.
const PauseImage = "localhost/pause:1"

const (
	// defaultDir is on a disk that survives and is large enough for images; /tmp may be
	// a tmpfs, on which overlayfs has no upper directories.
	defaultDir = "/var/tmp/cnikit-e2e"
	// prefix starts the name of everything that is visible outside the cluster.
	prefix = "cnikit-e2e-"
	// maxNodes is what the underlay's addresses allow.
	maxNodes = 80
)

// Binaries says where the executables of the components are. Names are relative paths
// like "kube/kubelet", "containerd-2.4/ctr", "cni/bridge", "trace" and "pause". It must
// be safe for concurrent use; *binaries.Set is one.
type Binaries interface {
	Path(name string) string
}

// Options say what cluster to start.
type Options struct {
	Binaries Binaries      // required
	Nodes    []NodeOptions // at least one
	// ClusterCIDRs are the ranges that Nodes get their Pod CIDRs from, at most one of each
	// family; a Node gets a /24 and a /64. Default: 10.244.0.0/16, fd00:10:244::/56.
	ClusterCIDRs []string
	// Images are tar files with images that every node gets, besides [PauseImage].
	Images []string
	// Plugins are names of CNI plugins whose calls are recorded, besides those of the SDK
	// and the reference ones. A plugin of another name works but is not seen.
	Plugins []string
	// Log gets a line per step; nil discards them.
	Log io.Writer
	// Dir holds a directory per running cluster. It must be absolute and on a file system
	// that overlayfs can write to. Default: /var/tmp/cnikit-e2e.
	Dir string
}

// NodeOptions describe one node.
type NodeOptions struct {
	Name       string // a DNS label
	Containerd string // Containerd24 (the default) or Containerd16
}

var nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// complete fills in defaults and checks.
func (o Options) complete() (Options, error) {
	if o.Binaries == nil {
		return o, errors.New("options of cluster: Binaries must say where the components are, see package binaries")
	}
	if len(o.Nodes) == 0 || len(o.Nodes) > maxNodes {
		return o, fmt.Errorf("options of cluster: Nodes has %d entries, want 1 to %d", len(o.Nodes), maxNodes)
	}
	if len(o.ClusterCIDRs) == 0 {
		o.ClusterCIDRs = []string{"10.244.0.0/16", "fd00:10:244::/56"}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Dir == "" {
		o.Dir = defaultDir
	}
	if !filepath.IsAbs(o.Dir) {
		return o, fmt.Errorf("options of cluster: Dir %q is not absolute", o.Dir)
	}
	nodes := make([]NodeOptions, 0, len(o.Nodes))
	seen := map[string]bool{}
	for _, n := range o.Nodes {
		if n.Containerd == "" {
			n.Containerd = Containerd24
		}
		if err := n.check(); err != nil {
			return o, err
		}
		if seen[n.Name] {
			return o, fmt.Errorf("options of cluster: two nodes are called %q", n.Name)
		}
		seen[n.Name] = true
		nodes = append(nodes, n)
	}
	o.Nodes = nodes
	return o, nil
}

func (n NodeOptions) check() error {
	if !nodeName.MatchString(n.Name) {
		return fmt.Errorf("options of cluster: node name %q is no DNS label of at most 40 characters", n.Name)
	}
	if n.Containerd != Containerd24 && n.Containerd != Containerd16 {
		return fmt.Errorf("options of cluster: node %s wants containerd %q, there are %q and %q",
			n.Name, n.Containerd, Containerd24, Containerd16)
	}
	return nil
}
