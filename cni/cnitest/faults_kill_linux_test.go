//go:build amd64 || arm64

package cnitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

// filing is an IPAM plugin, in shell, that keeps a file per attachment; what ADD and DEL
// do to it is given. DIR is the directory of the files, ID the name of the attachment.
func filing(t *testing.T, add, del string) Target {
	t.Helper()
	testenv.NetAdmin(t)
	dir, state := t.TempDir(), t.TempDir()
	text := strings.NewReplacer("DIR", state, "ID", "$CNI_CONTAINERID").Replace(`#!/bin/sh
cat >/dev/null
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.1.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) ` + add + `
	echo '{"cniVersion": "1.0.0", "ips": [{"address": "192.0.2.1/24"}]}' ;;
DEL) ` + del + ` ;;
esac
`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "filing"), []byte(text), 0o755))
	return Target{
		Plugin: "filing", Path: []string{dir}, Dirs: []string{state}, Profile: ProfileIPAM,
		Config: []byte(`{"name": "net", "type": "filing"}`),
	}
}

// outcome runs one case, which kills at all moments however long that takes.
func outcome(t *testing.T, target Target, o Options) Outcome {
	t.Helper()
	o.Seed, o.Timeout = 1, time.Minute
	x, err := newExam(t.Context(), target, o)
	require.NoError(t, err)
	defer x.close()
	x.killing = 5 * time.Minute
	outcomes := x.runAll(t.Context())
	require.Len(t, outcomes, 1)
	require.Empty(t, x.notes)
	return outcomes[0]
}

var (
	killsADD = Options{Run: "^faults/killed-add$"}
	killsDEL = Options{Run: "^faults/killed-del$"}
)

func TestKilledADD(t *testing.T) {
	t.Parallel()
	const add = "echo ID >DIR/new-ID; mv DIR/new-ID DIR/ID"
	o := outcome(t, filing(t, add, "rm -f DIR/ID DIR/new-ID"), killsADD)
	require.Equal(t, Kept, o.Verdict, o.Seen)

	o = outcome(t, filing(t, add, "rm -f DIR/ID"), killsADD)
	require.Equal(t, Warned, o.Verdict)
	require.Contains(t, o.Seen, ": write ", "killed between the creation of the file and the write to it")
	require.Contains(t, o.Seen, "(change 2 of 3), and likewise at 1 more moment: after DEL there is left", "and before it is renamed")
	require.Contains(t, o.Seen, "/new-")

	o = outcome(t, filing(t, "set -C; echo ID >DIR/new-ID || exit 1; mv DIR/new-ID DIR/ID", "rm -f DIR/ID"), killsADD)
	require.Equal(t, Warned, o.Verdict, "the second ADD is refused")

	o = outcome(t, filing(t, add, "rm DIR/ID"), killsADD)
	require.Contains(t, o.Seen, "(change 1 of 3), and likewise at 2 more moments: DEL fails: exit status 1")
}

// TestKilledWhereDELRemovesNothing: what is left of every attachment, with another address
// each time, is no matter of the kill.
func TestKilledWhereDELRemovesNothing(t *testing.T) {
	t.Parallel()
	nsenter, ip := testenv.Tool(t, "nsenter"), testenv.Tool(t, "ip")
	const random = "$(od -An -N2 -tu1 /dev/urandom | tr -s ' ' .)/32"
	o := outcome(t, filing(t, nsenter+" --net=$CNI_NETNS "+ip+" addr add 10.9"+random+" dev lo", ":"), killsADD)
	require.Equal(t, Kept, o.Verdict, o.Seen)
}

// TestKills: as many as the options say, and each is followed by a DEL, and by another one
// for the ADD that shows that all is well.
func TestKills(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	target := filing(t, "echo ID >DIR/new-ID; mv DIR/new-ID DIR/ID", "rm -f DIR/ID DIR/new-ID; echo >>"+count)
	o := outcome(t, target, Options{Run: killsADD.Run, Kills: 2}) // with no note: it was asked for
	require.Equal(t, Kept, o.Verdict, o.Seen)
	dels, err := os.ReadFile(count)
	require.NoError(t, err)
	require.Len(t, dels, 1+2*2)
}

func TestKilledDEL(t *testing.T) {
	t.Parallel()
	const add = "touch DIR/lease-ID DIR/ID"
	o := outcome(t, filing(t, add, "[ -e DIR/ID ] && rm -f DIR/lease-ID; rm -f DIR/ID"), killsDEL)
	require.Equal(t, Kept, o.Verdict, o.Seen)

	o = outcome(t, filing(t, add, "[ -e DIR/ID ] && rm DIR/ID && rm DIR/lease-ID; exit 0"), killsDEL)
	require.Equal(t, Warned, o.Verdict)
	require.Regexp(t, `^killed before rm: remove .*/lease-[0-9a-f]+ \(change 2 of 2\): after DEL there is left`, o.Seen)
}

// TestKilledWithoutTracing is what is done where ptrace is refused.
func TestKilledWithoutTracing(t *testing.T) {
	t.Parallel()
	x, err := newExam(t.Context(), filing(t, "touch DIR/ID; sleep 1000", "rm -f DIR/ID"), Options{Seed: 1})
	require.NoError(t, err)
	defer x.close()
	p, err := x.probe(t.Context(), "timed")
	require.NoError(t, err)
	defer p.close()
	a := p.container()
	before := p.look(a)
	f := p.kill(p.request(cni.CommandAdd, a), killPlan{}, killMoment{delay: 3 * time.Second}) // it has begun by then
	require.Equal(t, "killed 3s after its start", f.when)
	require.NotEmpty(t, before.Diff(p.look(a)))
	left, err := p.node.Processes()
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, p.cleansUp(a, was{before: before}))
}

func TestObjectKey(t *testing.T) {
	x := &exam{dir: "/x"}
	p := &probe{exam: x, home: "/x/1"}
	for line, want := range map[string]string{
		"+ node: link br0 bridge mtu 1500 up":              "+ node: link br0",
		"+ node: file /x/1/state/net drwxr-xr-x":           "+ node: file {{dir}}/net",
		"+ node: fdb 02:00:00:00:00:01 dev br0 master br0": "+ node: fdb MAC dev br0 master br0",
		"- node: addr 2001:db8::1/64 dev br0 scope 0":      "- node: addr 2001:db8::1/64 dev br0 scope 0",
	} {
		require.Equal(t, want, p.objectKey(line))
	}
}
