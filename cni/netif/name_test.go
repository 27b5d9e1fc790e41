package netif_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/netif"
)

func ExampleHostName() {
	fmt.Println(netif.HostName("4f1d2a", "eth0"))
	fmt.Println(netif.HostName("4f1d2a", "net1"))
	// Output:
	// veth5zwjdbupeq5
	// vethxuw2wmik7nc
}

func ExampleCheckName() {
	for _, name := range []string{"cni0", "a/b", "my-very-long-bridge"} {
		fmt.Println(name, netif.CheckName(name))
	}
	// Output:
	// cni0 <nil>
	// a/b contains '/'
	// my-very-long-bridge has 19 bytes; an interface name has at most 15
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "cni0", "br-12.34_5", strings.Repeat("x", 15)} {
		t.Run("good/"+good, func(t *testing.T) { require.NoError(t, netif.CheckName(good)) })
	}
	for _, bad := range []string{"", ".", "..", "all", "default", "a/b", "a:b", "a b", "a\tb", "br%d", "bré", strings.Repeat("x", 16)} {
		t.Run("bad/"+bad, func(t *testing.T) { require.Error(t, netif.CheckName(bad)) })
	}
}

func TestHostName(t *testing.T) {
	name := netif.HostName("container", "eth0")
	require.NoError(t, netif.CheckName(name))
	require.Len(t, name, 15)
	require.Equal(t, name, netif.HostName("container", "eth0"))
	require.NotEqual(t, name, netif.HostName("container", "net1"))
	require.NotEqual(t, netif.HostName("ab", "c"), netif.HostName("a", "bc"))
}
