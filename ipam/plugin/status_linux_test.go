package plugin

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

// A plugin that cannot reserve addresses must not say that it can attach.
func TestReadOnlyDirectory(t *testing.T) {
	testenv.Root(t)
	n := newNetwork(t)
	require.NoError(t, os.Mkdir(n.dataDir, 0o755))
	config := n.config(dualStack)
	require.NoError(t, n.do(t, cni.CommandStatus, "", config))
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread, and what it mounts, ends with the goroutine
		assert.NoError(t, syscall.Unshare(syscall.CLONE_NEWNS|syscall.CLONE_FS))
		assert.NoError(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		assert.NoError(t, syscall.Mount("tmpfs", n.dataDir, "tmpfs", syscall.MS_RDONLY, ""))
		err := n.do(t, cni.CommandStatus, "", config)
		assert.ErrorContains(t, err, "read-only file system")
		assert.Equal(t, cni.CodeNotAvailable, cni.AsError(err).Code)
		_, err = n.call(t, cni.CommandAdd, "a", config)
		assert.ErrorContains(t, err, "read-only file system")
		assert.Equal(t, cni.CodeIO, cni.AsError(err).Code)
		assert.NoError(t, n.do(t, cni.CommandDel, "a", config), "nothing is written for what has nothing")
	}()
	<-done
}
