package cnitest_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestScriptedExecutable(t *testing.T) {
	testenv.Tool(t, "sh")
	s := &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{
		cni.CommandAdd:   {Stdout: `{"cniVersion": "1.0.0", "ips": []}`, Stderr: "words\n", First: `echo first >&2`},
		cni.CommandCheck: {Stdout: `{"cniVersion": "1.0.0", "code": 123, "msg": "it's broken"}`, Exit: 3, Delay: 10 * time.Millisecond},
	}}
	dir := t.TempDir()
	require.NoError(t, s.Install(dir, "fake"))
	inv := cni.Invocation{
		Command: cni.CommandAdd, ContainerID: "c1", NetNS: "/run/netns/c1", IfName: "eth0", Path: []string{dir},
		Config: []byte(`{"name": "net"}`), Env: []string{"A.B=it has = and spaces"},
	}
	var stderr strings.Builder
	out, err := cni.Exec{Stderr: &stderr}.Execute(t.Context(), "fake", inv)
	require.NoError(t, err)
	require.JSONEq(t, `{"cniVersion": "1.0.0", "ips": []}`, string(out))
	require.Equal(t, "words\nfirst\n", stderr.String())

	inv.Command = cni.CommandCheck
	_, err = cni.Exec{}.Execute(t.Context(), "fake", inv)
	require.ErrorContains(t, err, "it's broken")
	inv.Command = cni.CommandDel
	_, err = cni.Exec{}.Execute(t.Context(), "fake", inv)
	require.NoError(t, err)

	calls, err := s.Calls()
	require.NoError(t, err)
	require.Len(t, calls, 3)
	require.Equal(t, []cni.Command{cni.CommandAdd, cni.CommandCheck, cni.CommandDel}, []cni.Command{calls[0].Command, calls[1].Command, calls[2].Command})
	require.JSONEq(t, `{"name": "net"}`, string(calls[0].Stdin))
	for key, want := range map[string]string{"CNI_CONTAINERID": "c1", "CNI_PATH": dir, "A.B": "it has = and spaces"} {
		value, ok := calls[0].Getenv(key)
		require.True(t, ok, key)
		require.Equal(t, want, value)
	}
	_, ok := calls[0].Getenv("CNI_ARGS")
	require.False(t, ok)
	require.ErrorContains(t, s.Install(filepath.Join(dir, "a'b"), "fake"), "quote")
}

func TestScriptedHandler(t *testing.T) {
	s := &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{
		cni.CommandAdd: {Stdout: `{"cniVersion": "1.0.0"}`},
		cni.CommandDel: {Stdout: `{"cniVersion": "1.0.0", "code": 11, "msg": "later"}`, Exit: 1},
	}}
	executor := cni.Builtin{"fake": s}
	inv := cni.Invocation{Command: cni.CommandAdd, ContainerID: "c1", Config: []byte(`{"name": "net"}`)}
	out, err := executor.Execute(t.Context(), "fake", inv)
	require.NoError(t, err)
	require.JSONEq(t, `{"cniVersion": "1.0.0"}`, string(out))
	inv.Command = cni.CommandDel
	_, err = executor.Execute(t.Context(), "fake", inv)
	var e *cni.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, cni.CodeTryAgain, e.Code)

	calls, err := s.Calls()
	require.NoError(t, err)
	require.Len(t, calls, 2)
	id, _ := calls[1].Getenv("CNI_CONTAINERID")
	require.Equal(t, "c1", id)
}
