package datapathtest

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// Load loads a collection for the time of the test. What the verifier refuses fails the test with all that it said.
func Load(t testing.TB, spec *ebpf.CollectionSpec) *ebpf.Collection {
	t.Helper()
	collection, err := ebpf.NewCollection(spec)
	if err != nil {
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Fatalf("load collection: %v\n%+v", err, refused)
		}
		t.Fatalf("load collection: %v", err)
	}
	t.Cleanup(collection.Close)
	return collection
}

// Result is how a run of a program ended.
type Result struct {
	Verdict int32
	Packet  []byte // as the program left it; nil for programs without one
}

// Run runs an XDP, TC or cgroup_skb program once on a packet, which has an Ethernet header.
func Run(t testing.TB, program *ebpf.Program, packet []byte) Result {
	t.Helper()
	verdict, out, err := program.Test(packet)
	if err != nil {
		t.Fatalf("run %v: %v", program, err)
	}
	return Result{Verdict: int32(verdict), Packet: out}
}

// RunContext runs a program that has a context and no packet, such as sk_lookup, once. The context is a struct of fixed size or the bytes of one.
func RunContext(t testing.TB, program *ebpf.Program, context any) Result {
	t.Helper()
	verdict, err := program.Run(&ebpf.RunOptions{Context: context, Repeat: 1})
	if err != nil {
		t.Fatalf("run %v: %v", program, err)
	}
	return Result{Verdict: int32(verdict)}
}

// Time runs a program many times on a packet and returns how long the kernel took for one run, in steps of a nanosecond. The program is cut short by
// no signal: an interrupted round starts anew.
func Time(t testing.TB, program *ebpf.Program, packet []byte, runs int) time.Duration {
	t.Helper()
	_, took, err := program.Benchmark(packet, runs, nil)
	if err != nil {
		t.Fatalf("time %v: %v", program, err)
	}
	return took
}

// LookupContext is the context of an sk_lookup program (struct bpf_sk_lookup in include/uapi/linux/bpf.h), for [RunContext].
type LookupContext struct {
	Cookie     uint64 // out: of the socket that the program picked
	Family     uint32
	Protocol   uint32
	RemoteIP4  [4]byte
	RemoteIP6  [16]byte
	RemotePort [2]byte // in network order
	_          [2]byte
	LocalIP4   [4]byte
	LocalIP6   [16]byte
	LocalPort  uint32
	Ifindex    uint32
	_          [4]byte
}
