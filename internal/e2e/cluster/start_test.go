package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// replaced has another program in the place of one.
type replaced struct {
	cluster.Binaries
	name, program string
}

func (r replaced) Path(name string) string {
	if name == r.name {
		return r.program
	}
	return r.Binaries.Path(name)
}

func one() []cluster.NodeOptions { return []cluster.NodeOptions{{Name: "node1"}} }

func TestStartSaysWhatIsWrong(t *testing.T) {
	set := replaced{}
	for name, c := range map[string]struct {
		o    cluster.Options
		want string
	}{
		"binaries":   {cluster.Options{Nodes: one()}, "Binaries must say where"},
		"nodes":      {cluster.Options{Binaries: set}, "Nodes has 0 entries"},
		"name":       {cluster.Options{Binaries: set, Nodes: []cluster.NodeOptions{{Name: "a/b"}}}, `"a/b" is no DNS label`},
		"twice":      {cluster.Options{Binaries: set, Nodes: append(one(), one()...)}, `two nodes are called "node1"`},
		"containerd": {cluster.Options{Binaries: set, Nodes: []cluster.NodeOptions{{Name: "a", Containerd: "1.7"}}}, `wants containerd "1.7"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.Start(t.Context(), c.o)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestStartFailsWithTheLogOfWhatEnded(t *testing.T) {
	set, dir, before := programs(t), newDir(t), look(t)
	broken := replaced{set, "kube/kube-apiserver", testTool(t, "ls")}
	_, err := cluster.Start(t.Context(), cluster.Options{Binaries: broken, Nodes: one(), Dir: dir})
	require.ErrorContains(t, err, "kube-apiserver ended: exit status 2")
	require.ErrorContains(t, err, "unrecognized option '--etcd-servers")
	requireNothing(t, dir, nil, before)
}

func TestStartCancelled(t *testing.T) {
	set, dir, before := programs(t), newDir(t), look(t)
	ctx, cancel := context.WithCancel(t.Context())
	var ids []string
	go func() {
		defer cancel()
		serves := func(file string) bool {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")) // it may be gone
			return strings.Contains(string(command), "kube-apiserver")
		}
		for ctx.Err() == nil && !slices.ContainsFunc(mentioned(t, dir+"/"), serves) {
			time.Sleep(10 * time.Millisecond)
		}
		ids = clusters(t, dir)
	}()
	_, err := cluster.Start(ctx, cluster.Options{Binaries: set, Nodes: one(), Dir: dir})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, ids, 1)
	requireNothing(t, dir, ids, before)
}

// What it was doing when it was cancelled is a command that was killed, or something that
// does not look at the context.
func TestStartCancelledEarly(t *testing.T) {
	set, dir, before := programs(t), newDir(t), look(t)
	for after := range 10 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(5+10*after)*time.Millisecond, errTold)
		_, err := cluster.Start(ctx, cluster.Options{Binaries: set, Nodes: one(), Dir: dir})
		cancel()
		require.ErrorIs(t, err, errTold)
	}
	requireNothing(t, dir, nil, before)
}

var errTold = errors.New("told to stop")

func TestSweep(t *testing.T) {
	t.Parallel()
	programs(t)
	dir, before := newDir(t), look(t)
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimDir+"="+dir)
	out, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", line)

	require.NoError(t, cluster.Sweep(t.Context(), dir))
	ids := clusters(t, dir)
	require.Len(t, ids, 1, "a cluster that runs is left alone")
	require.NotEmpty(t, mentioned(t, filepath.Join(dir, ids[0])))

	require.NoError(t, victim.Process.Kill())
	assert.Error(t, victim.Wait())
	require.NoError(t, cluster.Sweep(t.Context(), dir))
	requireNothing(t, dir, ids, before)
}

func testTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	return path
}
