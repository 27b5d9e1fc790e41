package vxlan

import (
	"context"
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/reconcile"
)

// neighbors is the store of the neighbours on our device, all of which are ours.
type neighbors struct{ k *kernel }

func neighborStore(k *kernel) reconcile.Store[netip.Addr, neighbor] { return neighbors{k} }

// Observe implements [reconcile.Store].
func (s neighbors) Observe(context.Context) (map[netip.Addr]neighbor, error) {
	conn, err := s.k.connect()
	if err != nil {
		return nil, err
	}
	index, err := s.k.device(conn)
	if err != nil || index == 0 {
		return nil, err
	}
	all, err := conn.Neighbors(index, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, nl.ErrPartial) {
		return nil, err
	}
	seen := make(map[netip.Addr]neighbor, len(all))
	for _, n := range all {
		if addr := addrOf(n.IP); known(n) && !addr.IsMulticast() {
			seen[addr] = neighbor{MAC: macOf(n.HardwareAddr), Dynamic: n.State != netlink.NUD_PERMANENT}
		}
	}
	return seen, partial(err)
}

// known reports whether an entry says where a neighbour is. Others are the kernel's
// notes on a resolution that goes on or failed, or on addresses that need none.
func known(n netlink.Neigh) bool {
	const useful = netlink.NUD_PERMANENT | netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE
	return n.State&useful != 0
}

// Apply implements [reconcile.Store].
func (s neighbors) Apply(_ context.Context, addr netip.Addr, want neighbor, _ *neighbor) error {
	conn, index, err := s.k.onDevice()
	if err != nil {
		return err
	}
	return conn.SetNeighbor(&netlink.Neigh{LinkIndex: index, IP: addr.AsSlice(), HardwareAddr: want.MAC.HardwareAddr()})
}

// Delete implements [reconcile.Store].
func (s neighbors) Delete(_ context.Context, addr netip.Addr, _ neighbor) error {
	conn, index, err := s.k.onDevice()
	if errors.Is(err, nl.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return conn.DelNeighbor(&netlink.Neigh{LinkIndex: index, IP: addr.AsSlice()})
}
