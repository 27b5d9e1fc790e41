package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// imageDir makes a directory with the plugins, as an image has them. Their paths may be
// links: what is installed is the content.
func imageDir(t *testing.T) string {
	dir := t.TempDir()
	for name, pkg := range map[string]string{
		"cnikit-bridge": "github.com/cnikit/cnikit/examples/bridge-vxlan/bridge",
		"cnikit-ipam":   "github.com/cnikit/cnikit/examples/bridge-vxlan/ipam",
	} {
		require.NoError(t, os.Symlink(testenv.Build(t, pkg), filepath.Join(dir, name)))
	}
	return dir
}

// runtime is what a container runtime is on the host: it executes the installed plugins
// as the conflist says that is there now.
func (h *host) runtime(t *testing.T, fn func(chain.Runner, *chain.List) error) error {
	list, err := chain.LoadNetwork(h.path("net.d"), "cnikit")
	require.NoError(t, err)
	return fn(chain.Runner{
		Path: []string{h.path("bin")}, CacheDir: h.path("cache"), Executor: h.ns.Executor(cni.Exec{Stderr: t.Output()}),
	}, list)
}

// runtimeStatus is what a runtime learns of the network.
func (h *host) runtimeStatus(t *testing.T) error {
	return h.runtime(t, func(r chain.Runner, l *chain.List) error { return r.Status(context.WithoutCancel(t.Context()), l) })
}

// pod is a container on a host.
type pod struct {
	host *host
	ns   *cnitest.Namespace
	name string
	ips  []netip.Addr
}

func (h *host) newPod(t *testing.T, name string) *pod {
	ns, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Remove() })
	return &pod{host: h, ns: ns, name: name}
}

func (p *pod) attachment() chain.Attachment {
	return chain.Attachment{ContainerID: p.name, NetNS: p.ns.Path(), IfName: "eth0"}
}

func (p *pod) add(t *testing.T) error {
	return p.host.runtime(t, func(r chain.Runner, l *chain.List) error {
		result, err := r.Add(t.Context(), l, p.attachment())
		if err != nil {
			return err
		}
		p.ips = nil
		for _, ip := range result.IPs {
			p.ips = append(p.ips, ip.Address.Addr())
		}
		return nil
	})
}

func (p *pod) check(t *testing.T) error {
	return p.host.runtime(t, func(r chain.Runner, l *chain.List) error { return r.Check(t.Context(), l, p.attachment()) })
}

func (p *pod) del(t *testing.T) error {
	return p.host.runtime(t, func(r chain.Runner, l *chain.List) error { return r.Del(t.Context(), l, p.attachment()) })
}

// reach pings an address until it answers.
func (p *pod) reach(t *testing.T, to netip.Addr) {
	t.Helper()
	_, err := p.ns.Ping(t.Context(), cnitest.Ping{To: to})
	for began := time.Now(); err != nil && time.Since(began) < patience; {
		_, err = p.ns.Ping(t.Context(), cnitest.Ping{To: to})
	}
	require.NoError(t, err)
}

// requireCutOff pings an address that must not answer.
func (p *pod) requireCutOff(t *testing.T, to netip.Addr, why string) {
	t.Helper()
	_, err := p.ns.Ping(t.Context(), cnitest.Ping{To: to, Timeout: time.Second})
	require.ErrorIs(t, err, cnitest.ErrNoReply, why)
}

// leases are the addresses that are given out on the host.
func (h *host) leases(t *testing.T) []string {
	entries, err := os.ReadDir(h.path("leases", "cnikit"))
	require.NoError(t, err)
	var taken []string
	for _, e := range entries {
		if _, err := netip.ParseAddr(e.Name()); err == nil {
			taken = append(taken, e.Name())
		}
	}
	return taken
}
