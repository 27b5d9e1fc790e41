package datapath_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/internal/testenv"
)

// attachment puts a program in the place of the one before, or in a place that is empty.
type attachment func(p *ebpf.Program) error

// byLink attaches by a link, and updates it.
func byLink(t *testing.T, attach func(p *ebpf.Program) (ebpflink.Link, error)) attachment {
	var l ebpflink.Link
	t.Cleanup(func() {
		if l != nil {
			require.NoError(t, l.Close())
		}
	})
	return func(p *ebpf.Program) (err error) {
		if l != nil {
			return l.Update(p)
		}
		l, err = attach(p)
		return err
	}
}

// byFilter attaches to the qdisc clsact of the loopback interface of the namespace that the caller is in.
func byFilter(t *testing.T) attachment {
	t.Helper()
	pins := t.TempDir()
	require.NoError(t, unix.Mount("none", pins, "bpf", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(pins, 0)) })
	tc := func(args ...string) error {
		out, err := exec.Command(testenv.Tool(t, "tc"), args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("tc %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return err
	}
	require.NoError(t, tc("qdisc", "add", "dev", "lo", "clsact"))
	pin := filepath.Join(pins, "entry")
	return func(p *ebpf.Program) error {
		if err := p.Pin(pin); err != nil {
			return err
		}
		err := tc("filter", "replace", "dev", "lo", "ingress", "prio", "1", "handle", "1", "bpf", "direct-action", "object-pinned", pin)
		return errors.Join(err, p.Unpin())
	}
}

const loopback = 1 // the index of that interface in each namespace

// One generation of linked hooks takes the place of another while packets pass, with other hooks and in other compositions: none
// passes without the hook that is in all of them, and none is lost. At last it is gone as well.
func TestGenerationsUnderTraffic(t *testing.T) {
	l := newLab(t)
	for name, tc := range map[string]struct {
		kind   string
		attach func(t *testing.T, k kind) attachment
	}{
		"clsact": {"TC", func(t *testing.T, _ kind) attachment { return byFilter(t) }},
		"TCX": {"TCX ingress", func(t *testing.T, k kind) attachment {
			return byLink(t, func(p *ebpf.Program) (ebpflink.Link, error) {
				return ebpflink.AttachTCX(ebpflink.TCXOptions{Interface: loopback, Program: p, Attach: k.attach})
			})
		}},
		"XDP": {"XDP", func(t *testing.T, _ kind) attachment {
			return byLink(t, func(p *ebpf.Program) (ebpflink.Link, error) {
				return ebpflink.AttachXDP(ebpflink.XDPOptions{Interface: loopback, Program: p, Flags: ebpflink.XDPGenericMode})
			})
		}},
		"cgroup": {"cgroup_skb egress", func(t *testing.T, k kind) attachment {
			return byLink(t, func(p *ebpf.Program) (ebpflink.Link, error) {
				return ebpflink.AttachCgroup(ebpflink.CgroupOptions{Path: l.cgroup, Attach: k.attach, Program: p})
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, k := range runnable() {
				if k.name == tc.kind {
					l.do(t, func() { checkGenerations(t, k, tc.attach(t, k)) })
				}
			}
		})
	}
}

// checkGenerations attaches one generation after the other, each of which has the hook that counts, among others that come and go.
func checkGenerations(t *testing.T, k kind, attach attachment) {
	t.Helper()
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	require.NoError(t, err)
	defer counter.Close()
	load := asm.LoadMapValue(asm.R1, 0, 0)
	require.NoError(t, load.AssociateMap(counter))
	counting := k.spec(append(asm.Instructions{load, asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord)}, returning(k.proceed[0])...))

	generation := func(seed uint64) *ebpf.Collection {
		rng := rand.New(rand.NewPCG(seed, 7))
		hooks := []datapath.Hook{hook(datapath.Pre, "counts", counting)}
		for i := range rng.IntN(12) {
			kind := []datapath.Kind{datapath.Pre, datapath.Post, datapath.Observer}[rng.IntN(3)]
			hooks = append(hooks, hook(kind, fmt.Sprint(i), k.spec(returning(k.proceed[0]))))
		}
		for i := range hooks {
			hooks[i].Priority, hooks[i].Composition = rng.IntN(5), datapath.Composition(rng.IntN(3))
		}
		plan, err := datapath.NewPlan(k.spec(returning(k.pass)), hooks, datapath.Options{Counters: rng.IntN(2) == 0})
		require.NoError(t, err)
		collection, err := ebpf.NewCollection(plan.Build())
		require.NoError(t, err)
		return collection
	}
	current := generation(0)
	require.NoError(t, attach(current.Programs["entry"]))
	sent, stop := traffic(t)
	for seed := range testenv.Scale(t, 20) {
		next := generation(uint64(seed))
		require.NoError(t, attach(next.Programs["entry"]))
		current.Close()
		current = next
	}
	stop()
	current.Close()
	var seen uint64
	require.NoError(t, counter.Lookup(uint32(0), &seen))
	assert.Equal(t, *sent, seen, "packets that the hook saw")
	assert.NotZero(t, seen)

	plan, err := datapath.NewPlan(k.spec(returning(k.pass)), nil, datapath.Options{})
	require.NoError(t, err)
	without, err := ebpf.NewCollection(plan.Build())
	require.NoError(t, err)
	defer without.Close()
	require.NoError(t, attach(without.Programs["entry"]))
	_, stop = traffic(t)
	stop()
	var now uint64
	require.NoError(t, counter.Lookup(uint32(0), &now))
	assert.Equal(t, seen, now, "packets that the hook saw when it was gone")
}

// traffic sends one datagram after the other over loopback, each when the one before has arrived, until it is stopped. What is lost fails the test.
func traffic(t *testing.T) (sent *uint64, stop func()) {
	t.Helper()
	s := newSender(t)
	patience := unix.Timeval{Sec: 60}
	require.NoError(t, unix.SetsockoptTimeval(s.to, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
	require.NoError(t, s.send())
	sent = new(uint64)
	*sent = 1
	var running sync.WaitGroup
	done := make(chan struct{})
	var failed error
	running.Go(func() {
		for ; failed == nil; *sent++ {
			select {
			case <-done:
				return
			default:
				failed = s.send()
			}
		}
	})
	return sent, func() {
		close(done)
		running.Wait()
		require.NoError(t, failed)
	}
}
