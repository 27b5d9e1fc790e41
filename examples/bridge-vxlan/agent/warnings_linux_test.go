package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/install"
)

// filter sets the reverse path filter of an interface, "all" or "default".
func (h *host) filter(t *testing.T, conf, value string) {
	t.Helper()
	require.NoError(t, h.ns.Do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys/net/ipv4/conf", conf, "rp_filter"), []byte(value), 0)
	}))
}

// warned waits for the status to have a number of warnings, and wants the node ready.
func (h *host) warned(t *testing.T, count int) []string {
	t.Helper()
	r := h.status(t, func(r report) bool { return len(r.Warnings) == count })
	assert.True(t, r.Ready)
	return r.Warnings
}

// Where the report says so nothing comes back, and it does where nothing is reported.
func TestStrictReversePathFiltersAreReported(t *testing.T) {
	underlay := newUnderlay(t, 1500)
	a, b := joinHost(t, underlay, "a", "192.0.2.1/24"), joinHost(t, underlay, "b", "192.0.2.2/24")
	for _, h := range []*host{a, b} {
		for _, conf := range []string{"all", "default", "eth0"} {
			h.filter(t, conf, "0")
		}
		h.publish(t, nodeA(), nodeB())
		h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t), "-resync", "50ms")
	}
	for _, h := range []*host{a, b} {
		h.status(t, isReady)
		h.warned(t, 0)
	}
	p := a.newPod(t, "pod")
	require.NoError(t, p.add(t))
	other := netip.MustParseAddr("192.0.2.2")
	p.reach(t, other)

	const (
		atB = "eth0: its reverse path filter is strict and drops what pods of other nodes send to addresses of this node; set sysctl net.ipv4.conf.eth0.rp_filter=2"
		atA = "cnikit.5000: its reverse path filter is strict and drops what other nodes answer to pods of this node from their own addresses; set sysctl net.ipv4.conf.cnikit/5000.rp_filter=2"
	)
	b.filter(t, "eth0", "1")
	assert.Equal(t, []string{atB}, b.warned(t, 1))
	p.requireCutOff(t, other, "the filter is strict")
	b.filter(t, "eth0", "2")
	b.warned(t, 0)
	p.reach(t, other)

	a.filter(t, "cnikit.5000", "1")
	assert.Equal(t, []string{atA}, a.warned(t, 1))
	p.requireCutOff(t, other, "the filter is strict")
	a.filter(t, "cnikit.5000", "2")
	a.warned(t, 0)
	p.reach(t, other)

	b.filter(t, "all", "1") // as distributions do
	b.filter(t, "eth0", "0")
	assert.Contains(t, b.warned(t, 2), atB)
	p.requireCutOff(t, other, "the filter is strict")
	b.filter(t, "eth0", "2")
	b.warned(t, 1)
	p.reach(t, other) // of the two the greater one counts
	p.reach(t, netip.MustParseAddr("10.244.2.0"))

	b.end(t)
	assert.Equal(t, 2, strings.Count(b.log(), `msg="this host needs attention" reason="`+atB+`"`), "once each time")
	assert.Equal(t, 2, strings.Count(b.log(), `msg="this is over" reason="`+atB+`"`))
}

// Pods of IPv6 alone lose nothing.
func TestReversePathFiltersOfIPv6PodsDoNotMatter(t *testing.T) {
	h := newHost(t)
	h.filter(t, "all", "1")
	n := nodeA()
	h.publish(t, n)
	h.start(t)
	h.warned(t, 2)
	n.PodCIDRs = n.PodCIDRs[1:]
	h.publish(t, n)
	h.warned(t, 0)
}

// A runtime takes the first file by name. The network of that one is what pods get.
func TestAFileThatComesBeforeTheConflistIsReported(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	put := func(name string) string {
		path := h.path("net.d", name)
		require.NoError(t, install.WriteFile(path, install.File{Content: []byte(`{"name":"theirs"}`)}))
		return path
	}
	require.NoError(t, os.MkdirAll(h.path("net.d", "00-directory.conflist"), 0o755))
	put("00-other.conflist.bak")
	put("20-other.conflist")
	h.start(t, "-resync", "50ms")
	h.status(t, isReady)
	h.warned(t, 0)
	for _, name := range []string{"05-other.conf", "10-cni.json", ".hidden.conflist"} {
		path := put(name)
		assert.Equal(t, []string{path + `: comes before 10-cnikit.conflist, and a runtime takes the first file by name, so that pods are not in network "cnikit"; ` +
			"remove it, or give ours a name that comes before it (-conflist)"}, h.warned(t, 1))
		require.NoError(t, os.Remove(path))
		h.warned(t, 0)
	}
	put("05-other.conflist")
	put("06-other.conflist")
	assert.Contains(t, h.warned(t, 1)[0], "05-other.conflist: ", "the first is what counts")
}

func TestPluginsThatATemplateNeedsAreReportedWhenTheyAreNotThere(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	require.NoError(t, os.WriteFile(h.path("template"), []byte(`{"cniVersion":"1.0.0","name":{{json .Name}},"plugins":[
		{"type":"bridge","ipam":{"type":"host-local"}},{"type":"cnikit-bridge"},{"type":"bridge"}]}`), 0o600))
	require.NoError(t, os.MkdirAll(h.path("bin"), 0o755))
	require.NoError(t, os.WriteFile(h.path("bin", "bridge"), nil, 0o644)) // which nobody can execute
	h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t), "-conflist-template", h.path("template"), "-resync", "50ms")
	missing := func(names string) string {
		return h.conflist() + ": needs " + names + ", not in " + h.path("bin") + ", so that no pod can be attached; put what is missing there"
	}
	assert.Equal(t, []string{missing("bridge, host-local")}, h.warned(t, 1))
	require.NoError(t, os.Chmod(h.path("bin", "bridge"), 0o755))
	h.status(t, func(r report) bool { return r.Ready && len(r.Warnings) == 1 && r.Warnings[0] == missing("host-local") })
	require.NoError(t, os.WriteFile(h.path("bin", "host-local"), nil, 0o755))
	h.warned(t, 0)
	assert.Contains(t, h.log(), missing("host-local"))
}
