package hostlocal

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/ipamtest"
)

func TestStoreConforms(t *testing.T) {
	ipamtest.Store(t, func(t *testing.T, rest time.Duration) ipam.Store {
		return newStore(t, Options{Rest: rest})
	})
}

// Without an index everything but resting is the same.
func TestStoreConformsWithoutIndex(t *testing.T) {
	ipamtest.Store(t, func(t *testing.T, rest time.Duration) ipam.Store {
		s := newStore(t, Options{Rest: rest})
		if rest == 0 {
			s.boot = noBoot
		}
		return s
	})
}

func TestPoolConforms(t *testing.T) {
	ipamtest.Allocator(t, func(t *testing.T, sets ...ipam.RangeSet) ipam.Allocator {
		p, err := ipam.NewPool(newStore(t, Options{}), ipam.PoolOptions{}, sets...)
		require.NoError(t, err)
		return p
	})
}

// Each call opens the directory anew, as a plugin process would.
func TestStoreAgainstOracle(t *testing.T) {
	for seed := range uint64(testenv.Scale(t, 2)) {
		ipamtest.Oracle(t, newStore(t, Options{NoSync: true}), ipamtest.OracleOptions{Seed: seed, Steps: 1200})
	}
	s := newStore(t, Options{NoSync: true})
	s.boot = noBoot
	ipamtest.Oracle(t, s, ipamtest.OracleOptions{Steps: 500})
}

func TestRestingStoreAgainstOracle(t *testing.T) {
	for seed := range uint64(testenv.Scale(t, 2)) {
		s := newStore(t, Options{Rest: time.Hour, NoSync: true})
		synctest.Test(t, func(t *testing.T) {
			ipamtest.Oracle(t, s, ipamtest.OracleOptions{Seed: seed, Steps: 1000, Quarantine: time.Hour})
		})
	}
}

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := New(filepath.Join(fastDir(t), "networks"), "net", o)
	require.NoError(t, err)
	return s
}

var errNoBoot = errors.New("no boot ID")

// noBoot is boot where it is not known.
func noBoot() (string, time.Time, error) { return "", time.Time{}, errNoBoot }

// bootedAt returns a boot of one's own.
func bootedAt(id string, began time.Time) func() (string, time.Time, error) {
	return func() (string, time.Time, error) { return id, began, nil }
}
