package cnitest_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestPrefixesAreThoseOfThePlugin: what a plugin has in its example stands in the way of
// nothing that the kit makes, and what does stand in the way is told.
func TestPrefixesAreThoseOfThePlugin(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	examine := func(dst string) *cnitest.Report {
		return examine(t, handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
			if inv.Command != cni.CommandAdd || err != nil {
				return out, err
			}
			return out, onInterface(inv, func(c *nl.Conn, link netlink.Link) error {
				_, to, err := net.ParseCIDR(dst)
				if err != nil {
					return err
				}
				return c.AddRoute(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Gw: net.IPv4(10, 1, 0, 1), Flags: unix.RTNH_F_ONLINK})
			})
		}}, cnitest.Options{Run: "^check/changed-by-others$"})
	}
	for _, dst := range []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"} {
		assert.Equal(t, cnitest.Kept, examine(dst).Verdict(), dst)
	}

	r := examine("198.18.2.0/24")
	require.Equal(t, cnitest.FailedToRun, r.Verdict())
	assert.Contains(t, r.Outcomes[0].Reason, "the kit adds a route to 198.18.2.0/24 in place of a later plugin, and ADD has added one, too: use another prefix in the plugin's configuration")
}
