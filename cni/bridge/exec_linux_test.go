package bridge_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

// executable runs the program of the plugin, which has an IPAM plugin built in, as a
// runtime on the node would.
type executable struct {
	*node
	dir    string
	leases string // directory of the IPAM plugin
}

func newExecutable(t *testing.T) *executable {
	t.Helper()
	n := newNode(t)
	e := &executable{node: n, dir: t.TempDir(), leases: t.TempDir()}
	program := testenv.Build(t, "github.com/cnikit/cnikit/examples/bridge-vxlan/bridge")
	require.NoError(t, os.Symlink(program, filepath.Join(e.dir, "cnikit-bridge")))
	return e
}

func (e *executable) config(edits ...any) map[string]any {
	return config(append([]any{"ipam", map[string]any{"type": "cnikit-ipam", "dataDir": e.leases,
		"ranges": [][]map[string]string{{{"subnet": "10.1.0.0/24"}}, {{"subnet": "fd00:1::/64"}}}}}, edits...)...)
}

func (e *executable) run(t *testing.T, inv cni.Invocation, config map[string]any) (out []byte, err error) {
	var encodeErr error
	inv.Config, encodeErr = json.Marshal(config)
	require.NoError(t, encodeErr)
	inv.Path = []string{e.dir}
	err = e.ns.Do(func() error {
		out, err = cni.Exec{Stderr: t.Output()}.Execute(t.Context(), "cnikit-bridge", inv)
		return err
	})
	return out, err
}

// held lists the addresses that are given out.
func (e *executable) held(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(e.leases, "pods"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	var held []string
	for _, entry := range entries {
		if _, err := netip.ParseAddr(entry.Name()); err == nil {
			held = append(held, entry.Name())
		}
	}
	return held
}

func TestExecuted(t *testing.T) {
	e, pod := newExecutable(t), newSpace(t, "c1")
	c := e.config()
	inPod := pod.state(t)

	_, err := e.run(t, cni.Invocation{Command: cni.CommandStatus}, c)
	require.NoError(t, err)
	out, err := e.run(t, invocation(cni.CommandAdd, pod, "eth0"), c)
	require.NoError(t, err)
	result, err := cni.ParseResult(out, "")
	require.NoError(t, err)
	require.Equal(t, pod.ns.Path(), result.Interfaces[2].Sandbox)
	for _, ip := range result.IPs {
		requireReach(t, pod, e.space, ip.Gateway, 100)
	}
	require.Len(t, e.held(t), 2)

	with := e.config("prevResult", json.RawMessage(out))
	_, err = e.run(t, invocation(cni.CommandCheck, pod, "eth0"), with)
	require.NoError(t, err)
	for range 2 {
		_, err = e.run(t, invocation(cni.CommandDel, pod, "eth0"), with)
		require.NoError(t, err)
	}
	require.Equal(t, inPod, pod.state(t))
	require.Empty(t, e.held(t))
}

func TestExecutedLatency(t *testing.T) {
	e := newExecutable(t)
	requireFast(t, func(pod *space) {
		_, err := e.run(t, invocation(cni.CommandAdd, pod, "eth0"), e.config())
		require.NoError(t, err)
	})
}

func TestExecutedFailure(t *testing.T) {
	e, pod := newExecutable(t), newSpace(t, "c1")
	e.addBridge(t, "cni0", "10.77.0.1/16")
	onNode, inPod := e.state(t), pod.state(t)
	_, err := e.run(t, invocation(cni.CommandAdd, pod, "eth0"), e.config())
	requireCode(t, err, cni.CodeInvalidConfig, "10.77.0.1/16", "forceAddress")
	require.Equal(t, onNode, e.state(t))
	require.Equal(t, inPod, pod.state(t))
	require.Empty(t, e.held(t))
}

func TestExecutedParallel(t *testing.T) {
	const count = 24
	e := newExecutable(t)
	pods := make([]*space, count)
	for i := range pods {
		pods[i] = newSpace(t, fmt.Sprint("c", i))
	}
	errs := make([]error, count)
	var all sync.WaitGroup
	start := time.Now()
	for i := range pods {
		all.Go(func() { _, errs[i] = e.run(t, invocation(cni.CommandAdd, pods[i], "eth0"), e.config()) })
	}
	all.Wait()
	t.Logf("%d parallel executed first ADDs: %v", count, time.Since(start).Round(time.Millisecond))
	for i, pod := range pods {
		require.NoError(t, errs[i])
		requireReach(t, pod, e.space, netip.MustParseAddr("fd00:1::1"), 10)
	}
	require.Len(t, e.held(t), 2*count)

	_, err := e.run(t, cni.Invocation{Command: cni.CommandGC}, e.config("cni.dev/valid-attachments", []cni.Attachment{{ContainerID: "c0", IfName: "eth0"}}))
	require.NoError(t, err)
	require.Len(t, e.held(t), 2)
	require.NotNil(t, pods[0].link(t, "eth0"))
	require.Nil(t, pods[1].link(t, "eth0"))
}
