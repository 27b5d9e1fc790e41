package datapath

import (
	"errors"
	"fmt"

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

// own checks that a PROG_ARRAY, or a program in one, is used for entrypoints of one kind.
func (m *merger) own(entry *ebpf.ProgramSpec, what string) error {
	owner := ownerOf(entry)
	if other, ok := m.owners[what]; ok && other != owner {
		return &refusal{fmt.Sprintf("its %s would be shared by entrypoints of different types or attach types, which the kernel refuses", what),
			"give each of these hooks its own copy of the collection (CollectionSpec.Copy)"}
	}
	m.owners[what] = owner
	return nil
}

// program merges a program that a PROG_ARRAY holds. It is loaded for the entrypoint's type and attach type, as all of the array must be.
func (m *merger) program(entry *ebpf.ProgramSpec, name string, names map[string]string) error {
	if err := m.own(entry, fmt.Sprintf("program %q", name)); err != nil {
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
	merged.Type, merged.AttachType, merged.Ifindex = entry.Type, entry.AttachType, entry.Ifindex
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
