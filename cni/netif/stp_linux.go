package netif

import "fmt"

// SpanningTree reports whether a spanning tree protocol runs on the bridge, the kernel's
// or a daemon's. It keeps a new port from forwarding for twice the forward delay, half a
// minute by default, which neither IFF_RUNNING nor IFF_LOWER_UP of the port shows.
func (n *Namespace) SpanningTree(bridge string) (bool, error) {
	link, err := n.find(bridge)
	if err != nil {
		return false, err
	}
	if link.Type() != "bridge" {
		return false, fmt.Errorf("%q is a %s: %w", bridge, link.Type(), ErrWrongKind)
	}
	return n.conn.SpanningTree(link)
}
