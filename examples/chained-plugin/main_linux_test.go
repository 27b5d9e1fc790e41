package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// The plugin keeps the specification.
func TestConformance(t *testing.T) {
	cnitest.Run(t, cnitest.Target{
		Path:    []string{executable(t, "chained-plugin", "github.com/cnikit/cnikit/examples/chained-plugin")},
		Config:  []byte(`{"name": "net", "type": "chained-plugin", "stateDir": "{{dir}}", "settings": {"ipv4/conf/rp_filter": "2", "ipv4/conf/arp_notify": "1"}}`),
		Profile: cnitest.ProfileChained,
	}, cnitest.Options{Parallel: true, Kills: testenv.Scale(t, 8)})
}

// executable returns a directory with a program of this repository.
func executable(t *testing.T, name, program string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink(testenv.Build(t, program), filepath.Join(dir, name)))
	return dir
}

const setting = "ipv4/conf/rp_filter"

// lab is a node with the executables of the bridge and of this plugin, and a container.
type lab struct {
	node, pod *cnitest.Namespace
	runner    chain.Runner
	state     string
	list      *chain.List
}

func newLab(t *testing.T) *lab {
	t.Helper()
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	l := &lab{node: newNamespace(t), pod: newNamespace(t), state: t.TempDir()}
	l.runner = chain.Runner{
		Path: []string{
			executable(t, "cnikit-bridge", "github.com/cnikit/cnikit/examples/bridge-vxlan/bridge"),
			executable(t, "chained-plugin", "github.com/cnikit/cnikit/examples/chained-plugin"),
		},
		CacheDir: t.TempDir(), Executor: l.node.Executor(cni.Exec{Stderr: t.Output()}),
	}
	var err error
	l.list, err = chain.Parse(fmt.Appendf(nil, `{"cniVersion": "1.1.0", "name": "pods", "plugins": [
		{"type": "cnikit-bridge"}, {"type": "chained-plugin", "stateDir": %q, "settings": {%q: "2"}}]}`, l.state, setting))
	require.NoError(t, err)
	return l
}

func newNamespace(t *testing.T) *cnitest.Namespace {
	t.Helper()
	ns, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ns.Remove()) })
	return ns
}

func (l *lab) attachment() chain.Attachment {
	return chain.Attachment{ContainerID: "c1", NetNS: l.pod.Path(), IfName: "eth0"}
}

// inPod does something with the settings of the container's interface.
func (l *lab) inPod(t *testing.T, fn func(pod *netif.Namespace)) {
	t.Helper()
	pod, err := netif.Open(l.pod.Path())
	require.NoError(t, err)
	defer pod.Close()
	fn(pod)
}

func (l *lab) value(t *testing.T) (value string) {
	t.Helper()
	l.inPod(t, func(pod *netif.Namespace) {
		var err error
		value, err = pod.Setting("eth0", setting)
		require.NoError(t, err)
	})
	return value
}

func (l *lab) set(t *testing.T, value string) {
	t.Helper()
	l.inPod(t, func(pod *netif.Namespace) {
		_, err := pod.SetSetting("eth0", setting, value)
		require.NoError(t, err)
	})
}

// call runs this plugin alone, in the test's own process.
func (l *lab) call(ctx context.Context, t *testing.T, command cni.Command, members map[string]any) error {
	t.Helper()
	document := map[string]any{"cniVersion": "1.1.0", "name": "pods", "type": "chained-plugin", "stateDir": l.state, "settings": map[string]string{setting: "2"}}
	maps.Copy(document, members)
	config, err := json.Marshal(document)
	require.NoError(t, err)
	_, err = plugin().Handler().Handle(ctx, cni.Invocation{Command: command, ContainerID: "c1", NetNS: l.pod.Path(), IfName: "eth0", Config: config})
	return err
}

func (l *lab) files(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(l.state)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// attached is a lab with a container behind a bridge, but without this plugin.
func attached(t *testing.T) (*lab, *cni.Result) {
	t.Helper()
	l := newLab(t)
	result, err := l.runner.Add(t.Context(), l.list, l.attachment())
	require.NoError(t, err)
	require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil))
	require.Equal(t, "0", l.value(t))
	return l, result
}

var something = map[string]any{"prevResult": map[string]any{"cniVersion": "1.1.0"}}

func TestChain(t *testing.T) {
	l := newLab(t)
	result, err := l.runner.Add(t.Context(), l.list, l.attachment())
	require.NoError(t, err)
	require.Len(t, result.Interfaces, 3, "what the bridge reported is kept")
	require.Equal(t, "2", l.value(t))
	require.Equal(t, []string{"pods@c1@eth0"}, l.files(t))
	require.NoError(t, l.runner.Check(t.Context(), l.list, l.attachment()))

	l.set(t, "1")
	require.ErrorContains(t, l.runner.Check(t.Context(), l.list, l.attachment()), setting+` of eth0 is "1", not "2"`)

	for range 2 {
		require.NoError(t, l.runner.Del(t.Context(), l.list, l.attachment()))
	}
	require.Empty(t, l.files(t))
}

