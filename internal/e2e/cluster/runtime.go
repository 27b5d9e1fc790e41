package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	pluginDir        = "/opt/cni/bin"
	kubernetesSpace  = "k8s.io" // the namespace of containerd that the kubelet's images and containers are in
)

// containerd24 is a configuration of version 3. A process without CAP_SYS_RESOURCE
// cannot lower an OOM score, so containerd must not ask for it.
func containerd24(traceDir string) string {
	return fmt.Sprintf(`version = 3
oom_score = 0
disabled_plugins = [
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
]

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  enable_unprivileged_ports = false

  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q, %q]
    conf_dir = "/etc/cni/net.d"

  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "runc"
`, PauseImage, traceDir, pluginDir)
}

// containerd16 is a configuration of version 2. It has one directory for plugins, so it
// finds only those that are traced.
func containerd16(traceDir string) string {
	return fmt.Sprintf(`version = 2
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_tcp_service = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = "/etc/cni/net.d"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "runc"
`, PauseImage, traceDir)
}

// startRuntime starts containerd and waits until it answers. It finds its shim, which
// must be of its own version, through PATH.
func (n *Node) startRuntime(ctx context.Context) (err error) {
	config := containerd24(n.traceDir())
	if n.options.Containerd == Containerd16 {
		config = containerd16(n.traceDir())
	}
	file := filepath.Join(n.dir, "containerd.toml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return fmt.Errorf("start containerd of %s: %w", n.options.Name, err)
	}
	program := n.program("containerd")
	env := append(environ(), "PATH="+filepath.Dir(program)+":"+systemPath)
	n.runtime, err = n.machine.startComponent(n.logs(), "containerd", env, program, "--config="+file)
	if err != nil {
		return err
	}
	return await(ctx, "containerd of "+n.options.Name+" answers", func(ctx context.Context) error {
		return n.ctr(ctx, "version")
	}, n.runtime)
}

// program is a program that comes with the node's containerd.
func (n *Node) program(name string) string {
	return n.binaries.Path("containerd-" + n.options.Containerd + "/" + name)
}

// ctr runs the client of containerd.
func (n *Node) ctr(ctx context.Context, args ...string) error {
	args = append([]string{"--address=" + containerdSocket, "--namespace=" + kubernetesSpace}, args...)
	out, err := n.Command(ctx, n.program("ctr"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s on %s: %w: %s", strings.Join(args, " "), n.options.Name, err, out)
	}
	return nil
}

// importImages reads image files into containerd.
func (n *Node) importImages(ctx context.Context, files []string) error {
	for _, file := range files {
		args := []string{"images", "import", file}
		if n.options.Containerd != Containerd16 {
			args = []string{"images", "import", "--local", file}
		}
		if err := n.ctr(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
