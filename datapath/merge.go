package datapath

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
)

// mapNamed merges a map and what it contains, once, and adds both to names.
func (m *merger) mapNamed(entry *ebpf.ProgramSpec, name string, names map[string]string) error {
	if _, ok := names[name]; ok {
		return nil
	}
	spec := m.from.Maps[name]
	if spec == nil {
		return &refusal{fmt.Sprintf("uses the map %q, which its collection does not have", name), "add the map to the collection"}
	}
	if spec.Type == ebpf.ProgramArray {
		if err := m.own(entry, whatArray(name)); err != nil {
			return err
		}
	}
	if _, ok := m.maps[name]; !ok {
		if err := m.addMap(name, spec); err != nil {
			return err
		}
	}
	names[name] = m.maps[name]
	return m.contents(entry, name, spec, names)
}

// addMap puts a copy of the map into the linker's collection, with the values that it begins with, and its variables.
func (m *merger) addMap(name string, spec *ebpf.MapSpec) error {
	if spec.Pinning != ebpf.PinNone {
		key, shared, err := m.pinned(name, spec)
		m.maps[name] = key
		if shared != nil && len(spec.Contents) > 0 { // then the other one has none
			shared.Contents = cloneContents(spec)
		}
		if shared != nil || err != nil {
			return err
		}
	} else {
		m.maps[name] = m.freeKey(name)
	}
	merged := spec.Copy()
	merged.Contents = cloneContents(spec)
	if spec.Pinning == ebpf.PinNone && !strings.HasPrefix(spec.Name, ".") {
		merged.Name = m.freeName(spec.Name)
	}
	if m.out.Maps == nil {
		m.out.Maps = map[string]*ebpf.MapSpec{}
	}
	m.out.Maps[m.maps[name]] = merged
	m.addVariables(name)
	return nil
}

// cloneContents copies the bytes too, which [ebpf.MapSpec.Copy] does not.
func cloneContents(spec *ebpf.MapSpec) []ebpf.MapKV {
	contents := slices.Clone(spec.Contents)
	for i, kv := range contents {
		contents[i] = ebpf.MapKV{Key: cloneBytes(kv.Key), Value: cloneBytes(kv.Value)}
	}
	return contents
}

func cloneBytes(v any) any {
	if b, ok := v.([]byte); ok {
		return bytes.Clone(b)
	}
	return v
}

// addVariables brings the variables of a data section along. The loader finds them by the name of the section.
func (m *merger) addVariables(section string) {
	for name, v := range m.from.Variables {
		if v.SectionName != section {
			continue
		}
		merged := v.Copy()
		merged.SectionName = m.maps[section]
		if m.out.Variables == nil {
			m.out.Variables = map[string]*ebpf.VariableSpec{}
		}
		m.variables[name] = free(m.prefix+name, func(key string) bool { return m.out.Variables[key] != nil })
		m.out.Variables[m.variables[name]] = merged
	}
}

// contents merges the maps and programs that a map begins with.
func (m *merger) contents(entry *ebpf.ProgramSpec, name string, spec *ebpf.MapSpec, names map[string]string) error {
	for i, kv := range spec.Contents {
		object, ok := kv.Value.(string)
		if !ok {
			continue
		}
		merged := ""
		switch spec.Type {
		case ebpf.ProgramArray:
			if err := m.program(entry, object, names); err != nil {
				return err
			}
			merged = m.programs[object]
		case ebpf.ArrayOfMaps, ebpf.HashOfMaps:
			if err := m.mapNamed(entry, object, names); err != nil {
				return err
			}
			merged = m.maps[object]
		default:
			continue
		}
		m.out.Maps[m.maps[name]].Contents[i].Value = merged
	}
	return nil
}

// pinned returns the key of a map that is pinned by its name, and the map that is there under it already. Two such maps are one in the kernel, so they
// must be alike.
func (m *merger) pinned(name string, spec *ebpf.MapSpec) (key string, shared *ebpf.MapSpec, err error) {
	for key, other := range m.out.Maps {
		if other.Pinning == ebpf.PinNone || other.Name != spec.Name {
			continue
		}
		if difference := mapDifference(spec, other); difference != "" {
			return "", nil, &refusal{fmt.Sprintf("its map %q is pinned under the same name as another one, but the %s differs", spec.Name, difference),
				"give one of them another name"}
		}
		return key, other, nil
	}
	if m.out.Maps[name] == nil {
		return name, nil, nil
	}
	return m.freeKey(name), nil, nil
}

// mapDifference names what keeps two specifications from being one map.
func mapDifference(a, b *ebpf.MapSpec) string {
	switch {
	case a.Type != b.Type:
		return "type"
	case a.KeySize != b.KeySize:
		return "size of keys"
	case a.ValueSize != b.ValueSize:
		return "size of values"
	case a.MaxEntries != b.MaxEntries:
		return "number of entries"
	case a.Flags != b.Flags:
		return "set of flags"
	case a.MapExtra != b.MapExtra:
		return "map_extra"
	case len(a.Contents) > 0 && len(b.Contents) > 0:
		return "contents"
	case (a.InnerMap == nil) != (b.InnerMap == nil):
		return "inner map"
	case a.InnerMap != nil:
		return mapDifference(a.InnerMap, b.InnerMap)
	}
	return ""
}

// freeKey returns a name in the linker's collection. That of a data section begins as it did, because the loader goes by that.
func (m *merger) freeKey(name string) string {
	key := m.prefix + name
	if strings.HasPrefix(name, ".") {
		key = name + "." + strings.TrimSuffix(m.prefix, "_")
	}
	return free(key, func(key string) bool { return m.out.Maps[key] != nil })
}

// freeName returns a name for the kernel, where no two maps get the same one: it is what tools show. Data sections are the exception; the
// loader knows them by their names.
func (m *merger) freeName(name string) string {
	if name == "" {
		return ""
	}
	try := name
	for m.names[kernelName(try)] > 0 {
		suffix := "_" + strconv.Itoa(m.names[kernelName(name)])
		m.names[kernelName(name)]++
		try = name[:min(len(name), maxKernelName-len(suffix))] + suffix
	}
	m.names[kernelName(try)] = 2
	return try
}

// maxKernelName is BPF_OBJ_NAME_LEN without the final zero.
const maxKernelName = 15

func kernelName(name string) string { return name[:min(len(name), maxKernelName)] }

// free returns the name, or the name with the first number that makes it free.
func free(name string, taken func(string) bool) string {
	for n, try := 2, name; ; n++ {
		if !taken(try) {
			return try
		}
		try = name + "_" + strconv.Itoa(n)
	}
}
