package netif_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/netif"
)

func TestSetting(t *testing.T) {
	pod := newSpace(t)
	pod.addLink(t, "eth0.1")
	const setting = "ipv4/conf/rp_filter"
	changed, err := pod.SetSetting("eth0.1", setting, "2")
	require.NoError(t, err)
	require.True(t, changed)
	value, err := pod.Setting("eth0.1", setting)
	require.NoError(t, err)
	require.Equal(t, "2", value)
	value, err = pod.nl.Sysctl("net/ipv4/conf/eth0.1/rp_filter")
	require.NoError(t, err)
	require.Equal(t, "2", value)
	changed, err = pod.SetSetting("eth0.1", setting, " 2\n")
	require.NoError(t, err)
	require.False(t, changed)
	other, err := pod.Setting("eth0.1x", setting)
	require.NoError(t, err)
	require.NotEqual(t, "2", other, "no other interface is touched")
	_, err = pod.Setting("eth0.1", "ipv4/neigh/gc_stale_time")
	require.NoError(t, err)

	_, err = pod.SetSetting("eth0.1", setting, "junk")
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = pod.SetSetting("absent", setting, "1")
	require.ErrorIs(t, err, netif.ErrNotFound)
	_, err = pod.Setting("eth0.1", "ipv4/conf/no_such_thing")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NotErrorIs(t, err, netif.ErrNotFound)
	_, err = pod.Setting("all", setting)
	require.ErrorContains(t, err, "is a reserved name")
	_, err = pod.SetSetting("eth0.1", "ipv4/../../kernel/panic", "1")
	require.ErrorContains(t, err, "is no setting of an interface")
}
