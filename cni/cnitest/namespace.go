package cnitest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
)

// Namespace is a handle on a network namespace. It is safe for concurrent use.
type Namespace struct {
	name string
	ns   *netns.NS
	file string // the bind mount, "" when anonymous
}

// NewNamespace makes an anonymous network namespace with its loopback up. It goes away
// when the handle is closed and the last process in it ends. It works without root
// inside a user namespace.
func NewNamespace() (*Namespace, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	return started(&Namespace{name: fmt.Sprintf("netns-%d", ns.Inode()), ns: ns})
}

// CreateNamespace makes a network namespace with its loopback up and mounts it at
// dir/name, as ip-netns(8) does in /run/netns. A name that is taken is an error that
// matches [fs.ErrExist]. It needs root.
func CreateNamespace(dir, name string) (*Namespace, error) {
	path := filepath.Join(dir, name)
	ns, err := netns.Create(path)
	if err != nil {
		return nil, err
	}
	return started(&Namespace{name: name, ns: ns, file: path})
}

// OpenNamespace opens a namespace that exists.
func OpenNamespace(path string) (*Namespace, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	return &Namespace{name: filepath.Base(path), ns: ns, file: path}, nil
}

// started brings the loopback up, or removes the namespace again.
func started(n *Namespace) (*Namespace, error) {
	err := n.withConn(func(c *nl.Conn) error {
		lo, err := c.Link("lo")
		if err != nil {
			return err
		}
		return c.SetUp(lo)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start network namespace %s: %w", n.name, err), n.Remove())
	}
	return n, nil
}

// FindNamespaces returns the paths of the namespaces mounted in dir whose name starts
// with prefix, sorted; a mount point that lost its namespace is found too. No dir, no
// namespaces.
func FindNamespaces(dir, prefix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find network namespaces: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths, nil
}

// RemoveNamespace unmounts the namespace at path and removes the mount point. What runs
// inside keeps running, and keeps the namespace; see [Namespace.Processes]. Nothing at
// path is no error.
func RemoveNamespace(path string) error { return netns.Remove(path) }

// Name is the last element of the path, or a made-up name for an anonymous namespace.
func (n *Namespace) Name() string { return n.name }

// Path is a path that any process on this machine, run by the same user, can open to
// reach the namespace, for as long as it exists: a CNI_NETNS.
func (n *Namespace) Path() string { return n.ns.Path() }

// Do runs fn on a thread inside the namespace. Sockets that fn opens and processes that
// it starts stay there; goroutines that it starts do not run there.
func (n *Namespace) Do(fn func() error) error { return n.ns.Do(fn) }

// Close gives up the handle. A mounted namespace stays.
func (n *Namespace) Close() error { return n.ns.Close() }

// Remove closes the handle and removes the mount, if there is one. Removing twice is
// no error.
func (n *Namespace) Remove() error {
	err := n.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if n.file != "" {
		err = errors.Join(err, netns.Remove(n.file))
	}
	return err
}

// withConn calls fn with a route-netlink connection inside the namespace.
func (n *Namespace) withConn(fn func(*nl.Conn) error) error {
	c, err := nl.OpenIn(n.ns)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}
