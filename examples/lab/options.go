package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// Where the lab keeps its things. The directory of the namespaces is that of ip-netns(8),
// so that "ip netns exec" finds them.
const (
	runDir       = "/run/cnikit-lab"
	namespaceDir = "/run/netns"
)

// Limits of the address plan, see plan.go.
const (
	maxNodes = 200
	maxPods  = 100
)

// options are the flags.
type options struct {
	name      string
	nodeCount int
	podCount  int
	bin       string
	keep      bool
	down      bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("cnikit-lab", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.name, "name", "lab", "`name` of the lab, 1 to 16 lower-case letters and digits; labs of different names can run side by side")
	f.IntVar(&o.nodeCount, "nodes", 3, fmt.Sprintf("`number` of nodes, 2 to %d", maxNodes))
	f.IntVar(&o.podCount, "pods", 2, fmt.Sprintf("`number` of pods on each node, 1 to %d", maxPods))
	f.StringVar(&o.bin, "bin", "", "`directory` with the executables (default: that of this program)")
	f.BoolVar(&o.keep, "keep", false, "leave the cluster up and say how to look around and how to take it down")
	f.BoolVar(&o.down, "down", false, "take down what -keep, or a lab that was killed, left; ends everything that runs in its namespaces")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("argument %q: not a flag; see -help", f.Arg(0))
	}
	return o, o.complete()
}

// complete checks the flags and fills in what was left out.
func (o *options) complete() error {
	switch {
	case !regexp.MustCompile(`^[a-z0-9]{1,16}$`).MatchString(o.name):
		return fmt.Errorf("-name %q: use 1 to 16 lower-case letters and digits", o.name)
	case o.nodeCount < 2 || o.nodeCount > maxNodes:
		return fmt.Errorf("-nodes %d: use 2 to %d", o.nodeCount, maxNodes)
	case o.podCount < 1 || o.podCount > maxPods:
		return fmt.Errorf("-pods %d: use 1 to %d", o.podCount, maxPods)
	case o.keep && o.down:
		return errors.New("-keep and -down: use one of them")
	}
	if o.bin == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the directory of this program: %w; use -bin", err)
		}
		o.bin = filepath.Dir(self)
	}
	var err error
	o.bin, err = filepath.Abs(o.bin)
	return err
}

// requirements returns nil when the lab can run, or what is missing, in one line.
func (o options) requirements() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("needs Linux, this is %s", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, to make network namespaces and mount them")
	}
	if o.down {
		return nil
	}
	for _, tool := range [][2]string{
		{"ip", "iproute2"}, {"bridge", "iproute2"}, {"unshare", "util-linux"}, {"mount", "mount"}, {"sh", "dash"}, {"rm", "coreutils"},
	} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			return fmt.Errorf("needs the program %q: install it (Debian: apt-get install %s)", tool[0], tool[1])
		}
	}
	for _, program := range []string{agentProgram, "cnikit-bridge", "cnikit-ipam", cnitoolProgram} {
		if _, err := exec.LookPath(filepath.Join(o.bin, program)); err != nil {
			return fmt.Errorf("needs the program %s in %s: build it with \"make build\", or use -bin", program, o.bin)
		}
	}
	if err := cnitest.Supports("veth", "bridge", "vxlan"); err != nil {
		return fmt.Errorf("needs what this kernel does not give: %w", err)
	}
	return nil
}

// dir is the directory of this lab's run.
func (o options) dir() string { return filepath.Join(runDir, o.name) }

// namespace is the name of a namespace of this lab. The lab's name has no dash, so no
// lab's prefix is the beginning of another's.
func (o options) namespace(what string) string { return "cnikit-lab-" + o.name + "-" + what }
