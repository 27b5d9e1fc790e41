package plugin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// network is a plugin with a data directory of its own.
type network struct {
	handler cni.Handler
	dataDir string
	version string
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	return &network{Plugin().Handler(), filepath.Join(t.TempDir(), "networks"), "1.1.0"}
}

// config renders a configuration. ipam are members of the ipam object, others
// members of the document.
func (n *network) config(ipam string, others ...string) string {
	if ipam != "" {
		ipam = "," + ipam
	}
	members := append([]string{
		fmt.Sprintf(`"cniVersion":%q,"name":"net","type":"bridge"`, n.version),
		fmt.Sprintf(`"ipam":{"type":"cnikit-ipam","dataDir":%q%s}`, n.dataDir, ipam),
	}, others...)
	return "{" + strings.Join(members, ",") + "}"
}

func (n *network) call(t *testing.T, command cni.Command, id, config string, args ...string) ([]byte, error) {
	t.Helper()
	return n.handler.Handle(t.Context(), cni.Invocation{
		Command: command, ContainerID: id, IfName: "eth0", NetNS: "/proc/self/ns/net",
		Args: strings.Join(args, ";"), Config: []byte(config),
	})
}

// add returns the addresses that an ADD gives.
func (n *network) add(t *testing.T, id, config string, args ...string) []string {
	t.Helper()
	out, err := n.call(t, cni.CommandAdd, id, config, args...)
	require.NoError(t, err)
	result, err := cni.ParseResult(out, n.version)
	require.NoError(t, err)
	var addrs []string
	for _, ip := range result.IPs {
		addrs = append(addrs, ip.Address.String())
	}
	return addrs
}

func (n *network) do(t *testing.T, command cni.Command, id, config string) error {
	t.Helper()
	out, err := n.call(t, command, id, config)
	assert.Empty(t, out, "only an ADD has output")
	return err
}

// files returns what lies in the directory of the network.
func (n *network) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.dataDir, "net"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// leases returns the addresses among them.
func (n *network) leases(t *testing.T) []string {
	t.Helper()
	names := []string{}
	for _, name := range n.files(t) {
		if name != "lock" && !strings.HasPrefix(name, "last_reserved_ip.") {
			names = append(names, name)
		}
	}
	return names
}

func requireCode(t *testing.T, code cni.Code, err error) {
	t.Helper()
	var e *cni.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, e.Msg)
}

func compact(t *testing.T, document []byte) string {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(document, &v))
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}
