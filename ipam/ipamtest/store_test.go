package ipamtest_test

import (
	"testing"
	"time"

	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/ipamtest"
)

func TestMemoryIsAStore(t *testing.T) {
	ipamtest.Store(t, func(_ *testing.T, rest time.Duration) ipam.Store {
		return ipam.NewMemory(ipam.MemoryOptions{Rest: rest})
	})
}
