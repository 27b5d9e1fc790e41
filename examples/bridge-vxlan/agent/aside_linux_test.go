package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/netif"
)

func (h *host) aside() string { return h.conflist() + asideSuffix }

// A runtime that has read the conflist may attach a pod when it is gone, and cannot delete
// the pod without it.
func TestUninstallGivesWayToAPodThatIsBeingAttached(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t))
	h.status(t, isReady)
	h.end(t)

	ns, err := netif.Open(h.ns.Path())
	require.NoError(t, err)
	defer ns.Close()
	unlock, err := ns.Lock(t.Context()) // ADD waits, and has no interface yet
	require.NoError(t, err)
	late := h.newPod(t, "late")
	added := make(chan error, 1)
	go func() { added <- late.add(t) }()
	require.Eventually(t, func() bool { _, err := os.Stat(h.path("leases", "cnikit", "10.244.1.2")); return err == nil }, patience, 5*time.Millisecond)
	before := h.state(t)

	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := h.uninstall(t)
		done <- result{out, err}
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(h.conflist()); return err != nil }, patience, time.Millisecond)
	time.Sleep(lateADD) // somebody else's turn takes long
	unlock()
	require.NoError(t, <-added)
	r := <-done
	require.Error(t, r.err)
	assert.Regexp(t, `^cnikit-agent: nothing is removed: pods came meanwhile, so the conflist stays: 1 interfaces of pods of network "cnikit" are attached, such as \w+; delete the pods and try again\n$`, r.out)
	assert.NoFileExists(t, h.aside())
	assert.FileExists(t, h.statusFile())
	for _, line := range before {
		assert.Contains(t, h.state(t), line)
	}
	require.NoError(t, late.check(t))
	require.NoError(t, late.del(t))

	out, err := h.uninstall(t)
	require.NoError(t, err, out)
	assert.NoFileExists(t, h.conflist())
	assert.NoFileExists(t, h.aside())
}

// Whatever ends an uninstall in the middle, there is a conflist for the pods.
func TestTheConflistThatAKilledUninstallHasSetAside(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	flags := []string{"-bin-dir", h.path("bin"), "-executables", imageDir(t)}
	h.start(t, flags...)
	h.status(t, isReady)
	p := h.newPod(t, "pod")
	require.NoError(t, p.add(t))
	h.end(t)

	content, err := os.ReadFile(h.conflist())
	require.NoError(t, err)
	require.NoError(t, os.Rename(h.conflist(), h.aside()))
	out, err := h.uninstall(t)
	require.Error(t, err)
	assert.Contains(t, out, "delete the pods")
	back, err := os.ReadFile(h.conflist())
	require.NoError(t, err)
	assert.Equal(t, content, back)
	assert.NoFileExists(t, h.aside())

	require.NoError(t, os.Rename(h.conflist(), h.aside()))
	h.start(t, flags...)
	require.Eventually(t, func() bool {
		_, there := os.Stat(h.conflist())
		_, aside := os.Stat(h.aside())
		return there == nil && aside != nil
	}, patience, 5*time.Millisecond, "an agent that starts writes its own")
	h.end(t)
	require.NoError(t, p.del(t))

	require.NoError(t, os.WriteFile(h.aside(), []byte("older"), 0o600))
	out, err = h.uninstall(t)
	require.NoError(t, err, out)
	assert.NoFileExists(t, h.conflist())
	assert.NoFileExists(t, h.aside())
}

func TestUninstallThatIsEndedWhileItWaitsPutsTheConflistBack(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA())
	h.start(t)
	h.status(t, isReady)
	h.end(t)
	cmd := h.command(t, "uninstall", "-conf-dir", h.path("net.d"), "-status-file", h.statusFile(), "-bin-dir=")
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(h.aside()); return err == nil }, patience, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	assert.Contains(t, h.log(), "nothing is removed: context canceled")
	assert.FileExists(t, h.conflist())
	assert.NoFileExists(t, h.aside())
	assert.FileExists(t, h.statusFile())
}
