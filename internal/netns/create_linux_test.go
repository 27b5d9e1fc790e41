package netns_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestCreateAndRemove(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "with blank", "netns")
	path := filepath.Join(dir, "blue.1")
	ns, err := netns.Create(path)
	require.NoError(t, err)
	defer ns.Close()
	assert.Equal(t, path, ns.Path())
	assert.Equal(t, ns.Inode(), inside(t, ns))

	t.Run("other processes open it", func(t *testing.T) {
		out, err := exec.Command("nsenter", "--net="+path, "readlink", "/proc/self/ns/net").CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, fmt.Sprintf("net:[%d]", ns.Inode()), strings.TrimSpace(string(out)))
	})
	t.Run("the directory is on a shared mount", func(t *testing.T) {
		assert.True(t, sharedMount(t, dir), "%s", mountinfo(t))
	})
	t.Run("taken path", func(t *testing.T) {
		_, err := netns.Create(path)
		require.ErrorIs(t, err, fs.ErrExist)
		again, err := netns.Open(path)
		require.NoError(t, err, "the first must survive")
		require.NoError(t, again.Close())
	})
	t.Run("open handle outlives the path", func(t *testing.T) {
		require.NoError(t, netns.Remove(path))
		assert.NoFileExists(t, path)
		assert.Equal(t, ns.Inode(), inside(t, ns))
	})
	t.Run("remove/idempotent", func(t *testing.T) {
		require.NoError(t, netns.Remove(path))
		require.NoError(t, netns.Remove(filepath.Join(t.TempDir(), "never", "was")))
	})
	t.Run("no mount stays", func(t *testing.T) {
		assert.NotContains(t, mountinfo(t), strings.ReplaceAll(dir, " ", `\040`))
	})
}

// sharedMount reports whether findmnt-like wisdom says that dir is on a shared mount.
func sharedMount(t *testing.T, dir string) bool {
	out, err := exec.Command(testenv.Tool(t, "findmnt"), "-n", "-o", "PROPAGATION", "--target", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.HasPrefix(strings.TrimSpace(string(out)), "shared")
}

func mountinfo(t *testing.T) string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return string(data)
}

// A private directory mount covers what others mounted in it later, so parallel
// users must agree on one.
func TestCreateInParallel(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "netns")
	var wg sync.WaitGroup
	for round := range 3 {
		for i := range 8 {
			wg.Go(func() {
				path := filepath.Join(dir, fmt.Sprintf("ns%d", i))
				ns, err := netns.Create(path)
				if !assert.NoError(t, err) {
					return
				}
				again, err := netns.Open(path)
				if assert.NoError(t, err) {
					assert.True(t, again.Equal(ns))
					assert.NoError(t, again.Close())
				}
				assert.NoError(t, ns.Close())
				assert.NoError(t, netns.Remove(path))
			})
		}
		wg.Wait()
		assert.NotContains(t, mountinfo(t), dir, "round %d", round)
	}
}

func TestCreateOnASharedMountMountsNothingMore(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, ""))
	defer func() { require.NoError(t, unix.Unmount(dir, 0)) }()
	require.NoError(t, unix.Mount("", dir, "", unix.MS_SHARED, ""))
	path := filepath.Join(dir, "sub", "ns")
	ns, err := netns.Create(path)
	require.NoError(t, err)
	require.NoError(t, ns.Close())
	assert.Equal(t, 2, strings.Count(mountinfo(t), dir), "the tmpfs and the namespace:\n%s", mountinfo(t))
	require.NoError(t, netns.Remove(path))
	assert.Equal(t, 1, strings.Count(mountinfo(t), dir))
}

func TestRemoveLeavesOthersAlone(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	require.NoError(t, os.WriteFile(full, []byte("precious"), 0o600))
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o700))
	mounted := filepath.Join(dir, "mounted")
	require.NoError(t, os.Mkdir(mounted, 0o700))
	require.NoError(t, unix.Mount("none", mounted, "tmpfs", 0, ""))
	defer func() { require.NoError(t, unix.Unmount(mounted, 0)) }()

	for _, path := range []string{full, sub, mounted} {
		require.ErrorIs(t, netns.Remove(path), netns.ErrNotNetNS, path)
		assert.True(t, exists(path))
	}
	t.Run("leftover mount point is removed", func(t *testing.T) {
		leftover := filepath.Join(dir, "leftover")
		require.NoError(t, os.WriteFile(leftover, nil, 0o444))
		require.NoError(t, netns.Remove(leftover))
		assert.False(t, exists(leftover))
	})
	t.Run("an empty file system of somebody else stays mounted", func(t *testing.T) {
		leftover := filepath.Join(mounted, "leftover")
		require.NoError(t, os.WriteFile(leftover, nil, 0o444))
		require.NoError(t, netns.Remove(leftover))
		assert.Contains(t, mountinfo(t), mounted)
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
