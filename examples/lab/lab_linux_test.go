package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay"
)

// TestLab runs the lab as it is, and then breaks it: a lab that cannot fail proves
// nothing.
func TestLab(t *testing.T) {
	testenv.Root(t)
	testenv.Kernel(t, testenv.Veth, testenv.Bridge, testenv.VXLAN)
	for _, tool := range []string{"ip", "bridge", "unshare", "mount"} {
		testenv.Tool(t, tool)
	}
	bin := buildAll(t)

	t.Run("passes", func(t *testing.T) {
		r := newRun(t, bin, "pass")
		require.Equal(t, exitOK, r.run(t, nil), "%s", r.output())
		for _, want := range []string{
			"node3 ", "node1-pod2 ", "30 pairs of pods in both families, none lost",
			"1450  1450", "fragments made by the nodes: none",
			"forwarding entry  bridge fdb del ", "conflist deleted  rm CONF/10-cnikit.conflist",
			"node4 is ready", "gone from the others", "thief", "cnitool: ", "net1: ",
			"UDP echo, IPv4 ", "TCP stream, IPv6 ", "The restart wrote nothing", "done: every step",
		} {
			require.Contains(t, r.output(), want)
		}
		require.Len(t, regexp.MustCompile(`(?m)^ +(route|neighbour|forwarding|device|conflist).* ms$`).FindAllString(r.output(), -1), 8,
			"milliseconds to repair of every drift:\n%s", r.output())
		r.requireNothingLeft(t)
	})
	t.Run("refuses", func(t *testing.T) { testRefuses(t, bin) })
	// Labs of different names do not see each other, and mostly wait.
	t.Run("sabotage", func(t *testing.T) { testSabotage(t, bin) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, bin) })
	t.Run("killed", func(t *testing.T) { testKilled(t, bin) })
	t.Run("kept and taken down", func(t *testing.T) { testKept(t, bin) })
}

// testSabotage breaks one thing behind the lab's back: the step that looks at it must
// fail, say what it saw, and leave nothing.
func testSabotage(t *testing.T, bin string) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		lab    string
		step   string
		breaks func(context.Context, *lab) error
		seen   string
	}{
		{"one forwarding entry missing and no agent", "fdb", "ping", loseForwardingEntry, "node1-pod1 to node2-pod1: ping 10.244.2.2 .*no reply"},
		{"a tunnel with the MTU of the underlay", "mtu", "mtu", raiseMTUs, `1500 bytes; fragments made: .*IpFragCreates of node1 is \d+`},
		{"a program that writes", "idle", "idle", keepWriting, "node1: (new|delete) route ipv4 198.51.100.0"},
		{"no agent", "drift", "drift", func(_ context.Context, l *lab) error { return l.nodes[0].stopAgent() }, "- route ipv4 10.244.2.0/24 via 10.244.2.0"},
		{"one lease left", "lease", "sweep", leaveLease, "lease .*/node2/data/cnikit/10.244.2.77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, bin, c.lab, "-nodes", "2", "-pods", "1")
			code := r.run(t, func(ctx context.Context, step string, l *lab) error {
				if step != c.step {
					return nil
				}
				return c.breaks(ctx, l)
			})
			require.Equal(t, exitFailed, code, "%s", r.output())
			require.Regexp(t, `FAILED after [\d.]+s: step "`+c.step+`"\n  expected: .*\n(?s:.*)  seen: +(?s:.*)`+c.seen, r.output())
			require.NotContains(t, r.output(), "done: ")
			r.requireNothingLeft(t)
			r.requireLogs(t)
		})
	}
}

func loseForwardingEntry(ctx context.Context, l *lab) error {
	n, other := l.nodes[0], l.nodes[1].member
	return errors.Join(n.stopAgent(),
		n.operate(ctx, "bridge", "fdb", "del", overlay.TunnelMAC(other.UID).String(), "dev", device, "dst", other.Addresses[0]))
}

// raiseMTUs sets every MTU between the pods to that of the underlay, which the tunnel's
// packets then do not fit. The kernel lets a tunnel have no larger MTU than its underlay
// has room for at that moment.
func raiseMTUs(ctx context.Context, l *lab) error {
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, n.stopAgent(), n.operate(ctx, "sh", "-ec", `
			ip link set eth0 mtu 1600
			for dev in $(ip -o link | cut -d: -f2 | cut -d@ -f1); do
				case $dev in lo|eth0) ;; *) ip link set "$dev" mtu 1500 ;; esac
			done
			ip link set eth0 mtu 1500`))
		for _, p := range n.pods {
			errs = append(errs, p.ns.Command(ctx, "ip", "link", "set", "eth0", "mtu", "1500").Run())
		}
	}
	return errors.Join(errs...)
}

