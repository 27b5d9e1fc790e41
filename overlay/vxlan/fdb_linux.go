package vxlan

import (
	"context"
	"errors"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

// forwarding entries of our device are ours, whoever made them: the kernel keeps no
// mark on them. A dump can miss entries while others write; setting an entry that is
// there changes nothing, so a miss costs one request, and the next look is right.
type entries struct{ k *kernel }

func fdbStore(k *kernel) reconcile.Store[fdbKey, fdbEntry] { return entries{k} }

// Observe implements [reconcile.Store].
func (s entries) Observe(context.Context) (map[fdbKey]fdbEntry, error) {
	conn, err := s.k.connect()
	if err != nil {
		return nil, err
	}
	index, err := s.k.device(conn)
	if err != nil || index == 0 {
		return nil, err
	}
	all, err := conn.FDB(index)
	if err != nil && !errors.Is(err, nl.ErrPartial) {
		return nil, err
	}
	seen := make(map[fdbKey]fdbEntry, len(all))
	for _, n := range all {
		if n.Flags&netlink.NTF_SELF == 0 {
			continue // of a bridge, which the device should not be in
		}
		key := fdbKey{MAC: macOf(n.HardwareAddr)}
		entry := fdbEntry{Dst: addrOf(n.IP), VNI: n.VNI, Dynamic: n.State&(netlink.NUD_PERMANENT|netlink.NUD_NOARP) == 0}
		if several(key.MAC) {
			key.Group = entry.Dst
		}
		seen[key] = entry
	}
	return seen, partial(err)
}

// several reports whether the kernel keeps several destinations for a MAC address.
func several(mac overlay.MAC) bool { return mac == overlay.MAC{} || mac[0]&1 != 0 }

// Apply implements [reconcile.Store].
func (s entries) Apply(_ context.Context, key fdbKey, want fdbEntry, _ *fdbEntry) error {
	conn, index, err := s.k.onDevice()
	if err != nil {
		return err
	}
	return conn.SetFDB(&netlink.Neigh{LinkIndex: index, IP: want.Dst.AsSlice(), HardwareAddr: key.MAC.HardwareAddr()})
}

// Delete implements [reconcile.Store].
func (s entries) Delete(_ context.Context, key fdbKey, have fdbEntry) error {
	conn, index, err := s.k.onDevice()
	if errors.Is(err, nl.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return conn.DelFDB(&netlink.Neigh{
		LinkIndex: index, IP: have.Dst.AsSlice(), HardwareAddr: key.MAC.HardwareAddr(), VNI: have.VNI,
	})
}
