package ipamtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/ipamtest"
)

func TestPoolIsAnAllocator(t *testing.T) {
	ipamtest.Allocator(t, func(t *testing.T, sets ...ipam.RangeSet) ipam.Allocator {
		p, err := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{}), ipam.PoolOptions{}, sets...)
		require.NoError(t, err)
		return p
	})
}

func TestFakeIsAnAllocator(t *testing.T) {
	ipamtest.Allocator(t, func(t *testing.T, sets ...ipam.RangeSet) ipam.Allocator {
		f, err := ipamtest.NewFake(ipam.PoolOptions{}, sets...)
		require.NoError(t, err)
		return f
	})
}
