package cnitest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
)

func TestExecutor(t *testing.T) {
	node := newNamespace(t)
	want, err := node.Command(t.Context(), "readlink", "/proc/self/ns/net").Output()
	require.NoError(t, err)
	inv := cni.Invocation{
		Command: cni.CommandStatus, Env: os.Environ(),
		Config: []byte(`{"cniVersion":"1.1.0","name":"lan","type":"where"}`),
	}

	t.Run("a built-in plugin runs inside", func(t *testing.T) {
		var inside string
		where := cni.Plugin[struct{}]{
			Type: "where",
			Add:  func(context.Context, *cni.Request[struct{}]) (*cni.Result, error) { return &cni.Result{}, nil },
			Del:  cni.NoState[struct{}], Check: cni.NoState[struct{}], GC: cni.NoState[struct{}],
			Status: func(context.Context, *cni.Request[struct{}]) (err error) {
				inside, err = os.Readlink("/proc/thread-self/ns/net")
				return err
			},
		}
		_, err := node.Executor(cni.Builtin{"where": where.Handler()}).Execute(t.Context(), "where", inv)
		require.NoError(t, err)
		require.Equal(t, string(want), inside+"\n")
	})
	t.Run("an executable runs inside", func(t *testing.T) {
		inv := inv
		inv.Path = []string{t.TempDir()}
		saw := filepath.Join(inv.Path[0], "saw")
		script := "#!/bin/sh\nreadlink /proc/self/ns/net >" + saw + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(inv.Path[0], "where"), []byte(script), 0o755))
		_, err := node.Executor(cni.Exec{}).Execute(t.Context(), "where", inv)
		require.NoError(t, err)
		inside, err := os.ReadFile(saw)
		require.NoError(t, err)
		require.Equal(t, string(want), string(inside))
	})
	t.Run("errors of the plugin come back as they are", func(t *testing.T) {
		_, err := node.Executor(cni.Builtin{}).Execute(t.Context(), "where", inv)
		require.ErrorIs(t, err, cni.ErrPluginNotFound)
	})
	t.Run("a namespace that is closed is an error, not the caller's own", func(t *testing.T) {
		closed, err := cnitest.NewNamespace()
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		_, err = closed.Executor(panics{}).Execute(t.Context(), "where", inv)
		require.Error(t, err)
	})
}

type panics struct{}

func (panics) Execute(context.Context, string, cni.Invocation) ([]byte, error) {
	panic("it ran")
}
