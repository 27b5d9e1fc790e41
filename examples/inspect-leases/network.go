package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/hostlocal"
	"github.com/cnikit/cnikit/ipam/plugin"
)

// network is what a configuration says of addresses, and where they are kept.
type network struct {
	name  string
	dir   string
	store *hostlocal.Store
	pool  *ipam.Pool
}

// types are the IPAM plugins that are known to keep their leases where it is looked for
// them.
func types() []string { return []string{"cnikit-ipam", "host-local"} }

// open finds the plugin that has addresses given out. Others than the known ones keep
// their leases elsewhere, as a rule: what is in the directory would be another network's.
func open(path string, anyType bool) (*network, error) {
	list, err := chain.Load(path)
	if err != nil {
		return nil, err
	}
	for _, p := range list.Plugins {
		data, err := p.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var c plugin.Config
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("read plugin %s of %s: %w", p.Type, path, err)
		}
		switch {
		case c.IPAM.Type == "":
		case anyType || slices.Contains(types(), c.IPAM.Type):
			return openConfig(list.Name, c)
		default:
			return nil, fmt.Errorf("%s: ipam.type %q keeps no leases in a directory of host-local; known are %s; -any-type insists that it does",
				path, c.IPAM.Type, strings.Join(types(), ", "))
		}
	}
	return nil, fmt.Errorf("%s: no plugin has an ipam.type; name the configuration of a network with addresses", path)
}

func openConfig(name string, c plugin.Config) (*network, error) {
	sets, err := c.RangeSets()
	if err != nil {
		return nil, err
	}
	opts, err := c.PoolOptions()
	if err != nil {
		return nil, err
	}
	store, err := c.Store(name)
	if err != nil {
		return nil, err
	}
	pool, err := ipam.NewPool(store, opts, sets...)
	if err != nil {
		return nil, err
	}
	n := &network{name, filepath.Join(cmp.Or(c.IPAM.DataDir, hostlocal.DefaultDataDir), name), store, pool}
	if _, err := os.Stat(n.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: nothing was ever attached, or name or dataDir differ", n.dir)
	}
	return n, nil
}

// inspect looks at the leases. Those that nobody live holds are orphans, if they are
// from before.
func (n *network) inspect(ctx context.Context, live attached, before time.Time) (*survey, error) {
	s := &survey{network: n.name, dir: n.dir}
	var err error
	if s.usage, err = n.pool.Usage(ctx); err != nil {
		return nil, err
	}
	if s.problems, err = n.store.Damaged(ctx); err != nil {
		return nil, err
	}
	stale, err := n.stale(ctx)
	if err != nil {
		return nil, err
	}
	outside := map[string]bool{}
	for _, l := range s.usage.Outside {
		outside[l.Address.Addr().String()] = true
	}
	err = n.store.View(ctx, func(tx ipam.ReadTx) error {
		for r, err := range tx.All() {
			if err != nil || r.Owner == (ipam.Owner{}) {
				continue // among the problems
			}
			lost := !live.holds(r.Owner)
			old := lost && n.olderThan(before, r)
			s.leases = append(s.leases, lease{
				Reservation: r, stale: stale[r], outside: outside[r.Address.String()], orphan: old, young: lost && !old,
			})
		}
		return nil
	})
	slices.SortFunc(s.leases, func(a, b lease) int { return a.Address.Compare(b.Address) })
	return s, err
}

// stale returns the leases from before the machine was started, where that is known.
func (n *network) stale(ctx context.Context) (map[ipam.Reservation]bool, error) {
	list, err := n.store.Stale(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	stale := map[ipam.Reservation]bool{}
	for _, r := range list {
		stale[r] = true
	}
	return stale, nil
}

// olderThan reports whether a lease was made before a time, which is that of its file.
func (n *network) olderThan(before time.Time, r ipam.Reservation) bool {
	info, err := os.Lstat(filepath.Join(n.dir, r.Address.String()))
	return err == nil && info.ModTime().Before(before)
}

// release frees leases, each if it still has the owner that was seen.
func (n *network) release(ctx context.Context, leases []lease) error {
	return n.store.Update(ctx, func(tx ipam.Tx) error {
		var errs []error
		for _, l := range leases {
			errs = append(errs, tx.Release(l.Address, l.Owner))
		}
		return errors.Join(errs...)
	})
}
