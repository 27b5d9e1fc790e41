package cnitest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// peer is a plugin that the kit is run on for the record.
type peer struct {
	name  string
	pkg   string   // of the reference plugins
	needs []string // kinds of links that the kernel must have
	tool  string   // that it executes
}

// peers are the reference plugins, and then our own.
func peers() []peer {
	veth := []string{"veth"}
	return []peer{
		{name: "bridge", pkg: "main/bridge", needs: []string{"bridge", "veth"}, tool: "iptables"},
		{name: "ptp", pkg: "main/ptp", needs: veth, tool: "iptables"},
		{name: "macvlan", pkg: "main/macvlan", needs: []string{"macvlan", "veth"}},
		{name: "host-local", pkg: "ipam/host-local"},
		{name: "static", pkg: "ipam/static"},
		{name: "loopback", pkg: "main/loopback"},
		{name: "portmap", pkg: "meta/portmap", needs: veth, tool: "iptables"},
		{name: "tuning", pkg: "meta/tuning", needs: veth},
		{name: "firewall", pkg: "meta/firewall", needs: veth, tool: "iptables"},
		{name: "bandwidth", pkg: "meta/bandwidth", needs: []string{"ifb", "veth"}},
		{name: "sbr", pkg: "meta/sbr", needs: veth},
		{name: "cnikit-bridge", needs: []string{"bridge", "veth"}},
		{name: "cnikit-ipam"},
	}
}

// reference is what all names of the reference plugins begin with.
const reference = "github.com/containernetworking/plugins/plugins/"

// peerDirs builds all plugins and returns the directories that they are in: CNI_PATH.
func peerDirs(t *testing.T) []string {
	t.Helper()
	var pkgs []string
	for _, p := range peers() {
		if p.pkg != "" {
			pkgs = append(pkgs, reference+p.pkg)
		}
	}
	own := t.TempDir()
	for name, pkg := range map[string]string{"cnikit-bridge": "bridge", "cnikit-ipam": "ipam"} {
		require.NoError(t, os.Symlink(testenv.Build(t, "../../examples/bridge-vxlan/"+pkg), filepath.Join(own, name)))
	}
	return []string{testenv.Peers(t, pkgs...), own}
}

// target is the plugin with its default configuration.
func (p peer) target(t *testing.T, path []string) cnitest.Target {
	t.Helper()
	ipam := "host-local"
	if p.pkg == "" {
		ipam = "cnikit-ipam"
	}
	target, err := cnitest.KnownTarget(p.name, ipam)
	require.NoError(t, err)
	target.Path = path
	return target
}

// lacks says why the plugin cannot be examined on this machine, "" if it can.
func (p peer) lacks() string {
	if err := cnitest.Supports(p.needs...); err != nil {
		return err.Error()
	}
	if p.tool == "" {
		return ""
	}
	if _, err := exec.LookPath(p.tool); err != nil {
		return fmt.Sprintf("it executes %s, which is not installed", p.tool)
	}
	return ""
}

// referenceVersion is the version of the reference plugins that is pinned.
func referenceVersion(t *testing.T) string {
	t.Helper()
	mod, err := os.ReadFile("../../internal/peers/go.mod")
	require.NoError(t, err)
	for line := range strings.Lines(string(mod)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0]+"/plugins/" == reference {
			return fields[1]
		}
	}
	t.Fatalf("internal/peers/go.mod requires no %s", reference)
	return ""
}
