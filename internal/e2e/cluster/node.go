package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// ErrOff means that a node is powered off.
var ErrOff = errors.New("the node is off")

// Node is a node of a cluster. Its methods may be called from several goroutines, but
// not while one that changes the node (Kill, Boot, Reboot, Stop…, Start…) runs.
type Node struct {
	options     NodeOptions
	machineName string // of namespaces and cgroups
	dir         string // of everything that the node writes
	disk        disk
	addr        netip.Addr
	binaries    Binaries
	kubeconfig  string
	underlay    *underlay
	groups      hierarchies

	machine *machine // nil: off
	group   *os.File
	runtime *component
	kubelet *component
}

// setUp makes the disk, which lasts as long as the cluster, with the plugins that a
// distribution would have put there.
func (n *Node) setUp(plugins []string) (err error) {
	if n.disk, err = newDisk(filepath.Join(n.dir, "disk")); err != nil {
		return err
	}
	for _, dir := range []string{n.logs(), n.traceDir(), n.disk.path(pluginDir), n.disk.path("/etc/cni/net.d"), n.disk.path("/etc/kubernetes/manifests")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("set up %s: %w", n.options.Name, err)
		}
	}
	for _, name := range referencePlugins() {
		if err := copyProgram(n.binaries.Path("cni/"+name), filepath.Join(n.disk.path(pluginDir), name)); err != nil {
			return fmt.Errorf("set up %s: %w", n.options.Name, err)
		}
	}
	return n.trace(append(plugins, tracedPlugins()...))
}

// boot starts the machine and joins it to the underlay, without its services.
func (n *Node) boot(ctx context.Context) (err error) {
	if n.group, err = n.groups.create(n.machineName); err != nil {
		return err
	}
	m, err := newMachine(ctx, n.machineName, n.group)
	if err != nil {
		return err
	}
	n.machine = m
	return m.enter(unix.CLONE_NEWNS, n.disk.mount)
}

func (n *Node) join(ctx context.Context) error { return n.underlay.join(ctx, n.machine.ns, n.addr) }

// Name is the name of the Node object, too.
func (n *Node) Name() string { return n.options.Name }

// Containerd is the line of containerd: Containerd24 or Containerd16.
func (n *Node) Containerd() string { return n.options.Containerd }

// Addr is the node's address on the underlay, the InternalIP of the Node.
func (n *Node) Addr() netip.Addr { return n.addr }

// Namespace is the node's network namespace; nil while the node is off. It belongs to
// the node: do not close it. A node has another one after each boot.
func (n *Node) Namespace() *cnitest.Namespace {
	if n.machine == nil {
		return nil
	}
	return n.machine.ns
}

// Command prepares a process on the node: with its network, files and processes. name is
// found there. Killing the process that it starts kills the one on the node; other
// signals do not reach that. On a node that is off, starting it fails with [ErrOff].
func (n *Node) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if n.machine == nil {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Err = fmt.Errorf("run %s on %s: %w", name, n.options.Name, ErrOff)
		return cmd
	}
	return n.machine.command(ctx, name, args...)
}

// Path is where this process finds a file of the node that the node calls p. While the
// node is off that is on its disk, which has /opt, /var/lib, /var/log and what the node
// wrote to /etc. The path is good until the node boots or is killed.
func (n *Node) Path(p string) string {
	if n.machine == nil {
		return n.disk.path(p)
	}
	return filepath.Join("/proc", strconv.Itoa(n.machine.pid()), "root", p)
}

// Kill is a power-off: it sends SIGKILL to every process of the node and waits until
// they, the network namespaces and the mounts are gone, /run with them. The disk is
// kept. Killing a node that is off is no error.
func (n *Node) Kill(ctx context.Context) error {
	if n.machine == nil {
		return nil
	}
	if err := n.machine.kill(ctx); err != nil {
		return err
	}
	if err := errors.Join(n.underlay.leave(ctx, n.machine.ns), n.machine.ns.Remove()); err != nil {
		return err
	}
	n.machine, n.runtime, n.kubelet = nil, nil, nil
	return errors.Join(n.group.Close(), n.groups.remove(ctx, n.machineName))
}

// Boot starts a node that is off: the same name, address and disk, another boot ID. It
// returns when containerd answers and the kubelet was started. Booting a node that runs
// is an error.
func (n *Node) Boot(ctx context.Context) error {
	if n.machine != nil {
		return fmt.Errorf("boot %s: it runs", n.options.Name)
	}
	for _, step := range []func(context.Context) error{
		n.boot, n.join, n.startRuntime, n.startKubelet,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("boot %s: %w", n.options.Name, err)
		}
	}
	return nil
}

// Reboot is Kill and Boot.
func (n *Node) Reboot(ctx context.Context) error {
	if err := n.Kill(ctx); err != nil {
		return err
	}
	return n.Boot(ctx)
}

// StopKubelet ends the kubelet. Its pods go on. Stopping twice is no error.
func (n *Node) StopKubelet(ctx context.Context) error { return n.kubelet.stop(ctx) }

// StartKubelet starts the kubelet after StopKubelet. It is an error when it runs.
func (n *Node) StartKubelet(ctx context.Context) error {
	if err := n.canStart(n.kubelet); err != nil {
		return fmt.Errorf("start kubelet of %s: %w", n.options.Name, err)
	}
	return n.startKubelet(ctx)
}

// StopContainerd ends containerd. Its containers, and their shims, go on. Stopping twice
// is no error.
func (n *Node) StopContainerd(ctx context.Context) error { return n.runtime.stop(ctx) }

// StartContainerd starts containerd after StopContainerd and waits until it answers. It
// is an error when it runs.
func (n *Node) StartContainerd(ctx context.Context) error {
	if err := n.canStart(n.runtime); err != nil {
		return fmt.Errorf("start containerd of %s: %w", n.options.Name, err)
	}
	return n.startRuntime(ctx)
}

func (n *Node) canStart(c *component) error {
	switch {
	case n.machine == nil:
		return ErrOff
	case c.runs():
		return errors.New("it runs")
	}
	return nil
}

// PodNamespace opens the network namespace of a pod of this node by its UID; the caller
// closes it. A pod without a process, or of another node, is an error that matches
// [fs.ErrNotExist].
func (n *Node) PodNamespace(_ context.Context, uid string) (*cnitest.Namespace, error) {
	pids, err := n.podProcesses(uid)
	if err != nil {
		return nil, fmt.Errorf("find pod %s on %s: %w", uid, n.options.Name, err)
	}
	for _, pid := range pids {
		ns, err := cnitest.OpenNamespace(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return ns, err
		}
	}
	return nil, fmt.Errorf("find pod %s on %s: it has no process: %w", uid, n.options.Name, fs.ErrNotExist)
}

// podProcesses lists the processes in the cgroup that the kubelet gave to the pod, whose
// name is that of cgroupfs: kubepods/[CLASS/]podUID.
func (n *Node) podProcesses(uid string) ([]int, error) {
	var pids []int
	for _, root := range n.groups.all {
		err := filepath.WalkDir(filepath.Join(root, n.machineName), func(dir string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // it went meanwhile
				return nil
			case err != nil:
				return err
			case !entry.IsDir() || !strings.Contains(dir, "/pod"+uid):
				return nil
			}
			found, err := processes(dir)
			pids = append(pids, found...)
			return err
		})
		if err != nil || len(pids) > 0 {
			return pids, err
		}
	}
	return nil, nil
}

func (n *Node) logs() string { return filepath.Join(n.dir, "logs") }
