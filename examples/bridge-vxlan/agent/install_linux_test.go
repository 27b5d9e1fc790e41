package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/internal/testenv"
)

// install runs the command and returns what it said.
func (h *host) install(t *testing.T, flags ...string) (string, error) {
	args := append([]string{"install", "-bin-dir", h.path("bin")}, flags...)
	out, err := h.ns.Command(t.Context(), agentProgram(t), args...).CombinedOutput()
	return string(out), err
}

func TestInstall(t *testing.T) {
	h := newHost(t)
	image := imageDir(t)
	out, err := h.install(t, "-executables", image)
	require.NoError(t, err, out)
	for _, name := range plugins() {
		want, err := os.ReadFile(filepath.Join(image, name))
		require.NoError(t, err)
		got, err := os.ReadFile(h.path("bin", name))
		require.NoError(t, err)
		assert.Equal(t, len(want), len(got))
	}
	assert.NoDirExists(t, h.path("net.d"), "no conflist without Pod CIDRs")

	require.NoError(t, os.WriteFile(h.path("bin", "cnikit-ipam"), []byte("mine"), 0o755))
	out, err = h.install(t, "-executables", image)
	require.NoError(t, err, "what was installed is repaired: %s", out)

	require.NoError(t, os.RemoveAll(h.path("bin")))
	require.NoError(t, os.Mkdir(h.path("bin"), 0o755))
	require.NoError(t, os.WriteFile(h.path("bin", "cnikit-ipam"), []byte("mine"), 0o755))
	out, err = h.install(t, "-executables", image)
	require.Error(t, err)
	assert.Contains(t, out, "install "+h.path("bin", "cnikit-ipam"))
	assert.Contains(t, out, "; remove it, or let it be replaced (cnikit-agent install -replace does)\n")
	assert.NoFileExists(t, h.path("bin", "cnikit-bridge"), "all or nothing")
	out, err = h.install(t, "-executables", image, "-replace")
	require.NoError(t, err, out)

	out, err = h.install(t, "-executables", h.path("nowhere"))
	require.Error(t, err)
	assert.Equal(t, `cnikit-agent: -executables="`+h.path("nowhere")+`": lacks cnikit-bridge and cnikit-ipam; give the directory that has the plugins`+"\n", out)
}

func TestRunNeedsThePluginsThatItIsToKeep(t *testing.T) {
	h := newHost(t)
	image := imageDir(t)
	require.NoError(t, os.Remove(filepath.Join(image, "cnikit-ipam")))
	cmd := h.command(t, "run", "-node", "a", "-bin-dir", h.path("bin"), "-executables", image)
	require.Error(t, cmd.Run())
	assert.Contains(t, h.log(), `cnikit-agent: -executables="`+image+`": lacks cnikit-ipam; give the directory that has the plugins`)
}

// A program that may not do it says at once what it needs.
func TestPrivilegesAreNeeded(t *testing.T) {
	testenv.NetAdmin(t)
	setpriv := testenv.Tool(t, "setpriv")
	dir := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.Mkdir(dir, 0o500))
	for want, args := range map[string][]string{
		"run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN; this process has 0x0000000000000000)": {"run", "-node", "a"},
		"not permitted to configure the network: run as root ":                               {"uninstall"},
		"permission denied; run as root, or as the owner of the directories":                 {"install", "-bin-dir", filepath.Join(dir, "bin"), "-executables", imageDir(t)},
	} {
		args = append([]string{"--bounding-set=-all", "--inh-caps=-all", agentProgram(t)}, args...)
		out, err := exec.CommandContext(t.Context(), setpriv, args...).CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(out), want)
	}
}

// A host without an agent gets a network that works.
func TestInstallWithAConflist(t *testing.T) {
	h := newHost(t)
	out, err := h.install(t, "-executables", imageDir(t), "-conf-dir", h.path("net.d"), "-data-dir", h.path("leases"),
		"-pod-cidrs", "10.9.8.0/24,fd00:98::/64", "-mtu", "1400")
	require.NoError(t, err, out)
	require.NoError(t, h.runtimeStatus(t))
	one, other := h.newPod(t, "one"), h.newPod(t, "other")
	require.NoError(t, one.add(t))
	require.NoError(t, other.add(t))
	for _, ip := range other.ips {
		one.reach(t, ip)
	}
	require.NoError(t, one.del(t))
	require.NoError(t, other.del(t))
}

// A runtime must not see a conflist whose plugins are not there.
func TestTheConflistWaitsForThePlugins(t *testing.T) {
	h := newHost(t)
	foreign := h.path("bin", "cnikit-bridge")
	require.NoError(t, os.Mkdir(h.path("bin"), 0o755))
	require.NoError(t, os.WriteFile(foreign, []byte("mine"), 0o755))
	h.publish(t, nodeA())
	h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t), "-resync", "50ms")
	reason := h.status(t, notReady).Reason
	assert.Contains(t, reason, foreign)
	assert.Contains(t, reason, "let it be replaced (cnikit-agent install -replace does)")
	assert.NoFileExists(t, h.conflist())

	require.NoError(t, os.Remove(foreign))
	h.status(t, isReady)
	assert.FileExists(t, h.conflist())
	require.NoError(t, h.runtimeStatus(t))
}

func TestAgentRepairsThePlugins(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t))
	h.status(t, isReady)
	require.NoError(t, os.Remove(h.path("bin", "cnikit-bridge")))
	assert.Eventually(t, func() bool {
		_, err := os.Stat(h.path("bin", "cnikit-bridge"))
		return err == nil
	}, patience, 5*time.Millisecond)
}

func (h *host) putConflist(t *testing.T, content string) {
	require.NoError(t, install.WriteFile(h.conflist(), install.File{Content: []byte(content)}))
}

// Whatever was changed in our conflist, it is ours by the name of the network; install
// says so as well.
func TestAConflistIsOursByItsNetwork(t *testing.T) {
	h := newHost(t)
	require.NoError(t, os.Mkdir(h.path("net.d"), 0o755))
	flags := []string{"-executables", imageDir(t), "-conf-dir", h.path("net.d"), "-pod-cidrs", "10.9.8.0/24"}
	content := func() string {
		text, err := os.ReadFile(h.conflist())
		require.NoError(t, err)
		return string(text)
	}
	for foreign, want := range map[string]string{
		`{"name":"theirs"}`: `: is the conflist of network "theirs", not of "cnikit"`,
		"mine":              ": is no conflist: invalid character",
	} {
		h.putConflist(t, foreign)
		out, err := h.install(t, flags...)
		require.Error(t, err)
		assert.Contains(t, out, "cnikit-agent: nothing is installed: "+h.conflist()+want)
		assert.Contains(t, out, "; remove it, use another name (-conflist), or let it be replaced (-replace)\n")
		assert.Equal(t, foreign, content())
		assert.NoDirExists(t, h.path("bin"))
	}
	out, err := h.install(t, append(flags, "-replace")...)
	require.NoError(t, err, out)
	assert.Contains(t, content(), "cnikit-bridge")
	h.putConflist(t, `{"name":"cnikit","plugins":[]}`)
	out, err = h.install(t, flags...)
	require.NoError(t, err, out)
	assert.Contains(t, content(), "cnikit-bridge")

	h.putConflist(t, `{"name":"cnikit","plugins":[]}`)
	out, err = h.uninstall(t)
	require.NoError(t, err, out)
	assert.NoFileExists(t, h.conflist())
}
