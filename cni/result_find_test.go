package cni_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestResultFind(t *testing.T) {
	var r cni.Result
	host := r.AddInterface(cni.Interface{Name: "eth0"})
	pod := r.AddInterface(cni.Interface{Name: "eth0", Sandbox: "/run/netns/c1", MAC: "02:00:00:00:00:01"})
	prefix := netip.MustParsePrefix
	r.IPs = []cni.IP{
		{Address: prefix("10.0.0.5/24"), Interface: pod}, {Address: prefix("10.0.0.1/24"), Interface: host},
		{Address: prefix("10.9.0.5/24")}, {Address: prefix("fd00::5/64"), Interface: pod},
	}
	_, err := r.Encode("1.1.0")
	require.NoError(t, err, "the indices fit")

	found, index := r.Interface("eth0", "/run/netns/c1")
	assert.Equal(t, "02:00:00:00:00:01", found.MAC)
	assert.Equal(t, 1, index)
	assert.Equal(t, []netip.Prefix{prefix("10.0.0.5/24"), prefix("fd00::5/64")}, r.Addresses(index))
	_, index = r.Interface("eth0", "")
	assert.Zero(t, index)
	_, index = r.Interface("eth1", "")
	assert.Equal(t, -1, index)
	assert.Equal(t, []netip.Prefix{prefix("10.9.0.5/24")}, r.Addresses(index), "those of no interface")

	_, index = (*cni.Result)(nil).Interface("eth0", "")
	assert.Equal(t, -1, index)
	assert.Empty(t, (*cni.Result)(nil).Addresses(0))
}

func TestRequirePrevResult(t *testing.T) {
	p := testPlugin()
	p.Add = func(_ context.Context, r *request) (*cni.Result, error) { return r.RequirePrevResult() }
	p.Check = func(_ context.Context, r *request) error { _, err := r.RequirePrevResult(); return err }
	for command, want := range map[string]string{
		"ADD":   `prevResult is missing; put the plugin "test" behind one that makes an interface`,
		"CHECK": "prevResult is missing; CHECK needs the result of the ADD",
	} {
		e := run(p, environment(command), network("1.0.0")).failed(t)
		assert.Equal(t, cni.CodeInvalidConfig, e.Code)
		assert.Contains(t, e.Msg, want)
	}
	run(p, environment("ADD"), network("1.0.0", `"prevResult":{"cniVersion":"0.4.0","x":9007199254740993}`)).
		succeeded(t, `{"cniVersion":"1.0.0","x":9007199254740993}`)
}
