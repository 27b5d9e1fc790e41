package datapathtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// RandomProgram is the name of the program that [Random] makes.
const RandomProgram = "random"

// RandomOptions say what a random program may be like.
type RandomOptions struct {
	Type       ebpf.ProgramType // XDP, SchedCLS, CGroupSKB, SkLookup, CGroupSockAddr, CGroupSock or SockOps
	AttachType ebpf.AttachType
	Verdicts   []int32 // what the program returns; at least one
	Post       bool    // the program takes, as a second argument, the verdict so far; see [Alone]
	TailCalls  bool    // the program may call others through a map
	Writes     bool    // the program may change the packet (XDP and TC)
	Statements int     // about how many; zero: 12
}

// Random makes a random program that the verifier accepts by itself (one for Post, after [Alone]), in a collection with the maps and programs that it uses. It has loops,
// branches, several exits, functions of its own with and without BTF, a stack used directly and by pointers, maps by helper and by address, and what the
// options allow. What it returns and writes depends on its input and maps alone. The same state of rng makes the same program.
func Random(rng *rand.Rand, o RandomOptions) *ebpf.CollectionSpec {
	if o.Statements == 0 {
		o.Statements = 12
	}
	g := &generator{rng: rng, options: o, btf: rng.IntN(4) > 0, maps: map[string]*ebpf.MapSpec{}}
	g.lines = g.btf && g.chance(2)
	spec := &ebpf.CollectionSpec{Maps: g.maps, Programs: map[string]*ebpf.ProgramSpec{}}
	if o.TailCalls {
		g.addLeaves(spec)
	}
	spec.Programs[RandomProgram] = g.program(RandomProgram, o.Post)
	return spec
}

// Alone returns a copy of a collection in which a program that takes a verdict as its second argument finds it in the map [AloneVerdict]: so it can be loaded and run by itself.
func Alone(spec *ebpf.CollectionSpec, program string) *ebpf.CollectionSpec {
	alone := spec.Copy()
	alone.Maps[AloneVerdict] = &ebpf.MapSpec{Name: AloneVerdict, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	p := alone.Programs[program]
	first := &p.Instructions[0]
	load := asm.LoadMapValue(asm.R2, 0, 0)
	load.Metadata = first.Metadata // the name, the function's type, the line
	load = load.WithReference(AloneVerdict)
	*first = first.WithMetadata(asm.Metadata{}).WithReference(first.Reference())
	p.Instructions = append(asm.Instructions{load, asm.LoadMem(asm.R2, asm.R2, 0, asm.Word)}, p.Instructions...)
	return alone
}

// AloneVerdict is the name of the array, with one entry of 32 bits, that [Alone] adds.
const AloneVerdict = "alone_verdict"

// generator holds what is common to the functions of one collection.
type generator struct {
	rng     *rand.Rand
	options RandomOptions
	btf     bool // functions have types
	lines   bool // functions have line information
	maps    map[string]*ebpf.MapSpec
	names   int                // given out so far
	subs    []asm.Instructions // of the program at work
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

// name returns one that is not taken: labels and functions share the names of a program.
func (g *generator) name(of string) string {
	g.names++
	return fmt.Sprintf("%s_%d", of, g.names)
}

// program makes a program with all functions that it calls.
func (g *generator) program(name string, post bool) *ebpf.ProgramSpec {
	g.subs = nil
	insns := g.entry(name, post)
	for _, sub := range g.subs {
		insns = append(insns, sub...)
	}
	return &ebpf.ProgramSpec{Name: name, Type: g.options.Type, AttachType: g.options.AttachType, License: "Dual MIT/GPL", Instructions: insns}
}

// addLeaves makes the programs that are called through a map with room for more of them.
func (g *generator) addLeaves(spec *ebpf.CollectionSpec) {
	leaves := &ebpf.MapSpec{Name: "leaves", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 4}
	for i := range g.rng.IntN(3) {
		name := fmt.Sprintf("leaf_%d", i)
		quiet := *g
		quiet.options.TailCalls, quiet.options.Statements = false, 4
		spec.Programs[name] = quiet.program(name, false)
		g.names = quiet.names
		leaves.Contents = append(leaves.Contents, ebpf.MapKV{Key: uint32(i), Value: name})
	}
	g.maps["leaves"] = leaves
}

// entry makes the function that the kernel calls.
func (g *generator) entry(name string, post bool) asm.Instructions {
	f := g.function(true)
	if f.ctx == 0 {
		f.emit(asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord))
	} else {
		f.emit(asm.Mov.Reg(f.ctx, asm.R1))
	}
	first := 0
	if post {
		f.emit(asm.Mov.Reg(f.scalars[0], asm.R2))
		first = 1
	}
	f.begin(first)
	f.statements(g.options.Statements)
	f.finish()
	g.describe(f.insns, name, f.entryType(post))
	return f.insns
}

// finish returns one of the verdicts, through an exit of its own.
func (f *function) finish() {
	verdicts := f.g.options.Verdicts
	f.emit(asm.Mov.Reg(asm.R1, f.scalar()), asm.Mod.Imm(asm.R1, int32(len(verdicts))))
	for i, v := range verdicts {
		next := f.g.name("verdict")
		if i < len(verdicts)-1 {
			f.emit(asm.JNE.Imm(asm.R1, int32(i), next))
		}
		f.exit(v)
		f.label(next)
	}
	f.pending = ""
}

func (f *function) exit(verdict int32) {
	if f.g.chance(2) {
		f.emit(asm.Mov.Imm32(asm.R0, verdict), asm.LSh.Imm(asm.R0, 32), asm.ArSh.Imm(asm.R0, 32))
	} else {
		f.emit(asm.Mov.Imm(asm.R0, verdict))
	}
	f.emit(asm.Return())
}
