package ipam

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// A tree answers as a map of addresses does, and keeps its runs maximal.
func TestTreeAgainstMap(t *testing.T) {
	for seed := range uint64(testenv.Scale(t, 20)) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		addrs := edges()
		set := map[netip.Addr]bool{}
		var tr tree
		for range 600 {
			a := addrs[rnd.IntN(len(addrs))]
			if set[a] {
				tr.remove(a)
				delete(set, a)
			} else {
				tr.add(a)
				set[a] = true
			}
			first, last := addrs[rnd.IntN(len(addrs))], addrs[rnd.IntN(len(addrs))]
			require.Equal(t, countIn(set, first, last), tr.count(first, last), "seed %d: %s to %s", seed, first, last)
			require.Equal(t, gapIn(set, first), tr.gap(first), "seed %d: behind %s", seed, first)
			require.EqualValues(t, len(set), checkTree(t, tr.root))
			tr.remove(netip.MustParseAddr("10.7.0.1")) // never there
		}
	}
}

// edges are runs of addresses, the ends of the families among them.
func edges() (addrs []netip.Addr) {
	for _, first := range []string{"0.0.0.0", "10.1.0.0", "255.255.255.248", "::", "fd00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff8"} {
		for a, n := addr(first), 0; n < 8; a, n = a.Next(), n+1 {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

func countIn(set map[netip.Addr]bool, first, last netip.Addr) (n uint64) {
	for a := range set {
		if !a.Less(first) && !last.Less(a) {
			n++
		}
	}
	return n
}

func gapIn(set map[netip.Addr]bool, a netip.Addr) netip.Addr {
	for set[a] {
		a = a.Next()
	}
	return a
}

// checkTree checks the rules of the treap below r and returns how many addresses it
// has.
func checkTree(t *testing.T, r *run) (size uint64) {
	t.Helper()
	if r == nil {
		return 0
	}
	size = checkTree(t, r.left) + checkTree(t, r.right) + count(r.first, r.last)
	require.Equal(t, size, r.size)
	require.False(t, r.last.Less(r.first))
	if r.left != nil {
		require.True(t, r.left.last.Less(r.first))
		require.LessOrEqual(t, r.left.priority, r.priority)
	}
	if r.right != nil {
		require.True(t, r.last.Less(r.right.first))
		require.LessOrEqual(t, r.right.priority, r.priority)
	}
	return size
}

// The notes of releases answer as a map of times does.
func TestRestsAgainstMap(t *testing.T) {
	const keep = 50 * time.Second
	for seed := range uint64(testenv.Scale(t, 20)) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		addrs := edges()
		noted := map[netip.Addr]time.Time{}
		s := rests{keep: keep}
		now := time.Unix(1000, 0)
		for range 400 {
			now = now.Add(time.Duration(rnd.IntN(4)) * time.Second)
			a := addrs[rnd.IntN(len(addrs))]
			require.Equal(t, noted[a], s.drop(a))
			delete(noted, a)
			if rnd.IntN(3) > 0 {
				noted[a] = now
				for _, old := range s.put(a, now) {
					require.Greater(t, now.Sub(noted[old]), keep)
					delete(noted, old)
				}
			}
			first, last := addrs[rnd.IntN(len(addrs))], addrs[rnd.IntN(len(addrs))]
			since := now.Add(-time.Duration(rnd.IntN(60)) * time.Second)
			n, oldest := s.resting(first, last, since)
			wantN, wantOldest, wantRested := restsIn(noted, first, last, since)
			require.Equal(t, []any{wantN, wantOldest}, []any{n, oldest}, "seed %d", seed)
			require.Equal(t, wantRested, s.rested(first, last, since), "seed %d", seed)
		}
		for _, at := range noted {
			require.LessOrEqual(t, now.Sub(at), keep+4*time.Second*10, "old notes are dropped")
		}
	}
}

func restsIn(noted map[netip.Addr]time.Time, first, last netip.Addr, since time.Time) (n uint64, oldest time.Time, rested netip.Addr) {
	for a, at := range noted {
		switch {
		case a.Less(first) || last.Less(a):
		case at.Before(since):
			if !rested.IsValid() || a.Less(rested) {
				rested = a
			}
		default:
			n++
			if oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	return n, oldest, rested
}
