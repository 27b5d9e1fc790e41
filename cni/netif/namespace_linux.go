package netif

import (
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
)

// Namespace is a handle on one network namespace whose interfaces are read and
// changed. It is safe for concurrent use. [Namespace.Close] releases it.
type Namespace struct {
	ns   *netns.NS
	conn *nl.Conn
}

// Current returns a handle on the network namespace of the calling thread; in a plugin
// that is the node's.
func Current() (*Namespace, error) {
	ns, err := netns.Current()
	if err != nil {
		return nil, err
	}
	return openIn(ns)
}

// Open returns a handle on the network namespace at path, as CNI_NETNS has it. The
// error matches [io/fs.ErrNotExist] when nothing is there.
func Open(path string) (*Namespace, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	return openIn(ns)
}

func openIn(ns *netns.NS) (*Namespace, error) {
	conn, err := nl.OpenIn(ns)
	if err != nil {
		_ = ns.Close()
		return nil, err
	}
	return &Namespace{ns: ns, conn: conn}, nil
}

// Close releases the handle; the namespace and what was set up in it stay. No other
// method may be running or follow.
func (n *Namespace) Close() {
	n.conn.Close()
	_ = n.ns.Close()
}
