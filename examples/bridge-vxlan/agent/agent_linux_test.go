package main

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/file"
)

// host is a namespace with an address on an underlay of its own, and the directories
// that an agent works in.
type host struct {
	ns    *cnitest.Namespace
	dir   string
	flags []string
	agent *cnitest.Cmd
}

func newHost(t *testing.T) *host { return newHostOn(t, 1500) }

func newHostOn(t *testing.T, mtu int) *host {
	testenv.NetAdmin(t)
	testenv.Kernel(t, testenv.VXLAN)
	wire, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { _ = wire.Remove() })
	ns, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Remove() })
	underlay, err := cnitest.NewUnderlay(wire, mtu)
	require.NoError(t, err)
	require.NoError(t, underlay.Join(t.Context(), ns, "eth0", netip.MustParsePrefix("192.0.2.1/24")))
	h := &host{ns: ns, dir: t.TempDir()}
	h.flags = []string{
		"-node", "a", "-topology", h.path("topology.json"), "-conf-dir", h.path("net.d"),
		"-data-dir", h.path("leases"), "-status-file", h.path("status", "a.json"), "-resync", "-1s",
	}
	return h
}

func (h *host) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

func (h *host) publish(t *testing.T, nodes ...overlay.Node) {
	require.NoError(t, file.Write(h.path("topology.json"), nodes))
}

func (h *host) command(t *testing.T, flags ...string) *cnitest.Cmd {
	cmd := h.ns.Command(context.WithoutCancel(t.Context()), testenv.Build(t, "github.com/cnikit/cnikit/examples/bridge-vxlan/agent"), append(h.flags, flags...)...)
	log, err := os.OpenFile(h.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

func (h *host) log() string {
	data, _ := os.ReadFile(h.path("log"))
	return string(data)
}

func (h *host) start(t *testing.T, flags ...string) {
	h.agent = h.command(t, flags...)
	require.NoError(t, h.agent.Start())
	t.Cleanup(func() {
		if h.agent.ProcessState == nil {
			_ = h.agent.Process.Kill()
			_ = h.agent.Wait()
		}
		if t.Failed() {
			t.Log(h.log())
		}
	})
}

// status waits for the status file to be as wanted.
func (h *host) status(t *testing.T, wanted func(report) bool) report {
	t.Helper()
	var r report
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(h.path("status", "a.json"))
		if err != nil {
			return false
		}
		r = report{}
		require.NoError(t, json.Unmarshal(data, &r), "the status file is never seen in part")
		return wanted(r)
	}, 5*time.Second, 5*time.Millisecond, "status is %+v", &r)
	return r
}

func isReady(r report) bool  { return r.Ready }
func notReady(r report) bool { return !r.Ready }

func member(name, addr, cidr4, cidr6 string) overlay.Node {
	return overlay.Node{
		Name: name, UID: "uid-" + name, Created: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		PodCIDRs: []string{cidr4, cidr6}, Addresses: []string{addr},
	}
}

func nodeA() overlay.Node { return member("a", "192.0.2.1", "10.244.1.0/24", "fd00:1::/64") }
func nodeB() overlay.Node { return member("b", "192.0.2.2", "10.244.2.0/24", "fd00:2::/64") }

func TestAgentWritesTheConflistWhenTheTunnelStands(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA(), nodeB())
	h.start(t)
	r := h.status(t, isReady)
	assert.Equal(t, 1450, r.MTU)
	assert.Empty(t, r.Problems)

	list, err := chain.LoadNetwork(h.path("net.d"), "cnikit")
	require.NoError(t, err)
	assert.Equal(t, "cnikit-bridge", list.Plugins[0].Type)
	state, err := h.ns.State()
	require.NoError(t, err)
	for _, want := range []string{"10.244.2.0/24", "fd00:2::/64", overlay.TunnelMAC("uid-b").String()} {
		assert.Contains(t, state.String(), want)
	}
}

