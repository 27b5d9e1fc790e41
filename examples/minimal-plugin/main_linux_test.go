package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestAdd(t *testing.T) {
	const prev = `"interfaces":[{"name":"eth0","sandbox":"/n","by":1}],"ips":[{"interface":0,"address":"10.0.0.5/24"}]`
	ns, program := newNamespace(t), filepath.Join(build(t), "minimal-plugin")
	add := func(config string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_NETNS=" + ns.Path(), "CNI_IFNAME=eth0"}
		cmd.Stdin = bytes.NewBufferString(config)
		out, err := cmd.Output()
		return string(out), err
	}
	out, err := add(`{"cniVersion": "1.1.0", "name": "net", "type": "minimal-plugin", "dns": {"nameservers": ["192.0.2.53"]}, "prevResult": {` + prev + `, "dns": {"nameservers": ["192.0.2.54"], "domain": "example.org"}}}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"cniVersion":"1.1.0",`+prev+`,"dns":{"nameservers":["192.0.2.53","192.0.2.54"],"domain":"example.org"}}`, out)

	out, err = add(`{"cniVersion": "1.1.0", "name": "net", "type": "minimal-plugin"}`)
	require.Error(t, err)
	var doc struct{ Code int }
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.Equal(t, 7, doc.Code, "it cannot be the first")
}

func newNamespace(t *testing.T) *cnitest.Namespace {
	t.Helper()
	testenv.NetAdmin(t)
	ns, err := cnitest.NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ns.Remove()) })
	return ns
}
