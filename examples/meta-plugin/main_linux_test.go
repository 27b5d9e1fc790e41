package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/internal/testenv"
)

// entry is the plugin in a network configuration: two bridges with addresses, and a third
// network that shares the name, and so the addresses, of the second.
func entry(state string) string {
	const network = `{"name": %[1]q, "type": "cnikit-bridge", "bridge": %[2]q, "ipam": {"type": "cnikit-ipam", "dataDir": %[4]q, "ranges": [[{"subnet": %[3]q}]]}}`
	return `"type": "meta-plugin", "networks": [` +
		fmt.Sprintf(network, "front", "br-front", "10.1.0.0/24", state) + `,` +
		fmt.Sprintf(network, "back", "br-back", "10.2.0.0/24", state) + `,` +
		fmt.Sprintf(network, "back", "br-back", "10.2.0.0/24", state) + `]`
}

// The plugin keeps the specification.
func TestConformance(t *testing.T) {
	cnitest.Run(t, cnitest.Target{
		Path:    []string{plugins(t)},
		Config:  []byte(`{"name": "pods", ` + entry("{{dir}}") + `}`),
		Profile: cnitest.ProfileMeta,
	}, cnitest.Options{Parallel: true, Kills: testenv.Scale(t, 8)})
}

// plugins is a directory with the executables.
func plugins(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, program := range map[string]string{
		"meta-plugin": "meta-plugin", "cnikit-bridge": "bridge-vxlan/bridge", "cnikit-ipam": "bridge-vxlan/ipam",
	} {
		program := testenv.Build(t, "github.com/cnikit/cnikit/examples/"+program)
		require.NoError(t, os.Symlink(program, filepath.Join(dir, name)))
	}
	return dir
}

// lab is a node that runs containers with three interfaces.
type lab struct {
	node   *cnitest.Namespace
	runner chain.Runner
	list   *chain.List
	state  string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	l := &lab{node: newNamespace(t), state: t.TempDir()}
	l.runner = chain.Runner{Path: []string{plugins(t)}, CacheDir: t.TempDir(), Executor: l.node.Executor(cni.Exec{Stderr: t.Output()})}
	var err error
	l.list, err = chain.Parse([]byte(`{"cniVersion": "1.1.0", "name": "pods", "plugins": [{` + entry(l.state) + `}]}`))
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

// look leaves out what the kernel adds for IPv6 some time after an interface is up.
func (l *lab) look(t *testing.T) cnitest.State {
	t.Helper()
	state, err := l.node.State()
	require.NoError(t, err)
	state = slices.DeleteFunc(state, func(line string) bool { return strings.Contains(line, "fe80::") || strings.Contains(line, "ff00::") })
	return append(state, l.leases(t)...)
}

// leases are the addresses that are given out, one file each, and their owners.
func (l *lab) leases(t *testing.T) (leases []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(l.state, "*", "10.*"))
	require.NoError(t, err)
	for _, file := range files {
		owner, err := os.ReadFile(file)
		require.NoError(t, err)
		leases = append(leases, filepath.Base(file)+" "+string(owner))
	}
	return leases
}

func pod(id string, ns *cnitest.Namespace) chain.Attachment {
	return chain.Attachment{ContainerID: id, NetNS: ns.Path(), IfName: "eth0"}
}