// keepWriting starts a process that changes a route ten times a second.
func keepWriting(ctx context.Context, l *lab) error {
	return l.nodes[0].operate(ctx, "sh", "-ec", `
		while :; do
			ip route add blackhole 198.51.100.0/24
			ip route del blackhole 198.51.100.0/24
			sleep 0.1
		done >/dev/null 2>&1 &`)
}

func leaveLease(_ context.Context, l *lab) error {
	dir := filepath.Join(l.nodes[1].dataDir(), network)
	return os.WriteFile(filepath.Join(dir, "10.244.2.77"), []byte("forgotten\r\neth0"), 0o600)
}

// testInterrupted sends what Ctrl-C sends, in the middle of a step.
func testInterrupted(t *testing.T, bin string) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"int": os.Interrupt, "term": syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			r := newRun(t, bin, name, "-nodes", "2", "-pods", "1")
			cmd := r.start(t)
			r.readUntil(t, "] drift: ")
			require.NoError(t, cmd.Process.Signal(signal))
			r.readRest(t)
			require.Error(t, cmd.Wait())
			require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode(), "%s", r.output())
			require.Contains(t, r.output(), "clean-up: removed ")
			r.requireNothingLeft(t)
		})
	}
}

// testKilled kills the lab in the middle of a step, so that everything is left.
func testKilled(t *testing.T, bin string) {
	t.Parallel()
	r := newRun(t, bin, "kill", "-nodes", "2", "-pods", "1")
	cmd := r.start(t)
	r.readUntil(t, "] drift: ")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	left, err := cnitest.FindNamespaces(namespaceDir, r.prefix())
	require.NoError(t, err)
	require.Len(t, left, 5, "the underlay, two nodes, two pods")

	enough := errors.New("enough")
	require.Equal(t, exitFailed, r.run(t, func(context.Context, string, *lab) error { return enough }), "%s", r.output())
	// The agents, and what the lab was just executing.
	require.Regexp(t, `leftovers: an earlier run did not clean up; removed 5 namespaces, [2-9] processes, \d+ files\n(?s:.*)cnikit-agent run -node node1`, r.output())
	r.requireNothingLeft(t)
}

// testKept leaves a lab up, which nobody but -down takes down.
func testKept(t *testing.T, bin string) {
	t.Parallel()
	r := newRun(t, bin, "kept", "-nodes", "2", "-pods", "1")
	require.Equal(t, exitOK, r.run(t, nil, "-keep"), "%s", r.output())
	require.Contains(t, r.output(), "-down -name "+r.name)
	ns, err := cnitest.OpenNamespace(filepath.Join(namespaceDir, r.prefix()+"node1"))
	require.NoError(t, err)
	defer func() { require.NoError(t, ns.Close()) }()
	processes, err := ns.Processes()
	require.NoError(t, err)
	require.Len(t, processes, 1, "the agent runs on")

	require.Equal(t, exitCannotRun, r.run(t, nil), "%s", r.output())
	require.Contains(t, r.output(), "is up, -keep left it")

	require.Equal(t, exitOK, r.run(t, nil, "-down"), "%s", r.output())
	require.Contains(t, r.output(), "removed 5 namespaces, 2 processes")
	r.requireNothingLeft(t)
}

