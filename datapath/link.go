package datapath

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// linker brings programs of other collections into one: their maps and global variables, and the programs that they tail-call. What it is
// given it only reads.
type linker struct {
	out    *ebpf.CollectionSpec
	merged map[*ebpf.CollectionSpec]*merger
	names  map[string]int // of maps in the kernel, cut to its length, with the number to try behind the next one like it

	// kconfig has, by entrypoint, the collection whose kernel configuration its program reads; out for the entrypoint's own.
	kconfig map[*ebpf.ProgramSpec]*ebpf.CollectionSpec

	// single has, by entrypoint and type, the map of those types of which a program has one.
	single map[singleMap]string
}

type singleMap struct {
	entry *ebpf.ProgramSpec
	of    ebpf.MapType
}

// newLinker returns a linker that adds to out, which must be the caller's own: a copy of the collection of. Hooks that are programs of that
// collection share the maps of its entrypoints.
func newLinker(out, of *ebpf.CollectionSpec) *linker {
	l := &linker{
		out: out, merged: map[*ebpf.CollectionSpec]*merger{}, names: map[string]int{},
		kconfig: map[*ebpf.ProgramSpec]*ebpf.CollectionSpec{}, single: map[singleMap]string{},
	}
	for _, m := range out.Maps {
		l.names[kernelName(m.Name)] = 2
	}
	self := l.merger(of, "")
	for name := range out.Maps {
		self.maps[name] = name
	}
	for name := range out.Programs {
		self.programs[name] = name
	}
	for name := range out.Variables {
		self.variables[name] = name
	}
	self.claim()
	return l
}

// original makes a fragment of an entrypoint itself. Its functions keep their names, because others may attach to them.
func (l *linker) original(entry *ebpf.ProgramSpec) (*fragment, error) {
	f, err := newFragment(entry.Instructions, "")
	if err != nil {
		return nil, err
	}
	if f.throws {
		return nil, refuseThrow()
	}
	if f.kconfig {
		l.kconfig[entry] = l.out
	}
	return f, l.takeSingle(entry, f)
}

// hook makes a fragment of a collection's program, for an entrypoint. What the program refers to in its collection is merged into the linker's,
// under names that begin with prefix, an identifier; once for each collection, so that hooks with the same collection share it. It also
// returns what the maps that the program reaches are called in its collection and in the linker's.
func (l *linker) hook(entry *ebpf.ProgramSpec, c *ebpf.CollectionSpec, program, prefix string) (*fragment, map[string]string, error) {
	p := c.Programs[program]
	if p == nil {
		return nil, nil, &refusal{fmt.Sprintf("its collection has no program %q", program), "name one of the collection's"}
	}
	if err := l.compatible(entry, p); err != nil {
		return nil, nil, err
	}
	m := l.merger(c, prefix)
	names := map[string]string{}
	instructions, err := m.instructions(entry, p.Instructions, names)
	if err != nil {
		return nil, nil, err
	}
	f, err := newFragment(instructions, prefix)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case f.throws:
		return nil, nil, refuseThrow()
	case f.gplOnly != "" && !gplCompatible(entry.License):
		return nil, nil, &refusal{fmt.Sprintf("calls %s, which only GPL-compatible programs may, and the entrypoint's licence is %q", f.gplOnly, entry.License),
			"do without it, or hook a program with a GPL-compatible licence"}
	case f.kconfig:
		if err := l.takeKconfig(entry, c); err != nil {
			return nil, nil, err
		}
	}
	if err := l.takeSingle(entry, f); err != nil {
		return nil, nil, err
	}
	return f, names, nil
}

func refuseThrow() error {
	return &refusal{"calls bpf_throw, which ends the whole run without asking anybody", "return a verdict instead"}
}

