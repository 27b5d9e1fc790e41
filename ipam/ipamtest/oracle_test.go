package ipamtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/ipamtest"
)

// At the scale of "make soak" it is millions of steps.
func TestMemoryAgainstOracle(t *testing.T) {
	for seed := range uint64(testenv.Scale(t, 10)) {
		ipamtest.Oracle(t, ipam.NewMemory(ipam.MemoryOptions{}), ipamtest.OracleOptions{Seed: seed, Steps: 5000})
	}
}

func TestRestingMemoryAgainstOracle(t *testing.T) {
	for seed := range uint64(testenv.Scale(t, 10)) {
		synctest.Test(t, func(t *testing.T) {
			const rest = time.Minute
			ipamtest.Oracle(t, ipam.NewMemory(ipam.MemoryOptions{Rest: rest}), ipamtest.OracleOptions{Seed: seed, Steps: 5000, Quarantine: rest})
		})
	}
}
