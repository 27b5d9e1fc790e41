package hostlocal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// tx is the directory while its lock is held.
type tx struct {
	store    *Store
	released bool // entries were removed: the directory must be synced
}

var _ ipam.Tx = (*tx)(nil)

func (t *tx) path(name string) string { return filepath.Join(t.store.dir, name) }

// Get implements [ipam.ReadTx]. A file that cannot be read is a taken address
// of nobody; a torn one is free.
func (t *tx) Get(addr netip.Addr) (ipam.Owner, bool, error) {
	r, err := readRecord(t.path(addr.String()))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ipam.Owner{}, false, nil
	case err != nil:
		return ipam.Owner{}, true, nil
	}
	return r.owner, !r.torn(), nil
}

// Owned implements [ipam.ReadTx].
func (t *tx) Owned(o ipam.Owner) ([]ipam.Reservation, error) {
	names, err := t.names()
	if err != nil {
		return nil, err
	}
	var owned []ipam.Reservation
	for _, name := range names {
		addr, ok := addrOf(name)
		if !ok {
			continue
		}
		r, err := readRecord(t.path(name))
		if err != nil {
			continue
		}
		if r.owner == o || r.owner == (ipam.Owner{ContainerID: o.ContainerID}) {
			owned = append(owned, ipam.Reservation{Address: addr, Owner: r.owner})
		}
	}
	slices.SortFunc(owned, func(a, b ipam.Reservation) int { return a.Address.Compare(b.Address) })
	return owned, nil
}

// All implements [ipam.ReadTx]. Torn records are among them, with a zero Owner,
// so that garbage collection clears them away; empty ones that a writer may be
// about to fill are not.
func (t *tx) All() iter.Seq2[ipam.Reservation, error] {
	return func(yield func(ipam.Reservation, error) bool) {
		names, err := t.names()
		if err != nil {
			yield(ipam.Reservation{}, err)
			return
		}
		for _, name := range names {
			addr, ok := addrOf(name)
			if !ok {
				continue
			}
			r, err := readRecord(t.path(name))
			if r.empty && r.young {
				continue
			}
			if !yield(ipam.Reservation{Address: addr, Owner: r.owner}, err) {
				return
			}
		}
	}
}

// Count implements [ipam.ReadTx].
func (t *tx) Count(first, last netip.Addr) (uint64, error) {
	names, err := t.names()
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, name := range names {
		addr, ok := addrOf(name)
		if !ok || addr.Less(first) || last.Less(addr) {
			continue
		}
		if _, taken, _ := t.Get(addr); taken {
			n++
		}
	}
	return n, nil
}

// NextFree implements [ipam.ReadTx].
func (t *tx) NextFree(first, last netip.Addr, _ time.Time) (netip.Addr, error) {
	for addr := first; addr.IsValid() && !last.Less(addr); addr = addr.Next() {
		if _, taken, err := t.Get(addr); err != nil || !taken {
			return addr, err
		}
	}
	return netip.Addr{}, nil
}

// Resting implements [ipam.ReadTx].
func (t *tx) Resting(netip.Addr, netip.Addr, time.Time) (uint64, time.Time, error) {
	return 0, time.Time{}, nil
}

// names returns the names in the directory; a directory that does not exist is
// empty.
func (t *tx) names() ([]string, error) {
	d, err := os.Open(t.store.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	defer func() { _ = d.Close() }() // opened for reading
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	return names, nil
}

// Last implements [ipam.ReadTx]. It is a hint: whatever is wrong with the file
// costs the round robin its place, and nothing else.
func (t *tx) Last(set int) (netip.Addr, error) {
	_, data, err := readFile(t.path(lastName(set)))
	if err != nil {
		return netip.Addr{}, nil
	}
	addr, ok := addrOf(string(bytes.TrimSpace(data)))
	if !ok {
		return netip.Addr{}, nil
	}
	return addr, nil
}
