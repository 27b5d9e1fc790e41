package vxlan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay/vxlan"
)

// What a filter drops is shown with the agent of examples/bridge-vxlan.
func TestStrictFilters(t *testing.T) {
	f := newFabric(t, 1)
	n := f.nodes[0]
	set := func(link, value string) {
		t.Helper()
		_, err := n.conn.SetSysctl("net/ipv4/conf/"+link+"/rp_filter", value)
		require.NoError(t, err)
	}
	set("all", "1")
	backend, err := vxlan.New(vxlan.Config{})
	require.NoError(t, err)
	require.Empty(t, backend.StrictFilters(), "no topology yet")

	f.start(vxlan.Config{Device: "tunnel"})
	for _, c := range []struct {
		all, underlay, tunnel string
		want                  []string
	}{
		{"0", "0", "0", []string{}},
		{"0", "1", "0", []string{"eth0"}},
		{"0", "0", "1", []string{"tunnel"}},
		{"1", "0", "0", []string{"eth0", "tunnel"}},
		{"1", "2", "1", []string{"tunnel"}},
		{"2", "1", "1", []string{}},
	} {
		set("all", c.all)
		set("eth0", c.underlay)
		set("tunnel", c.tunnel)
		require.Equal(t, c.want, n.backend.StrictFilters(), "%+v", c)
	}

	set("all", "1")
	n.peer.PodCIDRs = n.peer.PodCIDRs[1:]
	f.join(n)
	require.Empty(t, n.backend.StrictFilters(), "pods of IPv6 alone")
}
