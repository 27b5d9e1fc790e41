package hostlocal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam"
)

// workerEnv makes the test binary a worker: dataDir, directory of claims, name, and how
// many calls are in flight at a time.
const workerEnv = "CNIKIT_TEST_HOSTLOCAL_WORKER"

func TestMain(m *testing.M) {
	if v, ok := os.LookupEnv(workerEnv); ok {
		if err := runWorker(strings.Split(v, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const workers = 8

// workerPool has fewer addresses than the workers want, so that they meet at
// the last free ones.
func workerPool(dataDir string) (*Store, *ipam.Pool, error) {
	s, err := New(dataDir, "net", Options{})
	if err != nil {
		return nil, nil, err
	}
	p, err := ipam.NewPool(s, ipam.PoolOptions{},
		ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/28")}},
		ipam.RangeSet{{Subnet: netip.MustParsePrefix("fd00::/124")}})
	return s, p, err
}

// runWorker allocates and releases until standard input ends, and then releases
// what it has. It claims every address it is given, by a symbolic link named
// after it, and gives the claim up before the address: a claim that is there
// already is an address with two owners.
func runWorker(args []string) error {
	ctx := context.Background()
	_, p, err := workerPool(args[0])
	if err != nil {
		return err
	}
	inFlight, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	ended, results := make(chan struct{}), make(chan error)
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(ended) }()
	for i := range inFlight {
		go func() { results <- work(ctx, p, args[1], args[2]+"."+strconv.Itoa(i), ended) }()
	}
	for range inFlight {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

// work is a worker with one call at a time.
func work(ctx context.Context, p *ipam.Pool, claims, name string, ended <-chan struct{}) error {
	var held []ipam.Owner
	for n := 0; ; n++ {
		select {
		case <-ended:
			for _, o := range held {
				if err := giveUp(ctx, p, claims, o); err != nil {
					return err
				}
			}
			return nil
		default:
		}
		o := ipam.Owner{ContainerID: name + "." + strconv.Itoa(n), IfName: "eth0"}
		switch err := take(ctx, p, claims, o); {
		case err == nil:
			fmt.Println(n)
			held = append(held, o)
		case !errors.Is(err, ipam.ErrExhausted):
			return err
		}
		if len(held) == 0 || len(held) < 3 && rand.IntN(2) == 0 {
			continue
		}
		if err := giveUp(ctx, p, claims, held[0]); err != nil {
			return err
		}
		held = held[1:]
	}
}

func take(ctx context.Context, p *ipam.Pool, claims string, o ipam.Owner) error {
	leases, err := p.Allocate(ctx, o, ipam.Options{})
	if err != nil {
		return err
	}
	for _, l := range leases {
		if err := os.Symlink(o.ContainerID, filepath.Join(claims, l.Address.Addr().String())); err != nil {
			return fmt.Errorf("%s has two owners: %w", l, err)
		}
	}
	return nil
}

func giveUp(ctx context.Context, p *ipam.Pool, claims string, o ipam.Owner) error {
	leases, err := p.Leases(ctx, o)
	if err != nil {
		return err
	}
	if len(leases) != 2 {
		return fmt.Errorf("%s has leases %v", o, leases)
	}
	for _, l := range leases {
		if err := os.Remove(filepath.Join(claims, l.Address.Addr().String())); err != nil {
			return err
		}
	}
	return p.Release(ctx, o)
}

// worker is a running worker process.
type worker struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Reader
}

func startWorker(t *testing.T, dataDir, claims, name string, inFlight int) *worker {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	w := &worker{name: name, cmd: exec.Command(exe)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+strings.Join([]string{dataDir, claims, name, strconv.Itoa(inFlight)}, "|"))
	w.cmd.Stderr = os.Stderr
	w.stdin, err = w.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	w.lines = bufio.NewReader(out)
	require.NoError(t, w.cmd.Start())
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

// progress waits until the worker has allocated n more times.
func (w *worker) progress(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, err := w.lines.ReadString('\n'); err != nil {
			t.Fatalf("worker %s ended: %v", w.name, w.cmd.Wait())
		}
	}
}

// stop ends the worker, which releases what it has.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, w.stdin.Close())
	_, _ = io.Copy(io.Discard, w.lines)
	require.NoError(t, w.cmd.Wait(), "worker %s", w.name)
}

// Processes share a directory, some die in the middle of whatever they do: no
// address ever has two owners, a DEL frees what the dead had, and nothing is lost.
func TestProcesses(t *testing.T) {
	dataDir, claims := fastDir(t), fastDir(t)
	s, p, err := workerPool(dataDir)
	require.NoError(t, err)
	var running []*worker
	for i := range workers {
		running = append(running, startWorker(t, dataDir, claims, "w"+strconv.Itoa(i), 1))
	}
	for kill := range kills(t) {
		i := rand.IntN(workers)
		running[i].progress(t, 1+rand.IntN(4))
		require.NoError(t, running[i].cmd.Process.Kill())
		require.Error(t, running[i].cmd.Wait())
		collect(t, s, p, claims, running[i].name, false)
		running[i] = startWorker(t, dataDir, claims, "k"+strconv.Itoa(kill), 1)
	}
	for _, w := range running {
		w.progress(t, 5)
	}
	for _, w := range running {
		w.stop(t)
	}
	left := snapshot(t, s.dir)
	for _, name := range []string{"lock", "last_reserved_ip.0", "last_reserved_ip.1"} {
		assert.Contains(t, left, name)
		delete(left, name)
	}
	assert.Empty(t, left, "no lease is left")
	for n := range 13 {
		allocate(t, p, strconv.Itoa(n))
	}
}

// collect is the runtime's DEL for every attachment of a dead worker. Nothing that a
// worker leaves is an empty file; emptyFiles: others may leave some.
func collect(t *testing.T, s *Store, p *ipam.Pool, claims, name string, emptyFiles bool) {
	t.Helper()
	entries, err := os.ReadDir(claims)
	require.NoError(t, err)
	for _, e := range entries {
		path := filepath.Join(claims, e.Name())
		if o, err := os.Readlink(path); err == nil && strings.HasPrefix(o, name+".") {
			require.NoError(t, os.Remove(path))
		}
	}
	owners := map[ipam.Owner]bool{}
	require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) error {
		for r, err := range tx.All() {
			require.NoError(t, err)
			require.True(t, r.Owner != (ipam.Owner{}) || emptyFiles, "%s is no complete record", r.Address)
			if strings.HasPrefix(r.Owner.ContainerID, name+".") {
				owners[r.Owner] = true
			}
		}
		return nil
	}))
	for o := range owners {
		require.NoError(t, p.Release(t.Context(), o))
	}
}

// kills is the number of rounds: fewer with -short, more in long runs.
func kills(t *testing.T) int {
	if testing.Short() {
		return 3
	}
	return testenv.Scale(t, 8)
}
