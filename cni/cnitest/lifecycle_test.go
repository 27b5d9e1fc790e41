package cnitest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func newLifecycle(t *testing.T, h cni.Handler) *cnitest.Lifecycle {
	t.Helper()
	testenv.NetAdmin(t)
	return cnitest.NewLifecycle(t, cnitest.Target{
		Config: []byte(`{"name": "net", "type": "passing"}`), Profile: cnitest.ProfileChained, Handler: h,
	})
}

func TestLifecycle(t *testing.T) {
	l := newLifecycle(t, passing())
	result, err := l.Run()
	require.NoError(t, err)
	require.Len(t, result.Interfaces, 2)
	require.Equal(t, "eth0", result.Interfaces[1].Name)
	require.Contains(t, look(t, l.Container()).String(), "link eth0 veth")
	require.NoError(t, l.Status())
	require.NoError(t, l.GC(true))
	require.NoError(t, l.Vanish())
	require.NoError(t, l.Del(), "the namespace is gone")
	cnitest.Golden(t, "testdata/lifecycle.json", result)
}

func TestLifecycleFindsWhatIsLeft(t *testing.T) {
	t.Parallel()
	var l *cnitest.Lifecycle
	calls := 0
	littering := handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		if inv.Command == cni.CommandAdd {
			calls++
			require.NoError(t, os.WriteFile(filepath.Join(l.Dir(), "left"+string(rune('0'+calls))), nil, 0o600))
		}
		return out, err
	}}
	l = cnitest.NewLifecycle(t, cnitest.Target{
		Config: []byte(`{"name": "net", "type": "passing"}`), Profile: cnitest.ProfileChained, Handler: littering,
	})
	_, err := l.Run()
	require.ErrorContains(t, err, "{{dir}}/left2")
	require.NotContains(t, err.Error(), "left1", "what the first container leaves may be shared")
}

func TestLifecycleReturnsThePluginsError(t *testing.T) {
	refusing := handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		if inv.Command == cni.CommandCheck {
			return nil, cni.Errorf(cni.CodeTryAgain, "not now")
		}
		return out, err
	}}
	l := newLifecycle(t, refusing)
	_, err := l.Run()
	require.ErrorContains(t, err, "CHECK: not now")
	var e *cni.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, cni.CodeTryAgain, e.Code)
}

func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "result.json")
	r := &cni.Result{CNIVersion: "1.0.0", Interfaces: []cni.Interface{
		{Name: "cni0", MAC: "02:00:00:00:00:01"},
		{Name: "veth123", MAC: "02:00:00:00:00:02"},
		{Name: "eth0", MAC: "02:00:00:00:00:03", Sandbox: "/run/netns/x"},
	}}
	t.Setenv(cnitest.GoldenUpdate, "1")
	cnitest.Golden(t, file, r)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, `{"cniVersion": "1.0.0", "interfaces": [
		{"name": "cni0", "mac": "mac-1"}, {"name": "veth-1", "mac": "mac-2"}, {"name": "eth0", "mac": "mac-3", "sandbox": "netns-1"}]}`, string(text))
	t.Setenv(cnitest.GoldenUpdate, "")
	r.Interfaces[2].Sandbox, r.Interfaces[1].Name = "/run/netns/y", "veth456"
	cnitest.Golden(t, file, r)

	r.Interfaces[0].Name = "cni1"
	recorded := &recorder{TB: t}
	cnitest.Golden(recorded, file, r)
	require.True(t, recorded.failed)
}

// recorder is a test that remembers an error instead of failing.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