func TestDel(t *testing.T) {
	t.Run("restores", func(t *testing.T) {
		l, _ := attached(t)
		l.set(t, "1")
		require.NoError(t, l.call(t.Context(), t, cni.CommandAdd, something))
		require.Equal(t, "2", l.value(t))
		for range 2 {
			require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil))
			require.Equal(t, "1", l.value(t))
			require.Empty(t, l.files(t))
		}
	})
	t.Run("without a namespace there is only the file", func(t *testing.T) {
		l, _ := attached(t)
		require.NoError(t, l.call(t.Context(), t, cni.CommandAdd, something))
		gone := *l
		gone.pod = newNamespace(t)
		require.NoError(t, gone.pod.Remove())
		require.NoError(t, gone.call(t.Context(), t, cni.CommandDel, nil))
		require.Empty(t, l.files(t))
	})
	t.Run("leaves another interface that has the name now", func(t *testing.T) {
		l, _ := attached(t)
		require.NoError(t, l.call(t.Context(), t, cni.CommandAdd, something))
		l.inPod(t, func(pod *netif.Namespace) { require.NoError(t, pod.DeleteLink("eth0")) })
		_, err := l.runner.Add(t.Context(), l.list, chain.Attachment{ContainerID: "c2", NetNS: l.pod.Path(), IfName: "eth0"})
		require.NoError(t, err)
		l.set(t, "1")
		require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil))
		require.Equal(t, "1", l.value(t))
		require.Equal(t, []string{"pods@c2@eth0"}, l.files(t))
	})
	t.Run("gets over a torn file", func(t *testing.T) {
		l, _ := attached(t)
		require.NoError(t, os.WriteFile(filepath.Join(l.state, "pods@c1@eth0"), []byte(`{"old":`), 0o600))
		require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil))
		require.Empty(t, l.files(t))
	})
}

func TestAddAfterAKilledOne(t *testing.T) {
	l, _ := attached(t)
	require.NoError(t, l.call(t.Context(), t, cni.CommandAdd, something))
	// As if the first had been killed before it answered: the runtime tries again.
	require.NoError(t, l.call(t.Context(), t, cni.CommandAdd, something))
	require.NoError(t, l.call(t.Context(), t, cni.CommandDel, nil))
	require.Equal(t, "0", l.value(t), "what was before both")
}

func TestUndo(t *testing.T) {
	l, _ := attached(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, l.call(ctx, t, cni.CommandAdd, something), "cancelled")
	require.Equal(t, "0", l.value(t))
	require.Empty(t, l.files(t))
}

func TestGC(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"pods@c1@eth0", "pods@c2@eth0", ".pods@c3@eth0.cnikit-tmp-1", "other@c1@eth0", "unrelated"} {
		require.NoError(t, os.WriteFile(filepath.Join(l.state, name), nil, 0o600))
	}
	require.NoError(t, l.call(t.Context(), t, cni.CommandGC, map[string]any{"cni.dev/valid-attachments": []cni.Attachment{{ContainerID: "c2", IfName: "eth0"}}}))
	require.Equal(t, []string{"other@c1@eth0", "pods@c2@eth0", "unrelated"}, l.files(t))
}

func TestStatus(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.call(t.Context(), t, cni.CommandStatus, nil))
	require.Empty(t, l.files(t))
	err := l.call(t.Context(), t, cni.CommandStatus, map[string]any{"stateDir": "/proc/nowhere"})
	var e *cni.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, cni.CodeNotAvailable, e.Code)
}

func TestRefused(t *testing.T) {
	l, _ := attached(t)
	for rule, test := range map[string]struct {
		members map[string]any
		err     string
	}{
		"no settings":          {map[string]any{"settings": nil, "prevResult": something["prevResult"]}, "settings=null: is empty"},
		"no setting":           {map[string]any{"settings": map[string]string{"kernel/panic": "1"}}, `settings="kernel/panic": is no setting of an interface`},
		"relative":             {map[string]any{"stateDir": "x"}, `stateDir="x": is not absolute`},
		"first of a list":      {nil, `put the plugin "chained-plugin" behind one that makes an interface`},
		"unknown":              {map[string]any{"settings": map[string]string{"ipv4/conf/nothing": "1"}, "prevResult": something["prevResult"]}, `settings="ipv4/conf/nothing": cannot be read`},
		"not a value":          {map[string]any{"settings": map[string]string{setting: "x"}, "prevResult": something["prevResult"]}, `settings.ipv4/conf/rp_filter="x": cannot be set`},
		"not as kernel has it": {map[string]any{"settings": map[string]string{setting: "02"}, "prevResult": something["prevResult"]}, `is "2", not "02"`},
	} {
		t.Run(rule, func(t *testing.T) {
			require.ErrorContains(t, l.call(t.Context(), t, cni.CommandAdd, test.members), test.err)
			require.Equal(t, "0", l.value(t))
			require.Empty(t, l.files(t))
		})
	}
}