func TestNetworks(t *testing.T) {
	l := newLab(t)
	one, other := newNamespace(t), newNamespace(t)
	_, err := l.runner.Add(t.Context(), l.list, pod("other", other)) // it stays, and with it the bridges
	require.NoError(t, err)
	before := l.look(t)

	result, err := l.runner.Add(t.Context(), l.list, pod("one", one))
	require.NoError(t, err)
	inPod, err := netif.Open(one.Path())
	require.NoError(t, err)
	defer inPod.Close()
	for name, subnet := range map[string]string{"eth0": "10.1.0.0/24", "net1": "10.2.0.0/24", "net2": "10.2.0.0/24"} {
		_, index := result.Interface(name, one.Path())
		addrs := result.Addresses(index)
		require.Len(t, addrs, 1, "the result has the address of %s", name)
		require.True(t, netip.MustParsePrefix(subnet).Contains(addrs[0].Addr()))
		has, err := inPod.Addresses(name)
		require.NoError(t, err)
		require.Contains(t, has, addrs[0])
	}
	require.NoError(t, l.runner.Check(t.Context(), l.list, pod("one", one)))
	require.NoError(t, l.runner.Status(t.Context(), l.list))

	// GC must know all interfaces of both containers, whichever network it is told about.
	running := l.look(t)
	valid := []cni.Attachment{{ContainerID: "one", IfName: "eth0"}, {ContainerID: "other", IfName: "eth0"}}
	require.NoError(t, l.runner.GC(t.Context(), l.list, valid))
	require.Empty(t, running.Diff(l.look(t)))

	require.NoError(t, inPod.DeleteLink("net2"))
	require.ErrorContains(t, l.runner.Check(t.Context(), l.list, pod("one", one)), "net2")

	for range 2 {
		require.NoError(t, l.runner.Del(t.Context(), l.list, pod("one", one)))
		require.Empty(t, before.Diff(l.look(t)))
	}
}

func TestGC(t *testing.T) {
	l := newLab(t)
	stays, leaks := newNamespace(t), newNamespace(t)
	_, err := l.runner.Add(t.Context(), l.list, pod("stays", stays))
	require.NoError(t, err)
	before := l.look(t)
	_, err = l.runner.Add(t.Context(), l.list, pod("leaks", leaks))
	require.NoError(t, err)
	require.Len(t, l.leases(t), 6)

	forgetful := l.runner
	forgetful.CacheDir = t.TempDir() // a runtime that knows nothing of the second
	require.NoError(t, forgetful.GC(t.Context(), l.list, []cni.Attachment{{ContainerID: "stays", IfName: "eth0"}}))
	require.Empty(t, before.Diff(l.look(t)))
	require.NoError(t, l.runner.Check(t.Context(), l.list, pod("stays", stays)))
}

func TestFailedAdd(t *testing.T) {
	l := newLab(t)
	_, err := l.runner.Add(t.Context(), l.list, pod("other", newNamespace(t)))
	require.NoError(t, err)
	before := l.look(t)
	broken := strings.Replace(entry(l.state), `"bridge": "br-back", "ipam": {"type": "cnikit-ipam"`, `"bridge": "br-back", "ipam": {"type": "absent"`, 1)
	list, err := chain.Parse([]byte(`{"cniVersion": "1.1.0", "name": "pods", "plugins": [{` + broken + `}]}`))
	require.NoError(t, err)
	_, err = l.runner.Add(t.Context(), list, pod("one", newNamespace(t)))
	require.ErrorContains(t, err, `"absent"`)
	require.Empty(t, before.Diff(l.look(t)), "the networks before it are detached")
}

// An interface that is there belongs to somebody, and a failure must not take it away.
func TestNameInUse(t *testing.T) {
	l := newLab(t)
	ns := newNamespace(t)
	require.NoError(t, ns.Do(func() error {
		here, err := netif.Current()
		if err != nil {
			return err
		}
		defer here.Close()
		_, _, err = here.CreateVeth(netif.Veth{Name: "net2", Peer: "taken"}, here)
		return err
	}))
	_, err := l.runner.Add(t.Context(), l.list, pod("one", ns))
	require.ErrorContains(t, err, `interface "net2": interface exists`)
	inPod, err := netif.Open(ns.Path())
	require.NoError(t, err)
	defer inPod.Close()
	_, err = inPod.Link("net2")
	require.NoError(t, err)
}

func TestRefused(t *testing.T) {
	l := newLab(t)
	for want, entry := range map[string]string{
		`networks=[]: is empty`:                      `"networks": []`,
		`type of a delegate: "../x" is not the name`: `"networks": [{"type": "../x"}]`,
		`plugin not found`:                           `"networks": [{"type": "absent"}]`,
		`Config="x": is no JSON object`:              `"networks": ["x"]`,
	} {
		list, err := chain.Parse([]byte(`{"cniVersion": "1.1.0", "name": "pods", "plugins": [{"type": "meta-plugin", ` + entry + `}]}`))
		require.NoError(t, err)
		_, err = l.runner.Add(t.Context(), list, pod("one", newNamespace(t)))
		require.ErrorContains(t, err, want)
	}
}
