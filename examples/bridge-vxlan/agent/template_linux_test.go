package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brokenTemplates cannot be read, parsed, executed or used.
func brokenTemplates(t *testing.T, h *host) map[string]string {
	paths := map[string]string{"is a directory": h.path("unreadable")}
	require.NoError(t, os.Mkdir(h.path("unreadable"), 0o755))
	for want, text := range map[string]string{
		"parse template: line 1":     "{{",
		"execute template: line 2":   "{\n{{.Nme}}",
		"result of template: line 1": "{{range .Subnets}}{}{{end}}",
	} {
		path := h.path(strings.Fields(want)[0])
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		paths[want] = path
	}
	return paths
}

// A bad template costs what it is for and nothing else.
func TestWithABadTemplateTheFirstConflistIsHeldBack(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA(), nodeB())
	for want, path := range brokenTemplates(t, h) {
		h.start(t, "-conflist-template", path, "-resync", "50ms")
		r := h.status(t, notReady)
		assert.Contains(t, r.Reason, `-conflist-template="`+path+`": `)
		assert.Contains(t, r.Reason, want)
		assert.Empty(t, r.Warnings, "it is the reason already")
		assert.NoFileExists(t, h.conflist())
		h.routes(t, []string{"10.244.2.0/24", "fd00:2::/64"}, nil)
		h.end(t)
		require.NoError(t, os.Remove(h.statusFile()))
	}
	const theirs = `{"cniVersion":"1.0.0","name":"theirs","plugins":[{"type":"theirs"}]}`
	require.NoError(t, os.MkdirAll(h.path("net.d"), 0o755))
	h.putConflist(t, theirs)
	h.start(t, "-conflist-template", h.path("unreadable"), "-resync", "50ms")
	assert.Contains(t, h.status(t, notReady).Reason, "-conflist-template=")
	content, err := os.ReadFile(h.conflist())
	require.NoError(t, err)
	assert.Equal(t, theirs, string(content), "the pods of another network are none of ours")
}

// An update that brings a bad template costs a node no pod, not even new ones.
func TestWithABadTemplateTheConflistThatIsThereStays(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	flags := []string{"-resync", "50ms", "-bin-dir", h.path("bin"), "-executables", imageDir(t)}
	h.start(t, flags...)
	h.status(t, isReady)
	old := h.newPod(t, "old")
	require.NoError(t, old.add(t))
	content, err := os.ReadFile(h.conflist())
	require.NoError(t, err)
	before, err := os.Stat(h.conflist())
	require.NoError(t, err)
	for want, path := range brokenTemplates(t, h) {
		h.end(t)
		h.start(t, append([]string{"-conflist-template", path}, flags...)...)
		r := h.status(t, func(r report) bool { return len(r.Warnings) > 0 && strings.Contains(r.Warnings[0], path) })
		assert.True(t, r.Ready)
		assert.Contains(t, r.Warnings[0], want)
	}
	assert.Equal(t, 4, strings.Count(h.log(), `level=ERROR msg="no new conflist can be made, so the one that is there stays" error="-conflist-template=`), "said once by each")
	assert.NotContains(t, h.log(), "not ready")
	after, err := os.Stat(h.conflist())
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "left alone")

	require.NoError(t, h.runtimeStatus(t))
	young := h.newPod(t, "young")
	require.NoError(t, young.add(t))
	young.reach(t, old.ips[0])
	h.publish(t, nodeA(), nodeB())
	h.routes(t, []string{"10.244.2.0/24", "fd00:2::/64"}, nil)
	require.NoError(t, os.Remove(h.conflist()))
	require.Eventually(t, func() bool {
		now, err := os.ReadFile(h.conflist())
		return err == nil && string(now) == string(content)
	}, patience, 5*time.Millisecond, "repaired")
	require.NoError(t, old.del(t))
	require.NoError(t, young.del(t))
}

// Pods with addresses that another node may have by now would be worse than none.
func TestWithABadTemplateAConflistForOtherPodCIDRsWillNotDo(t *testing.T) {
	for name, whileDown := range map[string]bool{"while the agent runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			bad := brokenTemplates(t, h)["is a directory"]
			h.publish(t, nodeA())
			h.start(t)
			h.status(t, isReady)
			h.end(t)
			if whileDown {
				h.publish(t, recreated())
			}
			h.start(t, "-conflist-template", bad)
			if !whileDown {
				h.status(t, func(r report) bool { return r.Ready && len(r.Warnings) > 0 })
				h.publish(t, recreated())
			}
			reason := h.status(t, notReady).Reason
			assert.Contains(t, reason, bad)
			assert.Contains(t, reason, "; the conflist that is there is for the Pod CIDRs [10.244.1.0/24 fd00:1::/64]")
			assert.FileExists(t, h.conflist(), "pods can be deleted")
			h.publish(t, nodeA())
			h.status(t, isReady)
		})
	}
}
