package datapath

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
)

// arrayOwner is what all programs that use a PROG_ARRAY, or are in it, have in common (kernel/bpf/core.c, bpf_prog_map_compatible).
type arrayOwner struct {
	programType ebpf.ProgramType
	attachType  ebpf.AttachType
	frags       bool
}

func ownerOf(p *ebpf.ProgramSpec) arrayOwner {
	return arrayOwner{p.Type, p.AttachType, handlesFrags(p)}
}

// claim gives programs of the collection itself, and the PROG_ARRAYs that they use, to the types and attach types that they have. They stay as they
// are, so a hook that is one of them cannot use them for another kind of entrypoint.
func (m *merger) claim() {
	for _, name := range slices.Sorted(maps.Keys(m.from.Programs)) {
		p := m.from.Programs[name]
		m.owners[whatProgram(name)] = ownerOf(p)
		if _, ok := typeOf(p); !ok { // an Extension is a hook and nothing else: it uses arrays as its entrypoint does
			continue
		}
		for i := range p.Instructions {
			name := p.Instructions[i].Reference()
			if array := m.from.Maps[name]; array != nil && array.Type == ebpf.ProgramArray && p.Instructions[i].IsLoadFromMap() {
				m.owners[whatArray(name)] = ownerOf(p)
			}
		}
	}
}

func whatArray(name string) string   { return fmt.Sprintf("PROG_ARRAY %q", name) }
func whatProgram(name string) string { return fmt.Sprintf("program %q", name) }

// own checks that a PROG_ARRAY, or a program in one, is used for entrypoints of one kind.
func (m *merger) own(entry *ebpf.ProgramSpec, what string) error {
	if entry.Ifindex != 0 { // bpf_prog_map_compatible in kernel/bpf/core.c; 6.18 takes the array, though not bound programs in it
		return &refusal{fmt.Sprintf("has a %s, and the entrypoint is bound to an interface (Ifindex), where kernels allow no tail calls", what),
			"do without tail calls, or hook an entrypoint that is not bound"}
	}
	owner := ownerOf(entry)
	if other, ok := m.owners[what]; ok && other != owner {
		return &refusal{fmt.Sprintf("its %s would be shared by programs of different types or attach types, which the kernel refuses", what),
			"give each of these hooks its own copy of the collection (CollectionSpec.Copy)"}
	}
	m.owners[what] = owner
	return nil
}

// program merges a program that a PROG_ARRAY holds. It is loaded for the entrypoint's type and attach type, as all of the array must be.
func (m *merger) program(entry *ebpf.ProgramSpec, name string, names map[string]string) error {
	if err := m.own(entry, whatProgram(name)); err != nil {
		return err
	}
	if _, ok := m.programs[name]; ok {
		return m.reach(entry, name, names)
	}
	p := m.from.Programs[name]
	if p == nil {
		return &refusal{fmt.Sprintf("tail-calls the program %q, which its collection does not have", name), "add the program to the collection"}
	}
	if err := m.memberOf(entry, p, name); err != nil {
		return err
	}
	m.programs[name] = free(m.prefix+name, func(key string) bool { return m.out.Programs[key] != nil })
	merged := p.Copy()
	merged.Type, merged.AttachType, merged.Ifindex = entry.Type, entry.AttachType, 0
	merged.AttachTo, merged.AttachTarget = "", nil
	merged.Flags = p.Flags&^flagFrags | entry.Flags&flagFrags
	m.out.Programs[m.programs[name]] = merged
	instructions, err := m.instructions(entry, p.Instructions, names)
	merged.Instructions = instructions
	return err
}

// reach adds the maps of a program that is merged already.
func (m *merger) reach(entry *ebpf.ProgramSpec, name string, names map[string]string) error {
	instructions := m.from.Programs[name].Instructions
	for i := range instructions {
		if ins := &instructions[i]; ins.IsLoadFromMap() && ins.Reference() != "" {
			if err := m.mapNamed(entry, ins.Reference(), names); err != nil {
				return err
			}
		}
	}
	return nil
}

// memberOf checks that a program can be tail-called from an entrypoint.
func (m *merger) memberOf(entry, p *ebpf.ProgramSpec, name string) error {
	which := fmt.Sprintf("tail-calls the program %q, which ", name)
	if p.Type != entry.Type && p.Type != ebpf.UnspecifiedProgram && p.Type != ebpf.Extension {
		return &refusal{which + fmt.Sprintf("is %s, but the entrypoint is %s", p.Type, entry.Type), "make them of one type"}
	}
	f, err := inspect(p)
	if err == nil {
		err = m.compatible(entry, p)
	}
	if err == nil && f.gplOnly != "" && !gplCompatible(p.License) {
		err = &refusal{fmt.Sprintf("calls %s without a GPL-compatible licence", f.gplOnly), "license it under the GPL, or do without"}
	}
	var r *refusal
	if errors.As(err, &r) {
		return &refusal{which + r.reason, r.fix}
	}
	return err
}

// flagFrags is BPF_F_XDP_HAS_FRAGS.
const flagFrags = 1 << 5

func handlesFrags(p *ebpf.ProgramSpec) bool { return p.Type == ebpf.XDP && p.Flags&flagFrags != 0 }