func TestAgentEndsWellAndCleansUp(t *testing.T) {
	h := newHost(t)
	before, err := h.ns.State()
	require.NoError(t, err)
	h.publish(t, nodeA(), nodeB())
	h.start(t)
	h.status(t, isReady)
	require.NoError(t, h.agent.Process.Signal(syscall.SIGTERM))
	require.NoError(t, h.agent.Wait(), "exit code 0")
	stands, err := h.ns.State()
	require.NoError(t, err)
	assert.NotEqual(t, before.String(), stands.String(), "an agent that ends leaves its work")

	require.NoError(t, h.command(t, "-cleanup").Run())
	after, err := h.ns.State()
	require.NoError(t, err)
	assert.Empty(t, before.Diff(after))
	for _, path := range []string{h.path("net.d", "10-cnikit.conflist"), h.path("status", "a.json")} {
		assert.NoFileExists(t, path)
	}
	require.NoError(t, h.command(t, "-cleanup").Run(), "cleaning up what is clean")
}

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
			assert.NoFileExists(t, h.path("net.d", "10-cnikit.conflist"))
			state, err := h.ns.State()
			require.NoError(t, err)
			assert.NotContains(t, state.String(), "vxlan")
		})
	}
}

// 1300 bytes less the tunnel's 50 are less than the 1280 that IPv6 needs.
func TestAgentRefusesAnUnderlayTooNarrowForIPv6(t *testing.T) {
	h := newHostOn(t, 1300)
	h.publish(t, nodeA())
	h.start(t)
	assert.Contains(t, h.status(t, notReady).Reason, "1250")
	assert.NoFileExists(t, h.path("net.d", "10-cnikit.conflist"))
}

func TestAgentWithoutATopologySaysSo(t *testing.T) {
	h := newHost(t)
	h.start(t)
	assert.Contains(t, h.status(t, notReady).Reason, "topology.json")
	h.publish(t, nodeA())
	h.status(t, isReady)
}

