package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
)

func TestAgentIsNotReadyAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		nodes  []overlay.Node
		reason []string
	}{
		"mtu beyond the underlay": {
			flags: []string{"-mtu", "1500"}, nodes: []overlay.Node{nodeA()},
			reason: []string{"mtu=1500", "1500", "use at most 1450"},
		},
		"own node is not in the topology": {nodes: []overlay.Node{nodeB()}, reason: []string{`node "a": is not among the nodes, which are "b"`}},
		"own node has no address": {
			nodes: []overlay.Node{{Name: "a", UID: "uid-a", PodCIDRs: []string{"10.244.1.0/24"}}}, reason: []string{`"a"`, "address"},
		},
		"the address is another machine's": {
			nodes: []overlay.Node{member("a", "192.0.2.77", "10.244.1.0/24", "fd00:1::/64")}, reason: []string{"192.0.2.77"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.publish(t, c.nodes...)
			h.start(t, c.flags...)
			r := h.status(t, notReady)
			for _, want := range c.reason {
				assert.Contains(t, r.Reason, want)
			}
			assert.NoFileExists(t, h.conflist())
			assert.NotContains(t, h.state(t).String(), "vxlan")
		})
	}
}

// 1300 bytes less the tunnel's 50 are less than the 1280 that IPv6 needs.
// Who has no status file has the log, and who has both reads the log first.
func TestTheLogSaysWhetherTheNodeIsReady(t *testing.T) {
	for name, flags := range map[string][]string{"status file": nil, "none": {"-status-file="}} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.publish(t, nodeA())
			require.NoError(t, os.WriteFile(h.path("template"), []byte(`{"cniVersion":"1.0.0","name":{{json .Name}},"plugins":[{{range .Subnets}}{"type":"mine"}{{end}}]}`), 0o600))
			h.start(t, append([]string{"-resync", "20ms", "-conflist-template", h.path("template")}, flags...)...)
			says := func(text string) {
				require.Eventually(t, func() bool { return strings.Contains(h.log(), text) }, patience, 5*time.Millisecond, text)
			}
			says(`level=WARN msg="not ready" reason="-conflist-template=\"` + h.path("template") + `\": result of template: line 1, `)
			h.end(t)
			h.start(t, append([]string{"-resync", "20ms"}, flags...)...)
			says(`level=INFO msg="ready: pods can be attached"`)
			before := h.log()
			h.do(t, "ip link del cnikit.5000")
			require.Eventually(t, func() bool { return strings.Count(h.log()[len(before):], "msg=round") > 0 }, patience, 5*time.Millisecond)
			h.end(t)
			assert.Equal(t, 1, strings.Count(h.log(), "not ready"), "what stays the same is said once")
			assert.Equal(t, 1, strings.Count(h.log(), "ready: pods"))
		})
	}
}

func TestAgentRefusesAnUnderlayTooNarrowForIPv6(t *testing.T) {
	h := newHostOn(t, 1300)
	h.publish(t, nodeA())
	h.start(t)
	assert.Equal(t, "the underlay's MTU of 1300 less 50 for the tunnel is 1250, and pods with IPv6 need 1280; raise it to 1330 or more, or give the nodes Pod CIDRs of IPv4 alone",
		h.status(t, notReady).Reason)
	assert.NoFileExists(t, h.conflist())
}

func TestAgentWithoutATopologySaysSo(t *testing.T) {
	h := newHost(t)
	h.start(t)
	assert.Contains(t, h.status(t, notReady).Reason, "topology.json")
	h.publish(t, nodeA())
	h.status(t, isReady)
}

func TestTheStatusShowsWhatIsWrongWithTheTopologyFile(t *testing.T) {
	h := newHost(t)
	h.raw(t, `{"version":1,"nodes":[{"name":"a","uid":"u","podCIDRs":"10.244.1.0/24","addresses":["192.0.2.1"]},{"name":"b"}]}`)
	h.start(t)
	r := h.status(t, notReady)
	const wrongType = `node "a" (entry 1): podCIDRs: want a list of strings, not a string; the node is left out`
	assert.Equal(t, wrongType, r.Reason, "the own entry is the cause, not that the node is not there")
	assert.Equal(t, []string{wrongType}, r.Source)

	h.raw(t, `{"version":1,"nodes":[{"name":"a","uid":"u","podCIDRs":["10.244.1.0/24"],"adresses":["192.0.2.1"]},{"uid":7}]}`)
	r = h.status(t, func(r report) bool {
		return strings.Contains(r.Reason, `key "adresses" is not known`) && strings.Contains(r.Reason, "none is an IPv4 unicast address")
	})
	assert.NotContains(t, r.Reason, "entry 2", "another node's entry is no reason")
	assert.Len(t, r.Source, 2)

	h.raw(t, `{"version":1,"nodes":[{"name":7}]}`)
	h.status(t, func(r report) bool {
		return strings.Contains(r.Reason, "entry 1: name: want") && strings.Contains(r.Reason, `node "a": is not among the nodes`)
	})

	h.publish(t, nodeA())
	h.status(t, func(r report) bool { return r.Ready && len(r.Source) == 0 })

	h.raw(t, `{"version":1,`)
	r = h.status(t, func(r report) bool { return len(r.Source) > 0 })
	assert.True(t, r.Ready, "what was read before stays")
	assert.Contains(t, r.Source[0], "line 1, column 13")
	h.publish(t, nodeA())
	h.status(t, func(r report) bool { return len(r.Source) == 0 })
}

