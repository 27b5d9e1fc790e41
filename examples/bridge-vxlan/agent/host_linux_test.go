package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/file"
)

// patience is how long a test waits for what takes milliseconds, or a second until an
// API server is asked again, on a machine that does nothing else.
const patience = time.Minute

// host is a namespace with an address on an underlay of its own, and the directories
// that an agent works in.
type host struct {
	ns    *cnitest.Namespace
	dir   string
	run   string   // a directory below /run
	flags []string // of run, but for the source
	agent *cnitest.Cmd
}

func newHost(t *testing.T) *host { return newHostOn(t, 1500) }

func newHostOn(t *testing.T, mtu int) *host {
	return joinHost(t, newUnderlay(t, mtu), "a", "192.0.2.1/24")
}

func newUnderlay(t *testing.T, mtu int) *cnitest.Underlay {
	testenv.NetAdmin(t)
	testenv.Kernel(t, testenv.VXLAN)
	wire, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { _ = wire.Remove() })
	underlay, err := cnitest.NewUnderlay(wire, mtu)
	require.NoError(t, err)
	return underlay
}

// joinHost makes the host of a node on an underlay that hosts share.
func joinHost(t *testing.T, underlay *cnitest.Underlay, node, addr string) *host {
	ns, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Remove() })
	require.NoError(t, underlay.Join(t.Context(), ns, "eth0", netip.MustParsePrefix(addr)))
	h := &host{ns: ns, dir: t.TempDir(), run: newRunDir(t)}
	t.Cleanup(func() {
		for _, path := range h.locks(t) { // of agents that were killed
			require.NoError(t, os.Remove(path))
		}
	})
	h.flags = []string{
		"-node", node, "-conf-dir", h.path("net.d"), "-data-dir", h.path("leases"),
		"-status-file", h.statusFile(), "-resync", "-1s",
	}
	return h
}

