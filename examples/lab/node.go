package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/overlay"
)

const agentProgram = "cnikit-agent"

// node is a member of the cluster: a network namespace and a directory with what a real
// node has in /etc and /var.
type node struct {
	member   overlay.Node
	ns       *cnitest.Namespace
	dir      string
	bin      string
	topology string
	pods     []*pod
	log      *os.File      // of the agent and the plugins
	before   cnitest.State // when nothing of ours was there

	agent *cnitest.Cmd // nil when none runs
	stop  context.CancelFunc
}

// addNode makes the next node and joins it to the underlay. Nothing runs there yet.
func (l *lab) addNode(ctx context.Context) (*node, error) {
	number := len(l.nodes) + 1
	n := &node{member: member(number), bin: l.bin, topology: l.topologyFile()}
	n.dir = filepath.Join(l.dir(), n.member.Name)
	for _, dir := range []string{n.confDir(), n.dataDir(), n.cacheDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	var err error
	if n.log, err = os.Create(filepath.Join(n.dir, "log")); err != nil {
		return nil, err
	}
	if n.ns, err = cnitest.CreateNamespace(namespaceDir, l.namespace(n.member.Name)); err != nil {
		return nil, errors.Join(err, n.log.Close())
	}
	l.nodes = append(l.nodes, n)
	if err := l.underlay.Join(ctx, n.ns, "eth0", netip.PrefixFrom(nodeAddr(number), underlayBits)); err != nil {
		return nil, err
	}
	n.before, err = n.state()
	return n, err
}

func (n *node) confDir() string    { return filepath.Join(n.dir, "conf") }
func (n *node) dataDir() string    { return filepath.Join(n.dir, "data") }
func (n *node) cacheDir() string   { return filepath.Join(n.dir, "cache") }
func (n *node) statusFile() string { return filepath.Join(n.dir, "status.json") }

// state is everything that the cluster's software may change on the node.
func (n *node) state() (cnitest.State, error) { return n.ns.State(n.confDir()) }

// agentCommand prepares a command of the agent for this node.
func (n *node) agentCommand(ctx context.Context, command string, flags ...string) *cnitest.Cmd {
	names := []string{"-network", network, "-device", device, "-conf-dir", n.confDir(), "-status-file", n.statusFile()}
	cmd := n.ns.Command(ctx, filepath.Join(n.bin, agentProgram), slices.Concat([]string{command}, flags, names)...)
	cmd.Stdout, cmd.Stderr = n.log, n.log
	detach(cmd.Cmd)
	return cmd
}

// startAgent starts the agent as a process of its own, which outlives the lab.
func (n *node) startAgent(ctx context.Context) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	cmd := n.agentCommand(ctx, "run", "-node", n.member.Name, "-topology", n.topology, "-data-dir", n.dataDir(),
		"-resync", "-1s") // no look without a cause: what is repaired is repaired by events
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // from SIGTERM to SIGKILL
	if err := cmd.Start(); err != nil {
		stop()
		return fmt.Errorf("start agent of %s: %w", n.member.Name, err)
	}
	n.agent, n.stop = cmd, stop
	return nil
}

// stopAgent ends the agent as an init system does and wants it to end well.
func (n *node) stopAgent() error {
	n.stop()
	err := n.agent.Wait()
	code := n.agent.ProcessState.ExitCode()
	n.agent, n.stop = nil, nil
	if code != 0 {
		return &failure{fmt.Sprintf("that the agent of %s ends with exit code 0 after SIGTERM", n.member.Name), fmt.Sprint(err)}
	}
	return nil
}

// killAgent ends the agent with SIGKILL.
func (n *node) killAgent() error {
	defer n.stop()
	if err := n.agent.Process.Kill(); err != nil {
		return fmt.Errorf("kill agent of %s: %w", n.member.Name, err)
	}
	_ = n.agent.Wait() // says that it was killed
	n.agent = nil
	return os.Remove(n.statusFile())
}

// runtime is what a container runtime is on a node.
func (n *node) runtime() chain.Runner {
	return chain.Runner{Executor: n.ns.Executor(cni.Exec{Stderr: n.log}), Path: []string{n.bin}, CacheDir: n.cacheDir()}
}

// inNetwork calls fn with a network from the node's conflists.
func (n *node) inNetwork(name string, fn func(chain.Runner, *chain.List) error) error {
	list, err := chain.LoadNetwork(n.confDir(), name)
	if err != nil {
		return err
	}
	return fn(n.runtime(), list)
}

// operate runs an operator's command inside the node.
func (n *node) operate(ctx context.Context, command ...string) error {
	out, err := n.ns.Command(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s on %s: %w: %s", strings.Join(command, " "), n.member.Name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// release gives up the handles that the lab has on the node. What runs there runs on.
func (n *node) release() {
	for _, p := range n.pods {
		_ = p.ns.Close()
	}
	for _, c := range []io.Closer{n.ns, n.log} {
		_ = c.Close()
	}
}

// reap waits for an agent that was ended.
func (n *node) reap() {
	if n.agent != nil {
		n.stop()
		_ = n.agent.Wait()
	}
}