func TestTheConflistIsHeldBackFromAnInterfaceThatIsNoBridge(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	h.start(t, "-bridge", "eth0")
	assert.Contains(t, h.status(t, notReady).Reason, `-bridge="eth0": is an interface of kind "veth", not a bridge; `)
	assert.NoFileExists(t, h.conflist())
}

// Without a conflist a runtime could not delete the pods that are there, and would tell
// its own reason instead of ours.
func TestTheConflistStaysWhenTheBridgeBecomesSomethingElse(t *testing.T) {
	for name, whileDown := range map[string]bool{"while the agent runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.publish(t, nodeA())
			flags := []string{"-resync", "50ms", "-bin-dir", h.path("bin"), "-executables", imageDir(t)}
			h.start(t, flags...)
			h.status(t, isReady)
			p := h.newPod(t, "pod")
			require.NoError(t, p.add(t))
			if whileDown {
				h.end(t)
			}
			h.do(t, "ip link del cni0")
			h.do(t, "ip link add cni0 type veth peer name other")
			if whileDown {
				h.start(t, flags...)
			}
			const reason = `-bridge="cni0": is an interface of kind "veth", not a bridge`
			assert.Contains(t, h.status(t, notReady).Reason, reason)
			require.ErrorContains(t, h.runtimeStatus(t), reason)
			require.ErrorContains(t, h.newPod(t, "late").add(t), "cni0")
			require.NoError(t, p.del(t))
			assert.Empty(t, h.leases(t))

			require.NoError(t, os.Remove(h.conflist()))
			if !whileDown {
				require.Eventually(t, func() bool { _, err := os.Stat(h.conflist()); return err == nil }, patience, 5*time.Millisecond, "it is still wanted")
			}
			h.do(t, "ip link del cni0")
			h.status(t, isReady)
			assert.FileExists(t, h.conflist())
			require.NoError(t, p.add(t))
			require.NoError(t, p.del(t))
			h.do(t, "ip link set eth0 mtu 1400")
			h.status(t, func(r report) bool { return r.Ready && r.MTU == 1350 })
		})
	}
}

// What was true when an earlier agent ended may not be so any more. The API server has
// nothing to say of it here.
func TestAStaleFileDoesNotSayReadyForLong(t *testing.T) {
	for name, c := range map[string]struct{ broken, want string }{
		"the tunnel is gone": {"ip link del cnikit.5000", "the tunnel device cnikit.5000 is not there"},
		"the tunnel is down": {"ip link set cnikit.5000 down", "the tunnel device cnikit.5000 is down"},
		"the tunnel stands":  {},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.publish(t, nodeA(), nodeB())
			h.start(t)
			h.status(t, isReady)
			h.kill(t)
			if c.broken != "" {
				h.do(t, c.broken)
			}
			api := newAPIServer(t, h)
			api.setSilent(true)
			h.startOn(t, api)
			if c.want != "" {
				assert.Contains(t, h.status(t, notReady).Reason, c.want)
				return
			}
			api.awaitRequest(t)
			before := h.status(t, func(report) bool { return true })
			assert.True(t, before.Ready, "a restart is no outage")

			api.stop()
			r := h.status(t, func(r report) bool { return len(r.Source) > 0 })
			assert.True(t, r.Ready, "nor is an API server that is away")
			assert.Equal(t, before.PodCIDRs, r.PodCIDRs)
			h.do(t, "ip link del cnikit.5000")
			assert.Contains(t, h.status(t, notReady).Reason, "API server", "which could bring it back")

			api.setSilent(false)
			api.put(nodeA())
			api.start(t)
			h.status(t, isReady)
		})
	}
}

// What an earlier agent had to complain of is no news, whatever it has left in place.
func TestAStaleFileDoesNotComplainForLong(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	h.start(t)
	h.status(t, isReady)
	h.kill(t)
	require.NoError(t, os.WriteFile(h.statusFile(), []byte(`{"ready":false,"reason":"what was long ago"}`), 0o600))
	api := newAPIServer(t, h)
	api.stop()
	h.startOn(t, api)
	h.status(t, func(r report) bool { return !r.Ready && strings.Contains(r.Reason, "API server") })
}

// Whatever happens to a large network, plugins read the file with every STATUS.
func TestTheStatusListsOnlySoManyProblems(t *testing.T) {
	h := newHost(t)
	nodes := []overlay.Node{nodeA()}
	for i := range listed + 20 {
		nodes = append(nodes, overlay.Node{Name: fmt.Sprintf("bad%d", i), UID: fmt.Sprint(i), PodCIDRs: []string{"10.9.0.0/24"}})
	}
	h.publish(t, nodes...)
	h.start(t)
	r := h.status(t, isReady)
	assert.Len(t, r.Problems, listed)
	assert.Equal(t, 20, r.Omitted)
}