// compatible checks what the two programs say about themselves, apart from their types.
func (l *linker) compatible(entry, p *ebpf.ProgramSpec) error {
	switch {
	case handlesFrags(entry) && !handlesFrags(p):
		return &refusal{"handles no packets in several fragments (BPF_F_XDP_HAS_FRAGS), but the entrypoint does",
			`see to it that it reads packets with bpf_xdp_load_bytes, and put it into the section "xdp.frags"`}
	case !sameOrder(entry.ByteOrder, p.ByteOrder):
		return &refusal{fmt.Sprintf("is %s, but the entrypoint is %s", p.ByteOrder, entry.ByteOrder), "compile it for the same byte order"}
	}
	return nil
}

// sameOrder takes nil for the order of the host, as the loader does.
func sameOrder(a, b binary.ByteOrder) bool {
	return a == nil || b == nil || a.Uint16([]byte{1, 0}) == b.Uint16([]byte{1, 0})
}

// takeKconfig refuses a second source of the kernel's configuration: the ELF loader makes one map for each collection, and then
// a program can have one.
func (l *linker) takeKconfig(entry *ebpf.ProgramSpec, c *ebpf.CollectionSpec) error {
	if other, ok := l.kconfig[entry]; ok && other != c {
		return &refusal{"reads the kernel's configuration (__kconfig), as another part of the entrypoint does; a program can have one such map",
			"give it what it needs in a global variable"}
	}
	l.kconfig[entry] = c
	return nil
}

// takeSingle refuses a second map of a type of which the kernel gives a program one (check_map_prog_compatibility in kernel/bpf/verifier.c).
func (l *linker) takeSingle(entry *ebpf.ProgramSpec, f *fragment) error {
	for ins := range f.mapLoads() {
		name := ins.Reference()
		m := l.out.Maps[name]
		if m == nil || m.Type != ebpf.Arena && m.Type != ebpf.CGroupStorage && m.Type != ebpf.PerCPUCGroupStorage {
			continue
		}
		key := singleMap{entry, m.Type}
		if other, ok := l.single[key]; ok && other != name {
			return &refusal{fmt.Sprintf("brings a second map of type %s (%q beside %q), of which a program can have one", m.Type, name, other),
				"share one (one *CollectionSpec for several hooks), or use a map of another type"}
		}
		l.single[key] = name
	}
	return nil
}

// merger brings what one collection has into the linker's.
type merger struct {
	*linker
	from      *ebpf.CollectionSpec
	prefix    string
	maps      map[string]string // names in the linker's collection, by those in this one
	programs  map[string]string
	variables map[string]string
	owners    map[string]arrayOwner // of PROG_ARRAYs and of programs in them
}

func (l *linker) merger(c *ebpf.CollectionSpec, prefix string) *merger {
	m, ok := l.merged[c]
	if !ok {
		m = &merger{
			linker: l, from: c, prefix: prefix,
			maps: map[string]string{}, programs: map[string]string{}, variables: map[string]string{}, owners: map[string]arrayOwner{},
		}
		l.merged[c] = m
	}
	return m
}

// variablesOf returns what variables in some maps of a collection are called in the linker's, by their names in that collection.
func (l *linker) variablesOf(c *ebpf.CollectionSpec, mapNames map[string]string) map[string]string {
	names := map[string]string{}
	for name, v := range c.Variables {
		if merged, ok := l.merged[c].variables[name]; ok && mapNames[v.SectionName] != "" {
			names[name] = merged
		}
	}
	return names
}

// instructions returns a copy that refers to the merged maps. Loads of maps that are loaded already, and of kernel symbols, stay as they are.
func (m *merger) instructions(entry *ebpf.ProgramSpec, from asm.Instructions, names map[string]string) (asm.Instructions, error) {
	to := make(asm.Instructions, len(from))
	copy(to, from)
	for i := range to {
		ins := &to[i]
		if !ins.IsLoadFromMap() || ins.Reference() == "" {
			continue
		}
		if err := m.mapNamed(entry, ins.Reference(), names); err != nil {
			return nil, err
		}
		*ins = ins.WithReference(names[ins.Reference()])
	}
	return to, nil
}