func testRefuses(t *testing.T, bin string) {
	r := newRun(t, bin, "no")
	refuses := func(t *testing.T, want string, args ...string) {
		t.Helper()
		require.Equal(t, exitCannotRun, r.run(t, nil, args...))
		require.Regexp(t, "(?s)^cnikit-lab: [^\n]*"+want+"[^\n]*\n$", r.errs.String(), "one line that names it")
		r.requireNothingLeft(t)
	}
	for want, args := range map[string][]string{
		`-nodes 1: use 2 to 200`:             {"-nodes", "1"},
		`-pods 0: use 1 to 100`:              {"-pods", "0"},
		`-name "a-b": use 1 to 16 lower`:     {"-name", "a-b"},
		`-keep and -down: use one of them`:   {"-keep", "-down"},
		`argument "up": not a flag`:          {"up"},
		`the program cnikit-agent in /empty`: {"-bin", "/empty"},
	} {
		t.Run(want, func(t *testing.T) { refuses(t, want, args...) })
	}
	t.Run("a second lab of the same name", func(t *testing.T) {
		unlock, err := lockDir(filepath.Join(runDir, r.name))
		require.NoError(t, err)
		require.Equal(t, exitCannotRun, r.run(t, nil))
		unlock()
		require.Contains(t, r.errs.String(), fmt.Sprintf("lab %q is running", r.name))
		r.requireNothingLeft(t)
	})
	t.Run("a program that is not installed", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		refuses(t, "needs the program \"ip\": install it")
	})
	t.Run("not root", func(t *testing.T) {
		// Nobody reaches the user's cache, where the executable is.
		dir, err := os.MkdirTemp("", "cnikit-lab-test-")
		require.NoError(t, err)
		defer func() { require.NoError(t, os.RemoveAll(dir)) }()
		require.NoError(t, os.Chmod(dir, 0o755))
		content, err := os.ReadFile(filepath.Join(bin, "cnikit-lab"))
		require.NoError(t, err)
		program := filepath.Join(dir, "cnikit-lab")
		require.NoError(t, os.WriteFile(program, content, 0o755))
		require.NoError(t, os.Chmod(program, 0o755))
		cmd := exec.Command(program)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, exitCannotRun, cmd.ProcessState.ExitCode())
		require.Regexp(t, "^cnikit-lab: needs root[^\n]*\n$", string(out))
	})
}

// labRun is one lab under a name of its own.
type labRun struct {
	name  string
	args  []string
	bin   string
	out   bytes.Buffer
	errs  bytes.Buffer
	lines *bufio.Reader
}

func newRun(t *testing.T, bin, name string, args ...string) *labRun {
	t.Helper()
	r := &labRun{name: fmt.Sprintf("%s%d", name, os.Getpid()%1e9), bin: bin}
	r.args = append([]string{"-name", r.name, "-bin", bin}, args...)
	t.Cleanup(func() { // what a test that failed left, and the logs that labs saved
		o := options{name: r.name}
		_, err := o.remove()
		require.NoError(t, errors.Join(err, os.RemoveAll(o.dir())))
		saved, err := filepath.Glob(filepath.Join(os.TempDir(), "cnikit-lab-"+r.name+"-failed-*"))
		require.NoError(t, err)
		for _, dir := range saved {
			require.NoError(t, os.RemoveAll(dir))
		}
	})
	return r
}

func (r *labRun) prefix() string { return options{name: r.name}.namespace("") }

// run runs the lab in this process.
func (r *labRun) run(t *testing.T, before hook, args ...string) int {
	t.Helper()
	r.out.Reset()
	r.errs.Reset()
	return run(t.Context(), slices.Concat(r.args, args), &r.out, &r.errs, before)
}

// start starts the executable.
func (r *labRun) start(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(r.bin, "cnikit-lab"), r.args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	r.lines = bufio.NewReader(io.TeeReader(out, &r.out))
	return cmd
}

func (r *labRun) readUntil(t *testing.T, mark string) {
	t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		require.NoError(t, err, "%s", r.output())
		if strings.Contains(line, mark) {
			return
		}
	}
}

func (r *labRun) readRest(t *testing.T) {
	t.Helper()
	_, err := io.Copy(io.Discard, r.lines)
	require.NoError(t, err)
}

func (r *labRun) output() string { return r.out.String() + r.errs.String() }

func (r *labRun) requireNothingLeft(t *testing.T) {
	t.Helper()
	left, err := cnitest.FindNamespaces(namespaceDir, r.prefix())
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, filepath.Join(runDir, r.name))
}

// requireLogs wants the logs where the lab says that they are.
func (r *labRun) requireLogs(t *testing.T) {
	t.Helper()
	found := regexp.MustCompile(`(?m)^  logs: +(\S+)$`).FindStringSubmatch(r.output())
	require.NotNil(t, found, "%s", r.output())
	require.FileExists(t, filepath.Join(found[1], "node1", "log"))
}

// buildAll builds every executable of the lab into one directory.
func buildAll(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for name, pkg := range map[string]string{
		"cnikit-agent": "../bridge-vxlan/agent", "cnikit-bridge": "../bridge-vxlan/bridge", "cnikit-ipam": "../bridge-vxlan/ipam", "cnikit-lab": ".",
	} {
		require.NoError(t, os.Symlink(testenv.Build(t, pkg), filepath.Join(bin, name)))
	}
	cmd := exec.Command(testenv.Tool(t, "go"), "build", "-C", "../../internal/peers", "-o", bin+"/", "github.com/containernetworking/cni/cnitool")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=auto")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}
