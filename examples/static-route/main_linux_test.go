package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/internal/testenv"
)

var (
	target = netip.MustParseAddr("198.51.100.1") // an address of the node that only the route leads to
	route  = netif.Route{Dst: netip.MustParsePrefix("198.51.100.0/24"), Via: netip.MustParseAddr("10.1.0.1")}
)

// lab is a node with the executables of the bridge and of this plugin, and a container.
type lab struct {
	node, pod *cnitest.Namespace
	inPod     *netif.Namespace
	runner    chain.Runner
	leases    string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	l := &lab{node: newNamespace(t), pod: newNamespace(t), leases: t.TempDir()}
	onNode, err := netif.Open(l.node.Path())
	require.NoError(t, err)
	t.Cleanup(onNode.Close)
	require.NoError(t, onNode.AddAddresses("lo", netip.PrefixFrom(target, 32)))
	l.inPod, err = netif.Open(l.pod.Path())
	require.NoError(t, err)
	t.Cleanup(l.inPod.Close)

	plugins := t.TempDir()
	for name, program := range map[string]string{
		"cnikit-bridge": "github.com/cnikit/cnikit/examples/bridge-vxlan/bridge", "static-route": "github.com/cnikit/cnikit/examples/static-route",
	} {
		require.NoError(t, os.Symlink(testenv.Build(t, program), filepath.Join(plugins, name)))
	}
	l.runner = chain.Runner{Path: []string{plugins}, CacheDir: t.TempDir(), Executor: cni.Exec{Stderr: t.Output()}}
	return l
}

func newNamespace(t *testing.T) *cnitest.Namespace {
	t.Helper()
	ns, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ns.Remove()) })
	return ns
}

// list is the network: the bridge, then this plugin with the routes, which are JSON.
func (l *lab) list(t *testing.T, routes string) *chain.List {
	t.Helper()
	list, err := chain.Parse(fmt.Appendf(nil, `{"cniVersion": "1.1.0", "name": "pods", "plugins": [
		{"type": "cnikit-bridge", "isGateway": true,
		 "ipam": {"type": "cnikit-ipam", "dataDir": %q, "ranges": [[{"subnet": "10.1.0.0/24"}]], "routes": [{"dst": "203.0.113.0/24"}]}},
		{"type": "static-route", "routes": %s}]}`, l.leases, routes))
	require.NoError(t, err)
	return list
}

const usual = `[{"dst": "198.51.100.0/24", "via": "10.1.0.1"}]`

func (l *lab) attachment() chain.Attachment {
	return chain.Attachment{ContainerID: "c1", NetNS: l.pod.Path(), IfName: "eth0"}
}

// add, check and del run the chain on a thread of the node.
func (l *lab) add(t *testing.T, list *chain.List) (result *cni.Result, err error) {
	err = l.node.Do(func() error {
		result, err = l.runner.Add(t.Context(), list, l.attachment())
		return err
	})
	return result, err
}

func (l *lab) check(t *testing.T, list *chain.List) error {
	return l.node.Do(func() error { return l.runner.Check(t.Context(), list, l.attachment()) })
}

func (l *lab) del(t *testing.T, list *chain.List) error {
	return l.node.Do(func() error { return l.runner.Del(t.Context(), list, l.attachment()) })
}

// call runs this plugin alone, as the last of the chain, in the test's own process.
func (l *lab) call(ctx context.Context, t *testing.T, command cni.Command, prev *cni.Result) error {
	t.Helper()
	document := map[string]json.RawMessage{"cniVersion": []byte(`"1.1.0"`), "name": []byte(`"pods"`), "type": []byte(`"static-route"`), "routes": []byte(usual)}
	if prev != nil {
		encoded, err := prev.Encode("1.1.0")
		require.NoError(t, err)
		document["prevResult"] = encoded
	}
	config, err := json.Marshal(document)
	require.NoError(t, err)
	_, err = plugin().Handler().Handle(ctx, cni.Invocation{Command: command, ContainerID: "c1", NetNS: l.pod.Path(), IfName: "eth0", Config: config})
	return err
}

func (l *lab) routes(t *testing.T) []netif.Route {
	t.Helper()
	routes, err := l.inPod.Routes("eth0")
	require.NoError(t, err)
	return routes
}

