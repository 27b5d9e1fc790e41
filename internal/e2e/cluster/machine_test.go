package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/e2e/binaries"
	"github.com/cnikit/cnikit/internal/testenv"
)

// newDir is a directory for clusters of one test: other clusters of this machine are
// none of its business.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "cnikit-e2e-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// programs says what the tests need and builds it.
func programs(t *testing.T) *binaries.Set {
	t.Helper()
	testenv.Root(t)
	for _, name := range []string{"env", "ip", "mount", "nsenter", "runc", "setpriv"} {
		testenv.Tool(t, name)
	}
	set, err := binaries.Ensure(t.Context(), binaries.Options{Log: t.Output()})
	require.NoError(t, err)
	return set
}

// footprint is what of the machine a cluster could change, and nobody else does.
type footprint struct {
	links    string
	settings map[string]string
}

func look(t *testing.T) footprint {
	t.Helper()
	links, err := exec.CommandContext(t.Context(), "ip", "-brief", "link").CombinedOutput()
	require.NoError(t, err, "%s", links)
	f := footprint{links: string(links), settings: map[string]string{}}
	for _, key := range []string{"kernel/panic", "kernel/panic_on_oops", "kernel/random/boot_id", "vm/overcommit_memory"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", key))
		require.NoError(t, err)
		f.settings[key] = string(value)
	}
	return f
}

// requireNothing checks that no cluster of the directory has left anything. A cluster
// is known by the names of the directories that were there.
func requireNothing(t *testing.T, dir string, ids []string, before footprint) {
	t.Helper()
	assert.Equal(t, before, look(t))
	assert.Empty(t, clusters(t, dir))
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), dir)
	for _, id := range ids {
		for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			groups, err := filepath.Glob(root + "/cnikit-e2e-" + id + "*")
			require.NoError(t, err)
			assert.Empty(t, groups)
		}
		assert.EventuallyWithT(t, func(c *assert.CollectT) {
			assert.Empty(c, mentioned(t, filepath.Join(dir, id))) // what was killed may still be on its way out
		}, limit, 10*time.Millisecond)
	}
}

// clusters are the IDs of those that have a directory.
func clusters(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// mentioned lists processes that have the directory in their arguments, mounts or cgroups.
// A zombie has ended; it waits for a parent to ask how.
func mentioned(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	var found []string
	for _, p := range all {
		if status, _ := os.ReadFile(filepath.Join(p, "status")); strings.Contains(string(status), "\nState:\tZ") {
			continue
		}
		for _, file := range []string{"cmdline", "mounts", "cgroup"} {
			data, _ := os.ReadFile(filepath.Join(p, file)) // it may be gone
			if strings.Contains(string(data), dir) || strings.Contains(string(data), "cnikit-e2e-"+filepath.Base(dir)) {
				found = append(found, p+"/"+file)
			}
		}
	}
	return found
}
