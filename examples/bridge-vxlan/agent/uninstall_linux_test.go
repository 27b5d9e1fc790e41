package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/install"
)

func TestUninstallRemovesEverything(t *testing.T) {
	h := newHost(t)
	before := h.state(t)
	h.publish(t, nodeA(), nodeB())
	h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t))
	h.status(t, isReady)
	p := h.newPod(t, "pod")
	require.NoError(t, p.add(t))
	require.NoError(t, p.del(t))
	h.end(t)
	foreign := h.path("bin", "loopback")
	require.NoError(t, os.WriteFile(foreign, []byte("somebody else's"), 0o755))
	other := h.path("net.d", "99-other.conflist")
	require.NoError(t, install.WriteFile(other, install.File{Content: []byte("{}")}))

	removed := ""
	for _, thing := range []string{
		"conflist " + h.conflist(), "interface cni0", "interface cnikit.5000", "status file " + h.statusFile(),
		"plugin " + h.path("bin", "cnikit-bridge"), "plugin " + h.path("bin", "cnikit-ipam"),
	} {
		removed += "removed " + thing + "\n"
	}
	for _, want := range []string{removed, ""} {
		out, err := h.uninstall(t)
		require.NoError(t, err, out)
		assert.ElementsMatch(t, strings.Split(want, "\n"), strings.Split(out, "\n"))
		assert.Empty(t, before.Diff(h.state(t)))
		assert.NoFileExists(t, h.conflist())
		assert.NoFileExists(t, h.statusFile())
		entries, err := os.ReadDir(h.path("bin"))
		require.NoError(t, err)
		require.Len(t, entries, 1)
		assert.FileExists(t, foreign)
		assert.FileExists(t, other)
	}
}

// A runtime needs conflist and plugins to delete the pods that are left.
func TestUninstallRemovesNothingWhilePodsAreAttached(t *testing.T) {
	h := newHost(t)
	before := h.state(t)
	h.publish(t, nodeA(), nodeB())
	h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t))
	h.status(t, isReady)
	p := h.newPod(t, "pod")
	require.NoError(t, p.add(t))
	h.end(t)
	with := h.state(t)
	refused := func(attached string) {
		out, err := h.uninstall(t)
		require.Error(t, err)
		assert.Regexp(t, `^cnikit-agent: nothing is removed: `+attached+`; delete the pods and try again\n$`, out)
		for _, path := range []string{h.conflist(), h.statusFile(), h.path("bin", "cnikit-bridge")} {
			assert.FileExists(t, path)
		}
		assert.Contains(t, h.state(t).String(), "vxlan")
	}
	refused(`1 interfaces of pods of network "cnikit" are attached, such as \w+`)
	assert.Empty(t, with.Diff(h.state(t)))
	h.do(t, "ip link del cni0")
	refused(`1 interfaces of pods of network "cnikit" are attached, such as \w+`)

	h.do(t, "ip link add cni0 type bridge") // of whatever plugin
	require.NoError(t, p.del(t))
	h.do(t, "ip link add foreign master cni0 type veth peer name other")
	refused(`1 interfaces of pods of network "cnikit" are attached, such as foreign`)
	h.do(t, "ip link del foreign")
	h.do(t, "ip link del cni0")

	out, err := h.uninstall(t)
	require.NoError(t, err, out)
	assert.Empty(t, before.Diff(h.state(t)))
	assert.NoFileExists(t, h.path("bin", "cnikit-bridge"))
}

// Every error is told, and none keeps the rest from being removed.
func TestUninstallTellsEveryError(t *testing.T) {
	h := newHost(t)
	h.do(t, "ip link add cnikit.5000 type vxlan id 5000 dstport 4789")
	require.NoError(t, os.Mkdir(h.path("net.d"), 0o755))
	h.putConflist(t, `{"name":"cnikit"}`)
	require.NoError(t, os.MkdirAll(filepath.Dir(h.statusFile()), 0o755))
	require.NoError(t, os.WriteFile(h.statusFile(), []byte("{}"), 0o600))
	out, err := h.uninstall(t)
	require.Error(t, err)
	for _, want := range []string{
		"removed conflist " + h.conflist() + "\n", "cnikit-agent: ", "device cnikit.5000: left alone",
		"removed status file " + h.statusFile() + "\n", "the plugins in " + h.path("bin") + " stay until the rest is gone",
	} {
		assert.Contains(t, out, want)
	}
	assert.NoFileExists(t, h.conflist())
	assert.NoFileExists(t, h.statusFile())
	assert.Contains(t, h.state(t).String(), "cnikit.5000")
}

// What is somebody else's is found before anything is removed, and a flag leaves it out.
func TestUninstallRemovesNothingBesideWhatIsForeign(t *testing.T) {
	for name, c := range map[string]struct {
		there    func(*testing.T, *host)
		want     string
		leave    string
		conflist bool // stays
	}{
		"a bridge of another plugin": {
			func(t *testing.T, h *host) { h.do(t, "ip link add cni0 type bridge") },
			"the bridge cni0 was made by something else; -bridge= leaves it alone, and ip link delete cni0 removes it\n", "-bridge=", false,
		},
		"no bridge": {
			func(t *testing.T, h *host) { h.do(t, "ip link add cni0 type veth peer name other") },
			"cni0 is no bridge but a veth; -bridge= leaves it alone\n", "-bridge=", false,
		},
		"another network's conflist": {
			func(t *testing.T, h *host) { h.putConflist(t, `{"name":"theirs"}`) },
			`10-cnikit.conflist: is the conflist of network "theirs", not of "cnikit"; -conflist= leaves it alone, and -network names another network` + "\n",
			"-conflist=", true,
		},
		"something else": {
			func(t *testing.T, h *host) { h.putConflist(t, "mine") },
			"10-cnikit.conflist: is no conflist: invalid character 'm'", "-conflist=", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.publish(t, nodeA())
			h.start(t)
			h.status(t, isReady)
			h.end(t)
			c.there(t, h)
			before := h.state(t)
			out, err := h.uninstall(t)
			require.Error(t, err)
			assert.True(t, strings.HasPrefix(out, "cnikit-agent: nothing is removed: "), out)
			assert.Contains(t, out, c.want)
			assert.Empty(t, before.Diff(h.state(t)))
			assert.FileExists(t, h.conflist())
			assert.FileExists(t, h.statusFile())

			out, err = h.uninstall(t, c.leave)
			require.NoError(t, err, out)
			assert.NotContains(t, h.state(t).String(), "vxlan")
			_, err = os.Stat(h.conflist())
			assert.Equal(t, c.conflist, err == nil)
		})
	}
}

// An agent that lies among the plugins has nothing to copy, and can uninstall.
func TestUninstallFromTheDirectoryOfThePlugins(t *testing.T) {
	h := newHost(t)
	content, err := os.ReadFile(agentProgram(t))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(h.path("bin"), 0o755))
	require.NoError(t, os.WriteFile(h.path("bin", "cnikit-agent"), content, 0o755))
	out, err := h.ns.Command(t.Context(), h.path("bin", "cnikit-agent"), "uninstall", "-bin-dir", h.path("bin"),
		"-conf-dir", h.path("net.d"), "-status-file", h.statusFile()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.FileExists(t, h.path("bin", "cnikit-agent"))
}
