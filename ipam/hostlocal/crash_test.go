package hostlocal

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

// crash is an operation during which the process dies.
type crash struct {
	options Options
	subnet6 string // besides 10.1.0.0/29; empty: none
	before  func(t *testing.T, s *Store, p *ipam.Pool)
	call    func(ctx context.Context, s *Store, p *ipam.Pool) error
	done    func(leases map[netip.Addr]ipam.Owner) bool // after success
	own     []string                                    // containers whose leases the operation may take or give back
	bare    bool                                        // the file system has no links: a crash leaves an empty file
}

func crashes() map[string]crash {
	add := func(ctx context.Context, _ *Store, p *ipam.Pool) error {
		_, err := p.Allocate(ctx, owner("new"), ipam.Options{})
		return err
	}
	del := func(ctx context.Context, _ *Store, p *ipam.Pool) error { return p.Release(ctx, owner("one")) }
	added := func(leases map[netip.Addr]ipam.Owner) bool { return holds(leases, "new") }
	gone := func(leases map[netip.Addr]ipam.Owner) bool { return !holds(leases, "one") }
	two := func(t *testing.T, _ *Store, p *ipam.Pool) { allocate(t, p, "one"); allocate(t, p, "two") }
	strange := func(t *testing.T, s *Store, p *ipam.Pool) {
		two(t, s, p)
		put(t, s, "10.1.0.5", "foreign\r\neth0")
	}
	return map[string]crash{
		"first add":  {call: add, done: added, own: []string{"new"}},
		"add":        {subnet6: "fd00::/125", before: two, call: add, done: added, own: []string{"new"}},
		"del":        {subnet6: "fd00::/125", before: two, call: del, done: gone, own: []string{"one"}},
		"resting":    {options: Options{Rest: time.Hour}, before: two, call: del, done: gone, own: []string{"one"}},
		"resync/add": {before: strange, call: add, done: added, own: []string{"new"}},
		"resync/del": {before: strange, call: del, done: gone, own: []string{"one"}},
		"resync/del of an unknown owner": {before: strange, call: func(ctx context.Context, _ *Store, p *ipam.Pool) error {
			return p.Release(ctx, owner("unknown"))
		}, done: func(map[netip.Addr]ipam.Owner) bool { return true }},
		"gc": {
			subnet6: "fd00::/125",
			before: func(t *testing.T, s *Store, p *ipam.Pool) {
				two(t, s, p)
				allocate(t, p, "three")
				put(t, s, "10.1.0.6", "\x01")
			},
			call: func(ctx context.Context, _ *Store, p *ipam.Pool) error {
				return p.Retain(ctx, []ipam.Owner{owner("two")})
			},
			done: func(leases map[netip.Addr]ipam.Owner) bool {
				return !holds(leases, "one") && !holds(leases, "three") && !holds(leases, "")
			},
			own: []string{"one", "three", ""},
		},
		"add over a torn file": {
			before: func(t *testing.T, s *Store, p *ipam.Pool) {
				two(t, s, p)
				put(t, s, "10.1.0.4", "")
			},
			call: add, done: added, own: []string{"new"},
		},
		"add that makes the index grow": {
			before: func(t *testing.T, s *Store, p *ipam.Pool) {
				two(t, s, p)
				fillIndex(t, s)
			},
			call: add, done: added, own: []string{"new"},
		},
		"add without links": {before: two, call: add, done: added, own: []string{"new"}, bare: true},
	}
}

func holds(leases map[netip.Addr]ipam.Owner, container string) bool {
	for _, o := range leases {
		if o.ContainerID == container {
			return true
		}
	}
	return false
}

// fillIndex reserves addresses outside the range until the next one makes the index grow.
func fillIndex(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.Update(t.Context(), func(open ipam.Tx) error {
		x, err := open.(*tx).index()
		require.NoError(t, err)
		addr := netip.MustParseAddr("10.2.0.0")
		for pages := x.LeasePgs; !x.crowded(); addr = addr.Next() {
			ok, err := open.Reserve(addr, owner("filler"))
			require.NoError(t, err)
			require.True(t, ok)
			x, err = open.(*tx).index()
			require.NoError(t, err)
			require.Equal(t, pages, x.LeasePgs)
		}
		return nil
	}))
}

// The process dies before each of its system calls, or in the middle of a write, and the
// directory is opened again: in the same boot; after a loss of power, with an index of
// which half was never written. No address is given twice, and none is lost but what the
// operation was about, which its DEL gives back.
func TestCrash(t *testing.T) {
	for name, c := range crashes() {
		t.Run(name, func(t *testing.T) {
			deaths := 0
			for _, how := range []death{{}, {half: true}, {power: true}} {
				if c.bare && how.half {
					continue // no signal cuts a short write in two
				}
				for how.cut = 1; c.run(t, how); how.cut++ {
					deaths++
				}
			}
			require.Greater(t, deaths, 8)
		})
	}
}

// death is when the process dies.
type death struct {
	cut   int  // before this change
	half  bool // which is done by half if it is a write
	power bool // and the machine loses power
}

