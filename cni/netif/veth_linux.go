package netif

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// CreateVeth makes a veth pair. The other end is created inside the peer namespace and
// is never seen outside of it. An interface that has one of the names is an error that
// matches [ErrExists] and says which one; then, and at any other error, no part of the
// pair is left. It refuses names that [CheckName] does.
func (n *Namespace) CreateVeth(v Veth, peer *Namespace) (end, peerEnd Link, err error) {
	for _, name := range []string{v.Name, v.Peer} {
		if err := CheckName(name); err != nil {
			return Link{}, Link{}, fmt.Errorf("create veth pair: name %q %w", name, err)
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = v.Name
	attrs.MTU = v.MTU
	pair := netlink.NewVeth(attrs)
	pair.PeerName = v.Peer
	pair.PeerMTU = uint32(v.MTU)
	pair.PeerNamespace = netlink.NsFd(peer.ns.Fd())
	if err := n.conn.AddLink(pair); err != nil {
		return Link{}, Link{}, n.explainVeth(v, peer, err)
	}
	end, peerEnd, err = n.finishVeth(v, peer)
	if err != nil {
		return Link{}, Link{}, errors.Join(err, n.DeleteLink(v.Name))
	}
	return end, peerEnd, nil
}

func (n *Namespace) finishVeth(v Veth, peer *Namespace) (end, peerEnd Link, err error) {
	link, err := n.find(v.Name)
	if err != nil {
		return Link{}, Link{}, err
	}
	if v.Alias != "" {
		if err := n.conn.SetAlias(link, v.Alias); err != nil {
			return Link{}, Link{}, err
		}
	}
	if end, err = n.Link(v.Name); err != nil {
		return Link{}, Link{}, err
	}
	peerEnd, err = peer.Link(v.Peer)
	return end, peerEnd, err
}

// explainVeth finds out which of the two names the kernel's EEXIST is about.
func (n *Namespace) explainVeth(v Veth, peer *Namespace, err error) error {
	if !errors.Is(err, nl.ErrExists) {
		return err
	}
	if _, e := peer.Link(v.Peer); e == nil {
		return fmt.Errorf("create veth pair: %q in the other namespace: %w", v.Peer, ErrExists)
	}
	return fmt.Errorf("create veth pair: %q: %w", v.Name, ErrExists)
}
