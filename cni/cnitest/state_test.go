package cnitest_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func ExampleState_Diff() {
	before := cnitest.State{
		"link eth0 veth mtu 1500 up",
		"route ipv4 10.1.2.0/24 dev eth0 proto 155",
	}
	after := cnitest.State{
		"link eth0 veth mtu 1500 up",
		"neighbour 10.1.2.0 dev eth0 mac 02:00:00:00:00:01",
	}
	fmt.Println(before.Diff(after))
	// Output:
	// + neighbour 10.1.2.0 dev eth0 mac 02:00:00:00:00:01
	// - route ipv4 10.1.2.0/24 dev eth0 proto 155
}

func TestStateDiff(t *testing.T) {
	for name, c := range map[string]struct {
		before, after cnitest.State
		want          string
	}{
		"both empty":       {nil, nil, ""},
		"equal":            {cnitest.State{"a", "b"}, cnitest.State{"a", "b"}, ""},
		"added at the end": {cnitest.State{"a"}, cnitest.State{"a", "b", "c"}, "+ b\n+ c"},
		"all gone":         {cnitest.State{"a", "b"}, nil, "- a\n- b"},
		"doubled":          {cnitest.State{"a"}, cnitest.State{"a", "a"}, "+ a"},
		"interleaved":      {cnitest.State{"a", "c", "e"}, cnitest.State{"b", "c", "d"}, "- a\n+ b\n+ d\n- e"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.before.Diff(c.after)) })
	}
}