// newRunDir makes a directory where plugins accept a status file. In a user namespace
// only the user's own is open to the test.
func newRunDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/run", "cnikit-agent-test-")
	if own := os.Getenv("XDG_RUNTIME_DIR"); errors.Is(err, fs.ErrPermission) && strings.HasPrefix(own, "/run/") {
		dir, err = os.MkdirTemp(own, "cnikit-agent-test-")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// locks are the lock files of agents on the host.
func (h *host) locks(t *testing.T) []string {
	info, err := os.Stat(h.ns.Path())
	require.NoError(t, err)
	ns := info.Sys().(*syscall.Stat_t)
	paths, err := filepath.Glob(fmt.Sprintf("/run/cnikit/netns-%d-%d-agent-*.lock", ns.Dev, ns.Ino))
	require.NoError(t, err)
	return paths
}

func (h *host) statusFile() string { return filepath.Join(h.run, "status", "a.json") }

func (h *host) conflist() string { return h.path("net.d", "10-cnikit.conflist") }

func (h *host) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

func (h *host) publish(t *testing.T, nodes ...overlay.Node) {
	require.NoError(t, file.Write(h.path("topology.json"), nodes))
}

// command prepares the program, which says what it has to say in the log.
func (h *host) command(t *testing.T, args ...string) *cnitest.Cmd {
	cmd := h.ns.Command(context.WithoutCancel(t.Context()), agentProgram(t), args...)
	log, err := os.OpenFile(h.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

func agentProgram(t *testing.T) string {
	return testenv.Build(t, "github.com/cnikit/cnikit/examples/bridge-vxlan/agent")
}

// uninstall runs the command for what run with the host's flags sets up, and returns
// what it said.
func (h *host) uninstall(t *testing.T, flags ...string) (string, error) {
	args := append([]string{
		"uninstall", "-conf-dir", h.path("net.d"), "-status-file", h.statusFile(), "-bin-dir", h.path("bin"),
	}, flags...)
	out, err := h.ns.Command(t.Context(), agentProgram(t), args...).CombinedOutput()
	return string(out), err
}

func (h *host) log() string {
	data, _ := os.ReadFile(h.path("log"))
	return string(data)
}

// start starts the agent on the topology file.
func (h *host) start(t *testing.T, flags ...string) {
	h.startAgent(t, append([]string{"-topology", h.path("topology.json")}, flags...)...)
}

// startOn starts the agent on an API server.
func (h *host) startOn(t *testing.T, api *apiServer, flags ...string) {
	h.startAgent(t, append([]string{"-source", "kube", "-kubeconfig", api.kubeconfig(t)}, flags...)...)
}

func (h *host) startAgent(t *testing.T, flags ...string) {
	agent := h.command(t, slices.Concat([]string{"run"}, h.flags, flags)...)
	h.agent = agent
	require.NoError(t, agent.Start())
	t.Cleanup(func() {
		if agent.ProcessState == nil {
			_ = agent.Process.Kill()
			_ = agent.Wait()
		}
		if t.Failed() {
			t.Log(h.log())
		}
	})
}

// end has the agent end as an init system does.
func (h *host) end(t *testing.T) {
	require.NoError(t, h.agent.Process.Signal(syscall.SIGTERM))
	require.NoError(t, h.agent.Wait(), "exit code 0")
}

// kill ends the agent so that it has no say in it.
func (h *host) kill(t *testing.T) {
	require.NoError(t, h.agent.Process.Kill())
	require.Error(t, h.agent.Wait())
}

// do runs a command in the host's namespace.
func (h *host) do(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	out, err := h.ns.Command(t.Context(), testenv.Tool(t, words[0]), words[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
}

// state is the state of the host as text, but for what the kernel derives from link-local
// addresses: it gives an interface one in its own time.
func (h *host) state(t *testing.T) cnitest.State {
	t.Helper()
	state, err := h.ns.State()
	require.NoError(t, err)
	return slices.DeleteFunc(state, func(line string) bool { return strings.Contains(line, " fe80:") || strings.Contains(line, " ff00:") })
}

// status waits for the status file to be as wanted.
func (h *host) status(t *testing.T, wanted func(report) bool) report {
	t.Helper()
	var r report
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(h.statusFile())
		if err != nil {
			return false
		}
		r = report{}
		require.NoError(t, json.Unmarshal(data, &r), "the status file is never seen in part")
		return wanted(r)
	}, patience, 5*time.Millisecond, "status is %+v", &r)
	return r
}

func isReady(r report) bool  { return r.Ready }
func notReady(r report) bool { return !r.Ready }

func member(name, addr, cidr4, cidr6 string) overlay.Node {
	return overlay.Node{
		Name: name, UID: "uid-" + name, Created: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		PodCIDRs: []string{cidr4, cidr6}, Addresses: []string{addr},
	}
}

func nodeA() overlay.Node { return member("a", "192.0.2.1", "10.244.1.0/24", "fd00:1::/64") }
func nodeB() overlay.Node { return member("b", "192.0.2.2", "10.244.2.0/24", "fd00:2::/64") }

// routes waits until the host has the routes of some Pod CIDRs, and not those of others.
func (h *host) routes(t *testing.T, present, absent []string) {
	t.Helper()
	var state cnitest.State
	has := func(cidr string) bool {
		return slices.ContainsFunc(state, func(line string) bool {
			return strings.HasPrefix(line, "route ") && strings.Contains(line, " "+cidr+" via ")
		})
	}
	require.Eventually(t, func() (ok bool) {
		var err error
		state, err = h.ns.State()
		require.NoError(t, err)
		return !slices.ContainsFunc(present, func(c string) bool { return !has(c) }) && !slices.ContainsFunc(absent, has)
	}, patience, 10*time.Millisecond, "present %v, absent %v in\n%s", present, absent, &state)
}

// raw writes a topology file as a person might.
func (h *host) raw(t *testing.T, content string) {
	require.NoError(t, install.WriteFile(h.path("topology.json"), install.File{Content: []byte(content)}))
}
