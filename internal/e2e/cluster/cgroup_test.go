package cluster

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// A node's name may be the start of another's.
func TestCgroupsOfOneName(t *testing.T) {
	testenv.Root(t)
	h, err := findHierarchies()
	require.NoError(t, err)
	names := []string{"cnikit-e2e-test-node1", "cnikit-e2e-test-node10"}
	var sleepers []*exec.Cmd
	for _, name := range names {
		group, err := h.create(name)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, h.remove(context.WithoutCancel(t.Context()), name)) })
		sleeper := exec.CommandContext(t.Context(), "sleep", "infinity")
		sleeper.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
		require.NoError(t, sleeper.Start())
		require.NoError(t, group.Close())
		sleepers = append(sleepers, sleeper)
	}
	require.NoError(t, h.remove(t.Context(), names[0]))
	require.ErrorContains(t, sleepers[0].Wait(), "killed")
	assert.NoDirExists(t, filepath.Join(h.v2, names[0]))
	left, err := processes(filepath.Join(h.v2, names[1], "system"))
	require.NoError(t, err)
	assert.Equal(t, []int{sleepers[1].Process.Pid}, left)
	require.NoError(t, h.remove(t.Context(), "cnikit-e2e-test-*"))
	require.ErrorContains(t, sleepers[1].Wait(), "killed")
	require.NoError(t, h.remove(t.Context(), "cnikit-e2e-test-*"), "nothing there is no error")
}