// TestStateSees leaves one thing of each kind behind and undoes it: the state must show
// exactly that, and be the old one afterwards.
func TestStateSees(t *testing.T) {
	testenv.Kernel(t, testenv.VXLAN, testenv.Bridge)
	n := newNamespace(t)
	run(t, n, "ip", "link", "add", "d0", "type", "bridge")
	run(t, n, "ip", "link", "set", "d0", "address", "02:00:00:00:00:01", "addrgenmode", "none", "up")
	run(t, n, "ip", "addr", "add", "10.0.0.1/24", "dev", "d0")
	run(t, n, "ip", "addr", "add", "fd00::1/64", "dev", "d0", "nodad")
	awaitAddress(t, n, netip.MustParseAddr("fd00::1"), "d0")
	run(t, n, "ip", "link", "add", "vx0", "type", "vxlan", "id", "7", "dstport", "4789", "local", "10.0.0.1", "dev", "d0")
	run(t, n, "ip", "link", "set", "vx0", "address", "02:00:00:00:00:02", "addrgenmode", "none", "up")

	for _, c := range []struct{ name, leave, undo, want string }{
		{
			"link", "ip link add d1 type bridge", "ip link del d1",
			`(?s)^\+ fdb .* dev d1.*\+ link d1 bridge mtu 1500 mac \S+$|^\+ link d1 bridge mtu 1500 mac \S+$`,
		},
		{"link/mtu", "ip link set d0 mtu 1400", "ip link set d0 mtu 1500", `^\+ link d0 bridge mtu 1400 .*\n- link d0 bridge mtu 1500 .*up$`},
		{"link/alias", "ip link set d0 alias left", "ip link set d0 alias ''", `\+ link d0 .* alias "left"`},
		{"address", "ip addr add 10.0.0.9/32 dev d0", "ip addr del 10.0.0.9/32 dev d0", `\+ addr 10.0.0.9/32 dev d0 scope 0`},
		{"address/label", "ip addr add 10.0.0.9/32 dev d0 label d0:left", "ip addr del 10.0.0.9/32 dev d0", `\+ addr 10.0.0.9/32 dev d0 scope 0 label d0:left`},
		{"route/ipv4", "ip route add 10.9.0.0/16 via 10.0.0.2 metric 9", "ip route del 10.9.0.0/16 via 10.0.0.2 metric 9", `^\+ route ipv4 10.9.0.0/16 via 10.0.0.2 dev d0 metric 9 proto 3$`},
		{"route/scope", "ip route add 10.9.0.0/16 dev d0 scope host", "ip route del 10.9.0.0/16 dev d0 scope host", `^\+ route ipv4 10.9.0.0/16 dev d0 scope 254 proto 3$`},
		{"route/ipv6", "ip route add fd09::/64 via fd00::2", "ip route del fd09::/64 via fd00::2", `^\+ route ipv6 fd09::/64 via fd00::2 dev d0 metric 1024 proto 3$`},
		{"route/other table", "ip route add blackhole 10.9.0.0/16 table 77", "ip route del blackhole 10.9.0.0/16 table 77", `^\+ route ipv4 10.9.0.0/16 type 6 table 77 proto 3$`},
		{"rule/ipv4", "ip rule add fwmark 5 table 77", "ip rule del fwmark 5 table 77", `^\+ rule ipv4 32765 fwmark 5 table 77`},
		{"rule/ipv6", "ip -6 rule add from fd00::/64 table 77", "ip -6 rule del from fd00::/64 table 77", `^\+ rule ipv6 32765 from fd00::/64 table 77`},
		{"neighbour/ipv4", "ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev d0", "ip neigh del 10.0.0.7 dev d0", `^\+ neighbour 10.0.0.7 dev d0 mac 02:00:00:00:00:07$`},
		{"neighbour/ipv6", "ip neigh add fd00::7 lladdr 02:00:00:00:00:07 dev d0", "ip neigh del fd00::7 dev d0", `^\+ neighbour fd00::7 dev d0 mac 02:00:00:00:00:07$`},
		{"neighbour/noarp", "ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev d0 nud noarp", "ip neigh del 10.0.0.7 dev d0", `^\+ neighbour 10.0.0.7 dev d0 mac 02:00:00:00:00:07 noarp$`},
		{"fdb", "bridge fdb add 02:00:00:00:00:07 dev vx0 dst 10.0.0.7", "bridge fdb del 02:00:00:00:00:07 dev vx0 dst 10.0.0.7", `^\+ fdb 02:00:00:00:00:07 dev vx0 dst 10.0.0.7$`},
		{"vxlan/local", "ip link set vx0 type vxlan local 10.0.0.2", "ip link set vx0 type vxlan local 10.0.0.1", `\+ link vx0 vxlan .* local 10.0.0.2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := look(t, n)
			shell(t, n, c.leave)
			require.Regexp(t, c.want, before.Diff(look(t, n)))
			shell(t, n, c.undo)
			require.Empty(t, before.Diff(look(t, n)))
		})
	}
}

func TestStateIgnores(t *testing.T) {
	a, b := newPair(t, 1500)
	before := look(t, a)
	for _, to := range []cnitest.Ping{{To: second}, {To: second6}, {To: second, Size: 3000}} {
		_, err := a.Ping(t.Context(), to)
		require.NoError(t, err)
		_, err = b.Ping(t.Context(), cnitest.Ping{To: first})
		require.NoError(t, err)
	}
	require.Empty(t, before.Diff(look(t, a)), "neighbours that the kernel learned")
}

func TestStateFiles(t *testing.T) {
	n := newNamespace(t)
	dir := t.TempDir()
	before := look(t, n, dir, filepath.Join(dir, "absent"))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "net"), 0o755))
	lease := filepath.Join(dir, "net", "10.1.2.3")
	require.NoError(t, os.WriteFile(lease, []byte("owner"), 0o600))
	require.NoError(t, os.Symlink("10.1.2.3", filepath.Join(dir, "net", "link")))
	left := look(t, n, dir)
	require.Equal(t, fmt.Sprintf(`+ file %[1]s/net drwxr-xr-x
+ file %[1]s/net/10.1.2.3 -rw------- 5 bytes sha256 4c1029697ee3
+ file %[1]s/net/link Lrwxrwxrwx -> 10.1.2.3`, dir), before.Diff(left))

	require.NoError(t, os.WriteFile(lease, []byte("other"), 0o600))
	require.Contains(t, left.Diff(look(t, n, dir)), "- file "+lease, "the content counts")
}

// look leaves out what the kernel derives from link-local addresses, in its own time.
func look(t *testing.T, n *cnitest.Namespace, dirs ...string) cnitest.State {
	t.Helper()
	s, err := n.State(dirs...)
	require.NoError(t, err)
	return slices.DeleteFunc(s, func(line string) bool { return strings.HasPrefix(line, "route ipv6 fe80:") })
}

func shell(t *testing.T, n *cnitest.Namespace, command string) {
	t.Helper()
	run(t, n, "sh", "-ec", command)
}
