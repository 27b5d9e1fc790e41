package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
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

// With more addresses of a family than a result of the version has places for, ADD is
// refused in host-local's words, and so is DEL: but what is held is free by then.
func TestTooManyForOldVersions(t *testing.T) {
	for version, more := range map[string]bool{"0.1.0": true, "0.2.0": true, "0.3.0": false} {
		for name, c := range map[string]struct {
			ipam, other string
			more        bool
		}{
			"two of IPv4":        {`"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]`, `"x":1`, true},
			"two of IPv6":        {`"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64"}],[{"subnet":"fd01::/64"}]]`, `"x":1`, true},
			"one of the runtime": {`"subnet":"10.1.0.0/24"`, `"runtimeConfig":{"ipRanges":[[{"subnet":"10.2.0.0/24"}]]}`, true},
			"one of each":        {dualStack, `"x":1`, false},
			"two ranges of one":  {`"ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"10.2.0.0/24"}]]`, `"x":1`, false},
			"unusable":           {`"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"x"}]]`, `"x":1`, false},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				n := newNetwork(t)
				n.add(t, "a", n.config(dualStack))
				n.add(t, "b", n.config(dualStack))
				n.version = version
				err := n.do(t, cni.CommandDel, "a", n.config(c.ipam, c.other))
				assert.Equal(t, []string{"10.1.0.3", "fd00:1::3"}, n.leases(t), "nothing leaks")
				if !more || !c.more {
					require.NoError(t, err)
					return
				}
				requireCode(t, cni.CodeInvalidConfig, err)
				refusal := "CNI version " + version + " does not support more than 1 address per family"
				assert.EqualError(t, err, refusal)
				_, err = n.call(t, cni.CommandAdd, "a", n.config(c.ipam, c.other))
				requireCode(t, cni.CodeInvalidConfig, err)
				assert.EqualError(t, err, refusal)
				assert.Len(t, n.leases(t), 2)
			})
		}
	}
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
	require.NoError(t, os.MkdirAll(filepath.Join(n.dataDir, "net", "lock"), 0o755))
	err := n.do(t, cni.CommandStatus, "", n.config(dualStack))
	requireCode(t, cni.CodeNotAvailable, err)
	assert.ErrorContains(t, err, "net/lock is not a regular file; remove it")
}

// A question that is called off says nothing of the addresses.
func TestStatusCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := newNetwork(t)
	n.handler = Over("test", func(_ *cni.Request[Config], sets []ipam.RangeSet) (ipam.Allocator, error) {
		pool, err := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{}), ipam.PoolOptions{}, sets...)
		return waiting{pool, cancel}, err
	}).Handler()
	_, err := n.handler.Handle(ctx, cni.Invocation{Command: cni.CommandStatus, Config: []byte(n.config(dualStack))})
	requireCode(t, cni.CodeTryAgain, err)
}

// waiting is an allocator whose user gives up while it waits for its store.
type waiting struct {
	ipam.Allocator
	cancel context.CancelFunc
}

func (w waiting) Status(ctx context.Context) error {
	w.cancel()
	<-ctx.Done()
	return ctx.Err()
}

func TestVersion(t *testing.T) {
	out, err := Plugin().Handler().Handle(t.Context(), cni.Invocation{Command: cni.CommandVersion, Config: []byte(`{"cniVersion":"1.0.0"}`)})
	require.NoError(t, err)
	assert.Contains(t, compact(t, out), strings.Join(cni.SupportedVersions(), `","`))
}
