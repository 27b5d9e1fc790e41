package ipamtest_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/ipamtest"
)

func TestFakeFails(t *testing.T) {
	ctx := t.Context()
	web := ipam.Owner{ContainerID: "web", IfName: "eth0"}
	f, err := ipamtest.NewFake(ipam.PoolOptions{Quarantine: time.Hour}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/30")}})
	require.NoError(t, err)
	boom, bang := errors.New("boom"), errors.New("bang")
	f.Fail(ipamtest.Allocate, boom, nil)
	f.Fail(ipamtest.Allocate, bang)

	_, err = f.Allocate(ctx, web, ipam.Options{})
	require.ErrorIs(t, err, boom)
	assert.Empty(t, f.String(), "a failed call does nothing")
	leases, err := f.Allocate(ctx, web, ipam.Options{})
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.2/30 web/eth0", leases[0].String())
	_, err = f.Allocate(ctx, web, ipam.Options{})
	require.ErrorIs(t, err, bang)
	assert.Equal(t, "10.1.0.2 web/eth0\n", f.String())

	for op, call := range map[ipamtest.Op]func() error{
		ipamtest.Undo:    func() error { return f.Undo(ctx, leases) },
		ipamtest.Release: func() error { return f.Release(ctx, web) },
		ipamtest.Leases:  func() error { _, err := f.Leases(ctx, web); return err },
		ipamtest.Retain:  func() error { return f.Retain(ctx, nil) },
		ipamtest.Status:  func() error { return f.Status(ctx) },
		ipamtest.Usage:   func() error { _, err := f.Usage(ctx); return err },
	} {
		f.Fail(op, boom)
		require.ErrorIs(t, call(), boom, op)
		assert.Equal(t, "10.1.0.2 web/eth0\n", f.String(), op)
	}
	require.ErrorIs(t, f.Status(ctx), ipam.ErrExhausted)
	require.NoError(t, f.Release(ctx, web))
	require.ErrorIs(t, f.Status(ctx), ipam.ErrExhausted, "the quarantine is in force")
	assert.Len(t, f.Calls(), 3+6+3)
	assert.Equal(t, "release web/eth0", f.Calls()[10].String())
}

func TestNewFakeRefuses(t *testing.T) {
	_, err := ipamtest.NewFake(ipam.PoolOptions{}, ipam.RangeSet{})
	require.ErrorContains(t, err, "range set is empty")
}
