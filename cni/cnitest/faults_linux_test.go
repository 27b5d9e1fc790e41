package cnitest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

// onInterface changes the container's interface.
func onInterface(inv cni.Invocation, change func(*nl.Conn, netlink.Link) error) error {
	ns, err := netns.Open(inv.NetNS)
	if err != nil {
		return err
	}
	conn, err := nl.OpenIn(ns)
	if err != nil {
		return errors.Join(err, ns.Close())
	}
	defer conn.Close()
	link, err := conn.Link(inv.IfName)
	if err == nil {
		err = change(conn, link)
	}
	return errors.Join(err, ns.Close())
}

// aliasing sets the alias of the interface, and clears it in DEL whosever it is.
func aliasing() cni.Handler {
	return handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		alias, changes := map[cni.Command]string{cni.CommandAdd: "hello", cni.CommandDel: ""}[inv.Command]
		if !changes || err != nil {
			return out, err
		}
		err = onInterface(inv, func(c *nl.Conn, link netlink.Link) error { return c.SetAlias(link, alias) })
		if inv.Command == cni.CommandDel {
			err = nil
		}
		return out, err
	}}
}

// TestRecycledNamespaceChanged: what was changed is there before and after.
func TestRecycledNamespaceChanged(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	r := examine(t, aliasing(), cnitest.Options{Run: "^faults/recycled-namespace$"})
	require.Equal(t, cnitest.Warned, r.Outcomes[0].Verdict)
	assert.Regexp(t, `DEL \(.*\) changes it:\n  - container-1: link eth0 .*alias "hello".*\n  \+ container-1: link eth0 [^"]*$`, r.Outcomes[0].Seen)
	assert.Equal(t, "note the interface's MAC address (or index) at ADD, and compare it in DEL before anything is changed or deleted; "+
		"take that of prevResult only where it has one", r.Outcomes[0].Fix)
}

// needsRoom leaves an empty file when there is no room, and needs some in DEL.
const needsRoom = `#!/bin/sh
read -r config
dir=$(echo "$config" | sed 's/.*"dataDir":"\([^"]*\)".*/\1/')
fail() { echo '{"cniVersion": "1.0.0", "code": 5, "msg": "no space left on device"}'; exit 1; }
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) echo there >"$dir/$CNI_CONTAINERID" || fail; echo '{"cniVersion": "1.0.0"}' ;;
DEL) echo going >"$dir/journal" || fail; rm -f "$dir/journal" "$dir/$CNI_CONTAINERID" ;;
esac
`

// TestFullAndDELFails: it is not said of one DEL that it failed and that it succeeded.
func TestFullAndDELFails(t *testing.T) {
	testenv.NetAdmin(t)
	testenv.Tool(t, "sh")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), []byte(needsRoom), 0o755))
	r, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"type": "mine", "dataDir": "{{dir}}"}`), Path: []string{dir}, Profile: cnitest.ProfileChained,
	}, cnitest.Options{Run: "^faults/state-full$"})
	require.NoError(t, err)
	require.Equal(t, cnitest.Warned, r.Outcomes[0].Verdict, r.Outcomes[0].Reason)
	assert.Contains(t, r.Outcomes[0].Seen, "ADD failed, and DEL: exit status 1")
	assert.Contains(t, r.Outcomes[0].Seen, "ADD failed, DEL failed, too, and there is (+ was left, - went with it):\n  + ")
	assert.NotContains(t, r.Outcomes[0].Seen, "DEL succeeded")
}