// run returns false when the process outlived the operation.
func (c crash) run(t *testing.T, how death) (died bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the process died so: %+v", how)
		}
	}()
	c.options.NoSync = true
	s, p := c.open(t, fastDir(t))
	require.NoError(t, s.makeDir())
	if c.before != nil {
		c.before(t, s, p)
	}
	before := leasesOf(t, s)

	dying := *s
	system := newProbe()
	system.cut, system.half, system.linkless = how.cut, how.half, c.bare
	dying.sys, dying.noSync = system, false
	_, dyingPool := c.over(t, &dying)
	err := c.call(t.Context(), &dying, dyingPool)
	if !system.dead {
		require.NoError(t, err)
	}
	if how.power {
		s.boot = bootedAt("another", time.Now().Add(-time.Second))
		loseHalf(s.indexPath())
	}
	if c.bare {
		age(t, s)
	}
	c.check(t, s, p, before)
	return system.dead
}

func (c crash) open(t *testing.T, dir string) (*Store, *ipam.Pool) {
	t.Helper()
	s, err := New(filepath.Join(dir, "networks"), "net", c.options)
	require.NoError(t, err)
	s.sys = newProbe() // does not sync
	return c.over(t, s)
}

func (c crash) over(t *testing.T, s *Store) (*Store, *ipam.Pool) {
	t.Helper()
	subnets := []string{"10.1.0.0/29"}
	if c.subnet6 != "" {
		subnets = append(subnets, c.subnet6)
	}
	return s, poolOver(t, s, subnets...)
}

// check is what holds after the death.
func (c crash) check(t *testing.T, s *Store, p *ipam.Pool, before map[netip.Addr]ipam.Owner) {
	t.Helper()
	own := map[string]bool{}
	for _, id := range c.own {
		own[id] = true
	}
	requireTrue(t, s)
	after := leasesOf(t, s)
	for addr, o := range before {
		if !own[o.ContainerID] {
			require.Equal(t, o, after[addr], "the lease of %s is as it was", addr)
		}
	}
	for addr, o := range after {
		was, held := before[addr]
		require.True(t, held && was == o || own[o.ContainerID], "%s is of %s, which nobody asked for", addr, o)
	}
	for _, id := range c.own {
		if id != "" {
			require.NoError(t, p.Release(t.Context(), owner(id)))
		}
	}
	requireTrue(t, s)
	for addr, o := range leasesOf(t, s) {
		require.False(t, own[o.ContainerID] && o.ContainerID != "", "%s is lost", addr)
	}
	requireUnused(t, s, p)
	requireTrue(t, s)
}

// requireUnused allocates what is left of the range, and finds it to be all that nobody
// has.
func requireUnused(t *testing.T, s *Store, p *ipam.Pool) {
	t.Helper()
	taken := leasesOf(t, s)
	for n := 0; ; n++ {
		leases, err := p.Allocate(t.Context(), owner(fmt.Sprint("last", n)), ipam.Options{})
		if err != nil {
			require.ErrorIs(t, err, ipam.ErrExhausted)
			break
		}
		for _, l := range leases {
			_, twice := taken[l.Address.Addr()]
			require.False(t, twice, "%s was given twice", l)
			taken[l.Address.Addr()] = l.Owner
		}
	}
	for a := netip.MustParseAddr("10.1.0.2"); a.Less(netip.MustParseAddr("10.1.0.7")); a = a.Next() {
		require.Contains(t, taken, a, "the address is lost")
	}
}

// leasesOf returns what the files say.
func leasesOf(t *testing.T, s *Store) map[netip.Addr]ipam.Owner {
	t.Helper()
	x := *s
	x.boot = noBoot // the index has no part in this
	all := map[netip.Addr]ipam.Owner{}
	names, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	for _, e := range names {
		addr, ok := addrOf(e.Name())
		if !ok {
			continue
		}
		r, err := x.begin(false).read(e.Name())
		require.NoError(t, err)
		if !r.torn() {
			all[addr] = r.owner
		}
	}
	return all
}

// requireTrue finds the index, if it is valid, to say what the files say.
func requireTrue(t *testing.T, s *Store) {
	t.Helper()
	tx := s.begin(false)
	defer tx.end()
	if !tx.open() {
		return
	}
	fresh := s.begin(false)
	want, err := fresh.scan()
	require.NoError(t, err)
	fresh.end()
	require.Equal(t, contentOf(t, want), contentOf(t, tx.x))
}

// contentOf returns what an index knows of leases, in any order.
func contentOf(t *testing.T, x *index) map[string]int {
	t.Helper()
	content := map[string]int{}
	require.NoError(t, x.entries.each(false, func(slot []byte) {
		if e := decodeEntry(slot); e.kind != kindRest {
			content[fmt.Sprint("lease ", e.addr.addr(), e.key)]++
		}
	}))
	require.NoError(t, x.chunks.table.each(false, func(chunk []byte) {
		content[fmt.Sprintf("chunk %x", chunk)]++
	}))
	return content
}

// loseHalf is what a loss of power may leave of a file that was not synced.
func loseHalf(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	clear(data[len(data)/2:])
	_ = os.WriteFile(path, data, 0o600)
}

// age lets a minute pass for empty files.
func age(t *testing.T, s *Store) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	for name, content := range snapshot(t, s.dir) {
		if _, ok := addrOf(name); ok && content == "" {
			require.NoError(t, os.Chtimes(filepath.Join(s.dir, name), old, old))
		}
	}
}

// fastDir returns a directory in memory, where there is one.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "hostlocal")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// put makes a file as somebody else does, a minute ago.
func put(t *testing.T, s *Store, name, content string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	old := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(path, old, old))
}