// raw writes a topology file as a person might.
func (h *host) raw(t *testing.T, content string) {
	require.NoError(t, install.WriteFile(h.path("topology.json"), install.File{Content: []byte(content)}))
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
	t.Run("there before", func(t *testing.T) {
		h := newHost(t)
		h.publish(t, nodeA())
		h.start(t, "-bridge", "eth0")
		assert.Contains(t, h.status(t, notReady).Reason, `-bridge="eth0": is an interface of kind "veth", not a bridge; `)
		assert.NoFileExists(t, h.path("net.d", "10-cnikit.conflist"))
	})
	t.Run("there later, for a while", func(t *testing.T) {
		h := newHost(t)
		ip := func(args ...string) {
			out, err := h.ns.Command(t.Context(), testenv.Tool(t, "ip"), args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		h.publish(t, nodeA())
		h.start(t, "-resync", "50ms")
		h.status(t, isReady)
		ip("link", "add", "cni0", "type", "veth", "peer", "name", "other")
		assert.Contains(t, h.status(t, notReady).Reason, `-bridge="cni0"`)
		assert.Eventually(t, func() bool {
			_, err := os.Stat(h.path("net.d", "10-cnikit.conflist"))
			return os.IsNotExist(err)
		}, 5*time.Second, 5*time.Millisecond, "no pod may be scheduled here")
		ip("link", "del", "cni0")
		h.status(t, isReady)
		assert.FileExists(t, h.path("net.d", "10-cnikit.conflist"))
		ip("link", "add", "cni0", "type", "bridge")
		ip("link", "set", "eth0", "mtu", "1400")
		h.status(t, func(r report) bool { return r.Ready && r.MTU == 1350 })
	})
}

func TestTruncatedTopologyChangesNothing(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA(), nodeB())
	h.start(t)
	h.status(t, isReady)
	before, err := h.ns.State()
	require.NoError(t, err)
	monitor, err := h.ns.Monitor()
	require.NoError(t, err)
	defer monitor.Close()
	require.NoError(t, os.WriteFile(h.path("topology.json"), []byte(`{"version":1,"nodes":[{"name":"a"`), 0o644))
	require.Eventually(t, func() bool { return strings.Contains(h.log(), "topology cannot be used") }, 5*time.Second, 5*time.Millisecond)
	changes, err := monitor.Changes()
	require.NoError(t, err)
	assert.Empty(t, changes)
	h.publish(t, nodeA())
	require.Eventually(t, func() bool {
		now, err := h.ns.State()
		return err == nil && len(before.Diff(now)) > 0
	}, 5*time.Second, 10*time.Millisecond, "the agent goes on with the next good file")
}

// One node that cannot be used is named, and the others work.
func TestBadNodesAreNamed(t *testing.T) {
	h := newHost(t)
	thief := member("thief", "192.0.2.9", "10.244.2.0/24", "fd00:9::/64")
	thief.Created = thief.Created.Add(time.Hour)
	h.publish(t, nodeA(), nodeB(), thief,
		member("crooked", "192.0.2.7", "10.244.7.0/33", "fd00:7::/64"),
		overlay.Node{Name: "homeless", UID: "uid-h", PodCIDRs: []string{"10.244.8.0/24"}},
	)
	h.start(t)
	r := h.status(t, isReady)
	named := map[string]string{}
	for _, p := range r.Problems {
		named[p.Node] = p.Message
	}
	assert.Len(t, named, 3)
	assert.Contains(t, named["crooked"], "10.244.7.0/33")
	assert.Contains(t, named["homeless"], "address")
	assert.Contains(t, named["thief"], "10.244.2.0/24")
	state, err := h.ns.State()
	require.NoError(t, err)
	assert.Contains(t, state.String(), overlay.TunnelMAC("uid-b").String())
}

// What the host reaches its own way stays so, whatever Pod CIDR another node claims.
func TestAPodCIDRCannotTakeOverARouteOfTheHost(t *testing.T) {
	h := newHost(t)
	for _, command := range []string{
		"ip link add docker0 type bridge", "ip addr add 172.17.0.1/16 dev docker0", "ip link set docker0 up",
	} {
		words := strings.Fields(command)
		require.NoError(t, h.ns.Command(t.Context(), testenv.Tool(t, words[0]), words[1:]...).Run(), command)
	}
	h.publish(t, nodeA(), nodeB(), member("c", "192.0.2.3", "172.17.3.0/24", "fd00:3::/64"))
	h.start(t, "-resync", "200ms")
	r := h.status(t, isReady)
	require.Len(t, r.Problems, 1)
	assert.Equal(t, "c", r.Problems[0].Node)
	assert.Contains(t, r.Problems[0].Message, "172.17.0.0/16")
	h.routes(t, []string{"10.244.2.0/24", "fd00:3::/64"}, []string{"172.17.3.0/24"})

	require.NoError(t, h.ns.Command(t.Context(), testenv.Tool(t, "ip"), "link", "del", "docker0").Run())
	h.routes(t, []string{"10.244.2.0/24", "fd00:3::/64", "172.17.3.0/24"}, nil)
	assert.Empty(t, h.status(t, func(r report) bool { return len(r.Problems) == 0 }).Problems)
}

// routes waits until the host has the routes of some Pod CIDRs, and not those of others.
func (h *host) routes(t *testing.T, present, absent []string) {
	t.Helper()
	var state cnitest.State
	has := func(cidr string) bool {
		return slices.ContainsFunc(state, func(line string) bool {
			return strings.HasPrefix(line, "route ") && strings.Contains(line, " "+cidr+" via ")
		})
	}
	require.Eventually(t, func() (ok bool) {
		var err error
		state, err = h.ns.State()
		require.NoError(t, err)
		return !slices.ContainsFunc(present, func(c string) bool { return !has(c) }) && !slices.ContainsFunc(absent, has)
	}, 5*time.Second, 10*time.Millisecond, "present %v, absent %v in\n%s", present, absent, &state)
}
