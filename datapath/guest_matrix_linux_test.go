package datapath_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// matrixFile is where a guest leaves what it has run: [support] by the name of the type.
const matrixFile = "matrix.json"

// support is what a kernel does with dispatchers of a type.
type support struct {
	Ran []string // compositions whose hooks ran around an original, each in its turn
}

// everyKind are all types and attach types that have dispatchers, as rows of the matrix.
func everyKind() []kind {
	var kinds []kind
	for typ, attachTypes := range programTypes() {
		for attach, pass := range attachTypes {
			k := kind{name: typ.String(), program: typ, attach: attach, pass: pass, proceed: []int32{1}}
			switch {
			case typ == ebpf.CGroupSKB && attach == ebpf.AttachCGroupInetIngress: // its number is that of no attach type
				k.name += " CGroupInetIngress"
			case attach != ebpf.AttachNone:
				k.name += " " + attach.String()
			}
			switch typ {
			case ebpf.XDP, ebpf.SchedCLS, ebpf.SchedACT:
				k.proceed, k.run = []int32{-1}, onPacket
			case ebpf.CGroupSKB:
				k.run = onPacket
			case ebpf.SkLookup:
				k.run = onLookup
			}
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Compare(a.name, b.name) })
	return kinds
}

// Every type runs with hooks of every composition around its original, where the kernel has the type.
func TestGuestEveryType(t *testing.T) {
	testenv.InGuest(t)
	matrix := map[string]support{}
	for _, k := range everyKind() {
		if !k.loads(t) {
			matrix[k.name] = support{}
			continue
		}
		var s support
		for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called, datapath.Slot} {
			if t.Run(k.name+"/"+composition.String(), func(t *testing.T) { k.checkAround(t, composition) }) {
				s.Ran = append(s.Ran, composition.String())
			}
		}
		matrix[k.name] = s
	}
	content, err := json.Marshal(matrix)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("CNIKIT_GUEST_OUT"), matrixFile), content, 0o600))
}

// A post hook that returns the verdict that it was given changes nothing, whatever else it could have returned. On 6.1 the verifier
// takes comparisons with what a register cannot hold for possible, and learns from them about registers that hold the same.
func TestGuestPostHookThatKeepsTheVerdict(t *testing.T) {
	testenv.InGuest(t)
	for _, k := range runnable() {
		t.Run(k.name, func(t *testing.T) {
			ways(t, func(t *testing.T, composition datapath.Composition, o datapath.Options) {
				keeps := link{name: "a", kind: datapath.Post, keeps: true}
				chain{kind: k, original: k.pass, links: []link{keeps, observerLink("b")}}.check(t, composition, o)
			})
		})
	}
}

// loads tells whether the kernel knows the type. It does not look at the attach type of TC programs when it loads them.
func (k kind) loads(t *testing.T) bool {
	t.Helper()
	switch k.attach {
	case ebpf.AttachTCXIngress, ebpf.AttachTCXEgress:
		if !guestIsAtLeast(t, 6, 6) {
			return false
		}
	case ebpf.AttachNetkitPrimary, ebpf.AttachNetkitPeer:
		if !guestIsAtLeast(t, 6, 7) {
			return false
		}
	}
	p, err := ebpf.NewProgram(k.spec(returning(k.pass)).Programs["entry"])
	if err != nil {
		t.Logf("%s: %v", k.name, err)
		return false
	}
	return p.Close() == nil
}

// checkAround runs an original with a pre hook, a post hook and an observer, and compares who ran and what post hooks were told.
func (k kind) checkAround(t *testing.T, composition datapath.Composition) {
	t.Helper()
	trace := datapathtest.NewTrace(t)
	c := chain{kind: k, original: k.pass, links: []link{
		preLink("pre", k.proceed[0]), postLink("post", k.proceed[0]), {name: "observer", kind: datapath.Observer, returns: k.pass},
	}}
	var program *ebpf.Program
	if composition == datapath.Slot {
		program = c.loadSlots(t, trace, datapath.Options{}).program
	} else {
		program = c.load(t, trace, composition, datapath.Options{})
	}
	if k.run != nil {
		assert.Equal(t, k.pass, k.run(t, program))
	} else {
		inCgroup(t, k.attach, program)
		require.NoError(t, useSockets())
	}
	got := trace.Take(t)
	want := []int32{0, originalID, 1, k.pass, 2, k.pass}
	require.GreaterOrEqual(t, len(got), len(want), "it did not run: %v", got)
	assert.Equal(t, want, got[:len(want)], "who ran, and what post hooks were told")
	assert.Zero(t, len(got)%len(want), "each run is complete: %v", got)
}
