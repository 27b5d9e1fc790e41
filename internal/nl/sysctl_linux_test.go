package nl_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/nl"
)

const forward = "net/ipv4/ip_forward"

func TestSysctlIsOfTheNamespace(t *testing.T) {
	c, other := open(t), open(t)
	changed, err := c.SetSysctl(forward, "1")
	require.NoError(t, err)
	assert.True(t, changed)
	value, err := c.Sysctl(forward)
	require.NoError(t, err)
	assert.Equal(t, "1", value)
	value, err = other.Sysctl(forward)
	require.NoError(t, err)
	assert.Equal(t, "0", value, "the other namespace is as it was")
}

func TestSetSysctlWritesOnlyWhatDiffers(t *testing.T) {
	c := open(t)
	for _, k := range []struct {
		key, value string
		changed    bool
	}{
		{forward, "1", true},
		{forward, "1", false},
		{forward, " 1\n", false},
		{"net/ipv4/ip_local_port_range", "2000 3000", true},
		{"net/ipv4/ip_local_port_range", "2000\t3000", false},
		{forward, "0", true},
	} {
		before := c.Writes()
		changed, err := c.SetSysctl(k.key, k.value)
		require.NoError(t, err)
		assert.Equal(t, k.changed, changed, "%s=%s", k.key, k.value)
		want := uint64(0)
		if k.changed {
			want = 1
		}
		assert.Equal(t, want, c.Writes()-before, "%s=%s", k.key, k.value)
	}
}

func TestSysctlErrors(t *testing.T) {
	c := open(t)
	_, err := c.Sysctl("net/ipv4/conf/none/forwarding")
	require.ErrorIs(t, err, nl.ErrNotFound)
	assert.ErrorContains(t, err, "net/ipv4/conf/none/forwarding")
	_, err = c.SetSysctl(forward, "many")
	require.ErrorIs(t, err, syscall.EINVAL)
	assert.ErrorContains(t, err, forward+"=many")
	for _, key := range []string{"", "kernel/hostname", "net/../kernel/hostname", "/net/ipv4/ip_forward", "net", "net//ipv4", "../net/x"} {
		_, err := c.Sysctl(key)
		require.ErrorContains(t, err, "not a network setting", key)
		_, err = c.SetSysctl(key, "1")
		require.ErrorContains(t, err, "not a network setting", key)
	}
	assert.Equal(t, uint64(1), c.Writes(), "only the refused value was sent")
}
