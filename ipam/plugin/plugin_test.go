package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestDel(t *testing.T) {
	n := newNetwork(t)
	config := n.config(dualStack)
	n.add(t, "a", config)
	n.add(t, "b", config)
	bare := func(id, netns, config string) error {
		_, err := n.handler.Handle(t.Context(), cni.Invocation{Command: cni.CommandDel, ContainerID: id, IfName: "eth0", NetNS: netns, Config: []byte(config)})
		return err
	}

	t.Run("del/without a namespace, ranges and path", func(t *testing.T) {
		require.NoError(t, bare("a", "", n.config("")))
		assert.Equal(t, []string{"10.1.0.3", "fd00:1::3"}, n.leases(t))
	})
	t.Run("del/without what lies beside the leases", func(t *testing.T) {
		n.add(t, "c", config)
		require.NoError(t, os.RemoveAll(filepath.Join(n.dataDir, ".cnikit")))
		require.NoError(t, bare("c", "", n.config("")))
		assert.Equal(t, []string{"10.1.0.3", "fd00:1::3"}, n.leases(t))
	})
	t.Run("del/idempotent", func(t *testing.T) {
		require.NoError(t, bare("a", "/run/netns/gone", config))
		require.NoError(t, n.do(t, cni.CommandDel, "unknown", config))
		assert.Len(t, n.leases(t), 2)
	})
	t.Run("del/a broken configuration frees all the same", func(t *testing.T) {
		require.NoError(t, bare("b", "", n.config(`"subnet":"x","ranges":"y","routes":7`, `"runtimeConfig":9`)))
		assert.Empty(t, n.leases(t))
	})
	t.Run("del/unknown network creates nothing", func(t *testing.T) {
		other := newNetwork(t)
		require.NoError(t, other.do(t, cni.CommandDel, "a", other.config("")))
		assert.NoDirExists(t, other.dataDir)
	})
	t.Run("del/a relative dataDir is nowhere", func(t *testing.T) {
		relative := &network{n.handler, "networks", "1.1.0"}
		requireCode(t, cni.CodeInvalidConfig, relative.do(t, cni.CommandDel, "a", relative.config("")))
	})
}

func TestCheck(t *testing.T) {
	n := newNetwork(t)
	prev := `"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.2/24"},{"address":"fd00:1::2/64"},{"address":"192.0.2.1/32"}]}`
	n.add(t, "a", n.config(dualStack))
	lose := func(t *testing.T, name string) {
		t.Helper()
		require.NoError(t, os.Remove(filepath.Join(n.dataDir, "net", name)))
	}

	t.Run("check/in order", func(t *testing.T) {
		require.NoError(t, n.do(t, cni.CommandCheck, "a", n.config(dualStack, prev)), "addresses outside the ranges are not ours")
		require.NoError(t, n.do(t, cni.CommandCheck, "a", n.config(dualStack)), "without prevResult")
		require.NoError(t, n.do(t, cni.CommandCheck, "a", n.config("", prev)), "without ranges")
	})
	t.Run("check/never added", func(t *testing.T) {
		requireCode(t, CodeLeaseLost, n.do(t, cni.CommandCheck, "b", n.config(dualStack, prev)))
	})
	t.Run("check/one address lost", func(t *testing.T) {
		lose(t, "fd00:1::2")
		err := n.do(t, cni.CommandCheck, "a", n.config(dualStack, prev))
		requireCode(t, CodeLeaseLost, err)
		assert.ErrorContains(t, err, "a/eth0 has fd00:1::2/64, which it does not hold any more")
	})
	t.Run("check/all lost", func(t *testing.T) {
		lose(t, "10.1.0.2")
		err := n.do(t, cni.CommandCheck, "a", n.config(dualStack, prev))
		requireCode(t, CodeLeaseLost, err)
		assert.ErrorContains(t, err, `a/eth0 holds no address of network "net" any more`)
	})
}

func TestGC(t *testing.T) {
	for _, key := range []string{"cni.dev/valid-attachments", "cni.dev/attachments"} {
		t.Run(key, func(t *testing.T) {
			n := newNetwork(t)
			config := n.config(dualStack)
			for _, id := range []string{"a", "b", "c"} {
				n.add(t, id, config)
			}
			list := `"` + key + `":[{"containerID":"b","ifname":"eth0"},{"containerID":"c","ifname":"net1"}]`
			require.NoError(t, n.do(t, cni.CommandGC, "", n.config(dualStack, list)))
			assert.Equal(t, []string{"10.1.0.3", "fd00:1::3"}, n.leases(t))
			require.NoError(t, n.do(t, cni.CommandGC, "", n.config("", `"`+key+`":[]`)))
			assert.Empty(t, n.leases(t), "an empty list means that everything is stale")
		})
	}
}

func TestStatus(t *testing.T) {
	n := newNetwork(t)
	require.NoError(t, n.do(t, cni.CommandStatus, "", n.config("")), "ranges may come with the ADD")
	require.NoError(t, n.do(t, cni.CommandStatus, "", n.config(dualStack)))
	assert.NoDirExists(t, n.dataDir)
}

func TestVersion(t *testing.T) {
	out, err := Plugin().Handler().Handle(t.Context(), cni.Invocation{Command: cni.CommandVersion, Config: []byte(`{"cniVersion":"1.0.0"}`)})
	require.NoError(t, err)
	assert.Contains(t, compact(t, out), strings.Join(cni.SupportedVersions(), `","`))
}
