package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
)

// recreated is node a after it was deleted and created again: another identity, other
// Pod CIDRs.
func recreated() overlay.Node {
	n := member("a", "192.0.2.1", "10.244.7.0/24", "fd00:7::/64")
	n.UID, n.Created = "uid-a-again", n.Created.Add(time.Hour)
	return n
}

// inherits is a node that got the Pod CIDRs which node a had before.
func inherits() overlay.Node {
	n := member("d", "192.0.2.4", "10.244.1.0/24", "fd00:1::/64")
	n.Created = n.Created.Add(2 * time.Hour)
	return n
}

// requireNoTrace wants nothing on the host that leads into Pod CIDRs by itself.
func (h *host) requireNoTrace(t *testing.T, cidrs ...string) {
	t.Helper()
	for _, line := range h.state(t) {
		for _, cidr := range cidrs {
			prefix := netip.MustParsePrefix(cidr)
			for word := range strings.FieldsSeq(line) {
				addr, _, _ := strings.Cut(word, "/")
				if a, err := netip.ParseAddr(addr); err == nil {
					assert.False(t, prefix.Contains(a), "%s is in %s: %s", word, cidr, line)
				}
			}
		}
	}
}

// A Node that is created again has other Pod CIDRs: new pods work, those that are still
// there can be deleted, and what is meant for the node that has the old Pod CIDRs by now
// goes to that one.
func TestNodeIsRecreatedWithOtherPodCIDRs(t *testing.T) {
	for name, whileDown := range map[string]bool{"while the agent runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			api := newAPIServer(t, h, nodeA(), nodeB())
			flags := []string{"-bin-dir", h.path("bin"), "-executables", imageDir(t)}
			h.startOn(t, api, flags...)
			h.status(t, isReady)
			old, kept := h.newPod(t, "old"), h.newPod(t, "kept")
			require.NoError(t, old.add(t))
			require.NoError(t, kept.add(t))
			kept.reach(t, old.ips[0])

			if whileDown {
				h.kill(t)
			}
			api.remove("a")
			if !whileDown {
				h.status(t, notReady)
				kept.reach(t, netip.MustParseAddr("10.244.1.1")) // the Node may come back as it was
			}
			api.put(recreated())
			if whileDown {
				h.startOn(t, api, flags...)
			}
			h.status(t, func(r report) bool { return r.Ready && strings.Contains(fmt.Sprint(r.PodCIDRs), "10.244.7.0/24") })
			require.NoError(t, h.runtimeStatus(t))
			h.requireNoTrace(t, "10.244.1.0/24", "fd00:1::/64")

			young, second := h.newPod(t, "young"), h.newPod(t, "second")
			require.NoError(t, young.add(t))
			require.NoError(t, second.add(t))
			assert.True(t, netip.MustParsePrefix("10.244.7.0/24").Contains(young.ips[0]), "%v", young.ips)
			for _, ip := range second.ips {
				young.reach(t, ip)
			}
			young.reach(t, netip.MustParseAddr("10.244.7.1"))
			young.reach(t, netip.MustParseAddr("fd00:7::1"))
			require.NoError(t, young.check(t))

			for range 2 {
				require.NoError(t, old.del(t))
				require.NoError(t, kept.del(t))
			}
			assert.ElementsMatch(t, []string{young.ips[0].String(), young.ips[1].String(), second.ips[0].String(), second.ips[1].String()}, h.leases(t))
			require.NoError(t, young.check(t), "what the others leave")

			api.put(inherits())
			h.routes(t, []string{"10.244.1.0/24", "fd00:1::/64", "10.244.2.0/24"}, nil)
			require.NoError(t, young.del(t))
			require.NoError(t, second.del(t))
			assert.Empty(t, h.leases(t))
		})
	}
}

// Of a bridge that the plugin has not made, and of addresses that it could not have set,
// somebody else knows what they are for.
func TestForeignAddressesOfTheBridgeStay(t *testing.T) {
	for name, c := range map[string]struct {
		alias      string
		gone, stay []string
	}{
		"the plugin's bridge": {"cnikit:bridge", []string{"10.244.1.1/24", "fd00:1::1/64"}, []string{"10.244.7.1/24", "fd00:7::1/64", "fd00:77::53/128"}},
		"another bridge":      {"docker", nil, []string{"10.244.1.1/24", "fd00:1::1/64", "fd00:77::53/128"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.publish(t, nodeA())
			h.start(t)
			h.status(t, isReady)
			h.do(t, "ip link add cni0 type bridge")
			h.do(t, "ip link set cni0 alias "+c.alias)
			for _, address := range []string{"10.244.1.1/24", "fd00:1::1/64", "fd00:77::53/128"} {
				h.do(t, "ip addr add "+address+" dev cni0")
			}
			h.publish(t, recreated())
			h.status(t, func(r report) bool { return r.Ready && strings.Contains(fmt.Sprint(r.PodCIDRs), "10.244.7.0/24") })
			state := h.state(t).String()
			for _, address := range c.stay {
				assert.Contains(t, state, " "+address)
			}
			for _, address := range c.gone {
				assert.NotContains(t, state, " "+address)
			}
		})
	}
}
