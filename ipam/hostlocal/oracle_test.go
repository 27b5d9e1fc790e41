package hostlocal

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

// The directory answers random operations as the store in memory does, and each
// call opens it anew, as a plugin process would.
func TestStoreAgainstMemory(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	disk, onDisk := newPool(t, "10.1.0.0/28", "fd00::/125")
	inMemory := poolOver(t, ipam.NewMemory(ipam.MemoryOptions{}), "10.1.0.0/28", "fd00::/125")
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	for range 500 {
		o := owner(ids[rnd.IntN(len(ids))])
		switch n := rnd.IntN(20); {
		case n < 10:
			opts := randomOptions(rnd)
			want, wantErr := inMemory.Allocate(t.Context(), o, opts)
			got, err := onDisk.Allocate(t.Context(), o, opts)
			require.Equal(t, want, got)
			requireSameError(t, wantErr, err)
		case n < 17:
			require.NoError(t, inMemory.Release(t.Context(), o))
			require.NoError(t, onDisk.Release(t.Context(), o))
		case n < 18:
			valid := []ipam.Owner{o, owner("a"), owner("b"), owner("c"), owner("d")}
			require.NoError(t, inMemory.Retain(t.Context(), valid))
			require.NoError(t, onDisk.Retain(t.Context(), valid))
		case n < 19:
			requireSameError(t, inMemory.Status(t.Context()), onDisk.Status(t.Context()))
		}
		want, err := inMemory.Leases(t.Context(), o)
		require.NoError(t, err)
		got, err := onDisk.Leases(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.DirExists(t, disk.dir)
}

func randomOptions(rnd *rand.Rand) ipam.Options {
	if rnd.IntN(4) > 0 {
		return ipam.Options{}
	}
	return ipam.Options{Requested: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 0, byte(rnd.IntN(16))})}}
}

func requireSameError(t *testing.T, want, got error) {
	t.Helper()
	if want == nil {
		require.NoError(t, got)
		return
	}
	require.EqualError(t, got, want.Error())
}
