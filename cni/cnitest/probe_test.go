package cnitest_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

func TestPing(t *testing.T) {
	a, b := newPair(t, 1500)
	bothFamilies(t, func(t *testing.T, to netip.Addr) {
		took, err := a.Ping(t.Context(), cnitest.Ping{To: to})
		require.NoError(t, err)
		require.Positive(t, took)
		require.Less(t, took, 3*time.Second)
	})
	bothFamilies(t, func(t *testing.T, to netip.Addr) {
		t.Run("too big", func(t *testing.T) {
			_, err := a.Ping(t.Context(), cnitest.Ping{To: to, Size: 1501, DontFragment: true})
			require.ErrorIs(t, err, cnitest.ErrTooBig)
			_, err = a.Ping(t.Context(), cnitest.Ping{To: to, Size: 1500, DontFragment: true})
			require.NoError(t, err)
			_, err = a.Ping(t.Context(), cnitest.Ping{To: to, Size: 4000})
			require.NoError(t, err, "fragments are allowed")
		})
	})
	t.Run("size/smaller than its headers", func(t *testing.T) {
		_, err := a.Ping(t.Context(), cnitest.Ping{To: second, Size: 27})
		require.ErrorContains(t, err, "at least 28 bytes")
	})
	t.Run("cancelled", func(t *testing.T) {
		run(t, b, "ip", "link", "set", "eth0", "down")
		defer run(t, b, "ip", "link", "set", "eth0", "up")
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := a.Ping(ctx, cnitest.Ping{To: second, Timeout: time.Minute})
		require.ErrorIs(t, err, cause)
	})
	t.Run("no reply", func(t *testing.T) {
		run(t, b, "ip", "link", "set", "eth0", "down")
		for _, to := range []netip.Addr{second, second6} {
			_, err := a.Ping(t.Context(), cnitest.Ping{To: to, Timeout: 50 * time.Millisecond})
			require.ErrorIs(t, err, cnitest.ErrNoReply)
		}
	})
}

func TestLargestPacket(t *testing.T) {
	t.Parallel()
	a, b := newPair(t, 1400)
	for name, guess := range map[string]int{"right guess": 1400, "too low": 1000, "too high": 9000, "none": 0} {
		t.Run(name, func(t *testing.T) {
			bothFamilies(t, func(t *testing.T, to netip.Addr) {
				size, err := a.LargestPacket(t.Context(), to, guess)
				require.NoError(t, err)
				require.Equal(t, 1400, size)
			})
		})
	}
	t.Run("a smaller interface at the other end", func(t *testing.T) {
		// A veth drops what is larger than its own MTU and a VLAN tag, without a word.
		run(t, b, "ip", "link", "set", "eth0", "mtu", "1300")
		size, err := a.LargestPacket(t.Context(), second, 1400)
		require.NoError(t, err)
		require.Equal(t, 1304, size)
	})
	t.Run("unreachable", func(t *testing.T) {
		run(t, b, "ip", "link", "set", "eth0", "down")
		_, err := a.LargestPacket(t.Context(), second, 1400)
		require.ErrorIs(t, err, cnitest.ErrNoReply)
	})
}

func TestCounters(t *testing.T) {
	a, _ := newPair(t, 1400)
	fragments := func() [2]uint64 {
		counters, err := a.Counters()
		require.NoError(t, err)
		require.Contains(t, counters, "IpFragCreates")
		require.Contains(t, counters, "Ip6FragCreates")
		return [2]uint64{counters["IpFragCreates"], counters["Ip6FragCreates"]}
	}
	require.Equal(t, [2]uint64{}, fragments())
	for _, to := range []netip.Addr{second, second6} {
		_, err := a.Ping(t.Context(), cnitest.Ping{To: to, Size: 1400})
		require.NoError(t, err)
	}
	require.Equal(t, [2]uint64{}, fragments(), "packets of the MTU")
	_, err := a.Ping(t.Context(), cnitest.Ping{To: second, Size: 1401})
	require.NoError(t, err)
	require.Equal(t, [2]uint64{2, 0}, fragments())
	_, err = a.Ping(t.Context(), cnitest.Ping{To: second6, Size: 1401})
	require.NoError(t, err)
	require.Equal(t, [2]uint64{2, 2}, fragments())
}