func TestChain(t *testing.T) {
	l := newLab(t)
	list := l.list(t, usual)
	before, err := l.pod.State()
	require.NoError(t, err)

	result, err := l.add(t, list)
	require.NoError(t, err)
	require.Len(t, result.Interfaces, 3, "what the bridge reported is kept")
	require.Len(t, result.Routes, 2, "and its route, too")
	require.Equal(t, cni.Route{Dst: route.Dst, GW: route.Via}, result.Routes[1])
	_, err = l.pod.Ping(t.Context(), cnitest.Ping{To: target})
	require.NoError(t, err)
	require.NoError(t, l.check(t, list))

	require.NoError(t, l.inPod.DeleteRoutes("eth0", route))
	_, err = l.pod.Ping(t.Context(), cnitest.Ping{To: target})
	require.Error(t, err, "the target is reached through the route alone")
	require.ErrorContains(t, l.check(t, list), "198.51.100.0/24")
	other := netif.Route{Dst: route.Dst, Via: netip.MustParseAddr("10.1.0.9")}
	require.NoError(t, l.inPod.AddRoutes("eth0", other))
	require.ErrorContains(t, l.check(t, list), "has lost its route 198.51.100.0/24 via 10.1.0.1")

	for range 2 {
		require.NoError(t, l.del(t, list))
	}
	after, err := l.pod.State()
	require.NoError(t, err)
	require.Empty(t, before.Diff(after))
}

func TestDel(t *testing.T) {
	l := newLab(t)
	_, err := l.add(t, l.list(t, usual))
	require.NoError(t, err)
	require.Contains(t, l.routes(t), route)
	for range 2 {
		require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil))
		require.NotContains(t, l.routes(t), route)
	}
	require.NotEmpty(t, l.routes(t), "the interface and its other routes stay")
	require.NoError(t, l.inPod.DeleteLink("eth0"))
	require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil), "del/no interface")
	require.NoError(t, l.pod.Remove())
	require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil), "del/no namespace")
}

func TestUndo(t *testing.T) {
	l := newLab(t)
	result, err := l.add(t, l.list(t, usual))
	require.NoError(t, err)
	require.NoError(t, l.inPod.DeleteRoutes("eth0", route))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, l.call(ctx, t, cni.CommandAdd, result), "cancelled")
	require.NotContains(t, l.routes(t), route)
	require.NoError(t, l.call(t.Context(), t, cni.CommandAdd, result))
	require.Contains(t, l.routes(t), route)
}

func TestRefused(t *testing.T) {
	l := newLab(t)
	for rule, test := range map[string]struct {
		routes, err string
		code        cni.Code
	}{
		"no routes":           {`[]`, `routes=[]: is empty`, cni.CodeInvalidConfig},
		"host bits":           {`[{"dst": "198.51.100.7/24"}]`, `routes[0].dst="198.51.100.7/24": has host bits set; write 198.51.100.0/24`, cni.CodeInvalidConfig},
		"no destination":      {`[{"dst": "0.0.0.0/0"}, {"via": "10.1.0.1"}]`, `routes[1].dst=""`, cni.CodeInvalidConfig},
		"other family":        {`[{"dst": "198.51.100.0/24", "via": "fd00::1"}]`, `routes[0].via="fd00::1": is not of the address family`, cni.CodeInvalidConfig},
		"conflict in a chain": {`[{"dst": "10.1.0.0/24", "via": "10.1.0.9"}]`, `routes[0].dst="10.1.0.0/24": the route 10.1.0.0/24 via 10.1.0.9 conflicts with one that is there: 10.1.0.0/24 through eth0; leave`, cni.CodeInvalidConfig},
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := l.add(t, l.list(t, test.routes))
			var e *cni.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, test.code, e.Code)
			require.ErrorContains(t, err, test.err)
			_, err = l.inPod.Link("eth0")
			require.ErrorIs(t, err, netif.ErrNotFound, "the chain was rolled back")
		})
	}
	t.Run("first of a chain", func(t *testing.T) {
		require.ErrorContains(t, l.call(t.Context(), t, cni.CommandAdd, nil), "behind one that makes an interface")
	})
}

// The program answers VERSION, and somebody who runs it by hand.
func TestByHand(t *testing.T) {
	var out bytes.Buffer
	code := cni.Process{Env: []string{"CNI_COMMAND=VERSION"}, Stdin: bytes.NewBufferString(`{"cniVersion": "1.1.0"}`), Stdout: &out}.Run(t.Context(), plugin().Handler())
	require.Zero(t, code)
	require.Contains(t, out.String(), `"supportedVersions"`)
}
