package cnitest_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// run runs an operator's command inside a namespace: the fixtures are tested against
// changes that another program made.
func run(t *testing.T, n *cnitest.Namespace, args ...string) {
	t.Helper()
	tool := testenv.Tool(t, args[0])
	out, err := n.Command(t.Context(), tool, args[1:]...).CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
}

func newNamespace(t *testing.T) *cnitest.Namespace {
	t.Helper()
	testenv.NetAdmin(t)
	n, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Remove()) })
	return n
}

// addresses of the two members of [newPair].
var (
	loopback        = netip.MustParseAddr("127.0.0.1")
	first, second   = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	first6, second6 = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
)

// newPair joins two namespaces by an underlay, with IPv6 addresses too.
func newPair(t *testing.T, mtu int) (a, b *cnitest.Namespace) {
	t.Helper()
	testenv.Kernel(t, testenv.Veth, testenv.Bridge)
	underlay, err := cnitest.NewUnderlay(newNamespace(t), mtu)
	require.NoError(t, err)
	a, b = newNamespace(t), newNamespace(t)
	require.NoError(t, underlay.Join(t.Context(), a, "eth0", netip.PrefixFrom(first, 24)))
	require.NoError(t, underlay.Join(t.Context(), b, "eth0", netip.PrefixFrom(second, 24)))
	run(t, a, "ip", "addr", "add", first6.String()+"/64", "dev", "eth0", "nodad")
	run(t, b, "ip", "addr", "add", second6.String()+"/64", "dev", "eth0", "nodad")
	awaitAddress(t, a, first6, "eth0")
	awaitAddress(t, b, second6, "eth0")
	return a, b
}

// awaitAddress waits for the kernel, which finishes a new IPv6 address in the background.
func awaitAddress(t *testing.T, n *cnitest.Namespace, addr netip.Addr, dev string) {
	t.Helper()
	route := fmt.Sprintf("route ipv6 %s/128 dev %s type 2", addr, dev)
	require.Eventually(t, func() bool { return strings.Contains(look(t, n).String(), route) }, time.Minute, time.Millisecond)
}

// bothFamilies runs a test for each address of the second member.
func bothFamilies(t *testing.T, test func(t *testing.T, to netip.Addr)) {
	t.Helper()
	t.Run("ipv4", func(t *testing.T) { test(t, second) })
	t.Run("ipv6", func(t *testing.T) { test(t, second6) })
}
