package datapath

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// array is a map with one entry.
func array(name string) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}
}

// using is an XDP program that loads the addresses of maps.
func using(maps ...string) *ebpf.ProgramSpec {
	p := &ebpf.ProgramSpec{Name: "using", Type: ebpf.XDP, License: "GPL"}
	for _, name := range maps {
		p.Instructions = append(p.Instructions, asm.LoadMapPtr(asm.R1, 0).WithReference(name))
	}
	p.Instructions = append(p.Instructions, asm.Mov.Imm(asm.R0, 2), asm.Return())
	return p
}

// target is a collection with an entrypoint and a linker that adds to it.
func target(maps map[string]*ebpf.MapSpec) (*linker, *ebpf.ProgramSpec) {
	entry := using()
	out := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"entry": entry}, Maps: maps}
	return newLinker(out, &ebpf.CollectionSpec{}), entry
}

// A hook brings the maps that its program reaches, with all that is in them, and its variables.
func TestHookBringsWhatItReaches(t *testing.T) {
	inner := array("inner")
	c := &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			"counts": array("counts"), "unused": array("unused"), "inner": inner, "deep": array("deep"),
			"outer": {Name: "outer", Type: ebpf.ArrayOfMaps, KeySize: 4, MaxEntries: 2, InnerMap: inner, Contents: []ebpf.MapKV{{Key: uint32(1), Value: "inner"}}},
			"tails": tails("tails"),
			".rodata.x": {
				Name: ".rodata.x", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1,
				Contents: []ebpf.MapKV{{Key: uint32(0), Value: []byte{1, 2, 3, 4, 5, 6, 7, 8}}},
			},
		},
		Programs: map[string]*ebpf.ProgramSpec{
			"hook": using("counts", "outer", "tails", ".rodata.x"), "tail": using("deep", "tails", "counts"), "idle": using("unused"),
		},
		Variables: map[string]*ebpf.VariableSpec{
			"limit": {Name: "limit", SectionName: ".rodata.x", Offset: 4, Value: []byte{5, 6, 7, 8}},
			"other": {Name: "other", SectionName: ".bss", Value: []byte{0}},
		},
	}
	untouched := c.Copy()
	l, entry := target(nil)
	entry.AttachType = ebpf.AttachXDP
	f, names, err := l.hook(entry, c, "hook", "dp_h0_")
	require.NoError(t, err)

	assert.Equal(t, map[string]string{
		"counts": "dp_h0_counts", "outer": "dp_h0_outer", "inner": "dp_h0_inner", "tails": "dp_h0_tails", "deep": "dp_h0_deep", ".rodata.x": ".rodata.x.dp_h0",
	}, names)
	assert.Len(t, l.out.Maps, len(names))
	assert.Equal(t, []ebpf.MapKV{{Key: uint32(1), Value: "dp_h0_inner"}}, l.out.Maps["dp_h0_outer"].Contents)
	assert.Equal(t, []ebpf.MapKV{{Key: uint32(0), Value: "dp_h0_tail"}}, l.out.Maps["dp_h0_tails"].Contents)
	assert.NotSame(t, inner, l.out.Maps["dp_h0_outer"].InnerMap)

	tail := l.out.Programs["dp_h0_tail"]
	assert.Equal(t, ebpf.AttachXDP, tail.AttachType, "a member of the array is loaded as the entrypoint is")
	assert.Equal(t, "dp_h0_deep", tail.Instructions[0].Reference())
	assert.Len(t, l.out.Programs, 2)
	assert.Equal(t, "dp_h0_counts", f.functions[0].code[0].Reference())

	assert.Equal(t, map[string]*ebpf.VariableSpec{
		"dp_h0_limit": {Name: "limit", SectionName: ".rodata.x.dp_h0", Offset: 4, Value: []byte{5, 6, 7, 8}},
	}, l.out.Variables)
	assert.Equal(t, ".rodata.x", l.out.Maps[".rodata.x.dp_h0"].Name, "the loader freezes data sections by their names")

	l.out.Maps[".rodata.x.dp_h0"].Contents[0].Value.([]byte)[0] = 99
	l.out.Variables["dp_h0_limit"].Value[0] = 99
	l.out.Maps["dp_h0_outer"].InnerMap.MaxEntries = 99
	assert.Equal(t, untouched.Maps, c.Maps, "the input was changed")
	assert.Equal(t, untouched.Programs, c.Programs, "the input was changed")
	assert.Equal(t, untouched.Variables, c.Variables, "the input was changed")
}

// One collection is merged once, whatever hooks use of it; another one, or a copy, is merged beside it.
func TestCollectionsAreMergedOnce(t *testing.T) {
	c := &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"counts": array("counts"), "more": array("more")},
		Programs: map[string]*ebpf.ProgramSpec{"a": using("counts"), "b": using("counts", "more")},
	}
	l, entry := target(nil)
	_, first, err := l.hook(entry, c, "a", "dp_h0_")
	require.NoError(t, err)
	_, second, err := l.hook(entry, c, "b", "dp_h1_")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"counts": "dp_h0_counts"}, first)
	assert.Equal(t, map[string]string{"counts": "dp_h0_counts", "more": "dp_h0_more"}, second)
	_, third, err := l.hook(entry, c.Copy(), "a", "dp_h2_")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"counts": "dp_h2_counts"}, third)
}

// tails is a PROG_ARRAY that begins with the program "tail".
func tails(name string) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: name, Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 2, Contents: []ebpf.MapKV{{Key: uint32(0), Value: "tail"}}}
}

// A program that two hooks tail-call is merged once, and what it reaches is reached by both.
func TestTailCalledProgramsAreMergedOnce(t *testing.T) {
	c := &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"one": tails("one"), "two": tails("two"), "deep": array("deep")},
		Programs: map[string]*ebpf.ProgramSpec{"a": using("one"), "b": using("two"), "tail": using("deep")},
	}
	l, entry := target(nil)
	_, first, err := l.hook(entry, c, "a", "dp_h0_")
	require.NoError(t, err)
	_, second, err := l.hook(entry, c, "b", "dp_h1_")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"one": "dp_h0_one", "deep": "dp_h0_deep"}, first)
	assert.Equal(t, map[string]string{"two": "dp_h0_two", "deep": "dp_h0_deep"}, second)
	assert.Len(t, l.out.Programs, 2, "the entrypoint and the program")

	other := using()
	other.AttachType = ebpf.AttachXDPDevMap
	c.Maps["three"], c.Programs["c"] = tails("three"), using("three")
	_, _, err = l.hook(other, c, "c", "dp_h2_")
	require.ErrorContains(t, err, `its program "tail" would be shared by programs of different types`)
	_, _, err = l.hook(other, c.Copy(), "c", "dp_h2_")
	require.NoError(t, err)
}

// A hook that is a program of the instrumented collection uses the maps of that one.
func TestHookOfTheCollectionItself(t *testing.T) {
	c := &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"counts": array("counts")},
		Programs: map[string]*ebpf.ProgramSpec{"entry": using("counts"), "hook": using("counts")},
	}
	out := c.Copy()
	_, names, err := newLinker(out, c).hook(out.Programs["entry"], c, "hook", "dp_h0_")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"counts": "counts"}, names)
	assert.Len(t, out.Maps, 1)
}

// What the kernel calls maps stays, as far as it is free, and is never the same for two.
func TestKernelNamesOfMaps(t *testing.T) {
	c := &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			"counts": array("counts"), "free": array("free"), "long": array("a_very_long_name_b"), "nameless": array(""), ".bss": array(".bss"),
		},
		Programs: map[string]*ebpf.ProgramSpec{"hook": using("counts", "free", "long", "nameless", ".bss")},
	}
	l, entry := target(map[string]*ebpf.MapSpec{"counts": array("counts"), "long": array("a_very_long_name_a"), ".bss": array(".bss")})
	for _, prefix := range []string{"dp_h0_", "dp_h1_"} {
		_, _, err := l.hook(entry, c.Copy(), "hook", prefix)
		require.NoError(t, err)
	}
	name := func(key string) string { return l.out.Maps[key].Name }
	assert.Equal(t, "counts", name("counts"))
	assert.Equal(t, "counts_2", name("dp_h0_counts"))
	assert.Equal(t, "counts_3", name("dp_h1_counts"))
	assert.Equal(t, "free", name("dp_h0_free"))
	assert.Equal(t, "a_very_long_n_2", name("dp_h0_long"))
	assert.Equal(t, "a_very_long_n_3", name("dp_h1_long"))
	assert.Empty(t, name("dp_h0_nameless"))
	assert.Equal(t, ".bss", name(".bss.dp_h0"))
	assert.Equal(t, ".bss", name(".bss.dp_h1"))
}

func TestPinnedMaps(t *testing.T) {
	pinned := func(change func(m *ebpf.MapSpec)) *ebpf.CollectionSpec {
		m := array("shared")
		m.Pinning = ebpf.PinByName
		if change != nil {
			change(m)
		}
		return &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"mine": m}, Programs: map[string]*ebpf.ProgramSpec{"hook": using("mine")}}
	}
	l, entry := target(map[string]*ebpf.MapSpec{"mine": array("another")})
	_, names, err := l.hook(entry, pinned(nil), "hook", "dp_h0_")
	require.NoError(t, err)
	assert.Equal(t, "dp_h0_mine", names["mine"], "another map has the key")
	assert.Equal(t, "shared", l.out.Maps["dp_h0_mine"].Name, "its name is where it is pinned")

	contents := []ebpf.MapKV{{Key: uint32(0), Value: []byte{1, 0, 0, 0, 0, 0, 0, 0}}}
	_, names, err = l.hook(entry, pinned(func(m *ebpf.MapSpec) { m.Contents = contents }), "hook", "dp_h1_")
	require.NoError(t, err)
	assert.Equal(t, "dp_h0_mine", names["mine"], "they are one map")
	assert.Equal(t, contents, l.out.Maps["dp_h0_mine"].Contents)

	for difference, change := range map[string]func(m *ebpf.MapSpec){
		"type":              func(m *ebpf.MapSpec) { m.Type = ebpf.Hash },
		"size of keys":      func(m *ebpf.MapSpec) { m.KeySize = 8 },
		"size of values":    func(m *ebpf.MapSpec) { m.ValueSize = 4 },
		"number of entries": func(m *ebpf.MapSpec) { m.MaxEntries = 2 },
		"set of flags":      func(m *ebpf.MapSpec) { m.Flags = 1 },
		"map_extra":         func(m *ebpf.MapSpec) { m.MapExtra = 1 },
		"contents":          func(m *ebpf.MapSpec) { m.Contents = contents },
		"inner map":         func(m *ebpf.MapSpec) { m.InnerMap = array("inner") },
	} {
		_, _, err := l.hook(entry, pinned(change), "hook", "dp_h2_")
		require.ErrorContains(t, err, `its map "shared" is pinned under the same name as another one, but the `+difference+" differs")
	}
}

// kconfigured is a program that reads a variable of the kernel's configuration, as the ELF loader leaves it.
func kconfigured() *ebpf.CollectionSpec {
	p := using()
	p.Instructions = append(asm.Instructions{asm.LoadMapValue(asm.R1, 0, 0)}, p.Instructions...)
	return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"hook": p}}
}

func TestKconfigHasOneSource(t *testing.T) {
	l, entry := target(nil)
	c := kconfigured()
	for range 2 {
		_, _, err := l.hook(entry, c, "hook", "dp_h0_")
		require.NoError(t, err)
	}
	_, _, err := l.hook(entry, kconfigured(), "hook", "dp_h1_")
	require.ErrorContains(t, err, "reads the kernel's configuration")
	_, _, err = l.hook(using(), kconfigured(), "hook", "dp_h1_")
	require.NoError(t, err, "at another entrypoint")

	l, _ = target(nil)
	entry = kconfigured().Programs["hook"]
	_, err = l.original(entry)
	require.NoError(t, err)
	_, _, err = l.hook(entry, kconfigured(), "hook", "dp_h0_")
	require.ErrorContains(t, err, "reads the kernel's configuration")
}

func TestHookRefuses(t *testing.T) {
	calling := func(member *ebpf.ProgramSpec) *ebpf.CollectionSpec {
		c := &ebpf.CollectionSpec{
			Maps:     map[string]*ebpf.MapSpec{"tails": tails("tails")},
			Programs: map[string]*ebpf.ProgramSpec{"hook": using("tails")},
		}
		c.Programs["hook"].Flags = flagFrags
		if member != nil {
			c.Programs["tail"] = member
		}
		return c
	}
	with := func(change func(p *ebpf.ProgramSpec)) *ebpf.ProgramSpec {
		p := using()
		change(p)
		return p
	}
	only := func(p *ebpf.ProgramSpec) *ebpf.CollectionSpec {
		return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"hook": p}}
	}
	throw := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall}.WithReference("bpf_throw")
	call := func(ins asm.Instruction) func(p *ebpf.ProgramSpec) {
		return func(p *ebpf.ProgramSpec) { p.Instructions = append(asm.Instructions{ins}, p.Instructions...) }
	}
	frags := func(p *ebpf.ProgramSpec) { p.Flags = flagFrags }
	proprietary := func(p *ebpf.ProgramSpec) { p.License = "Proprietary" }
	plain := func(*ebpf.ProgramSpec) {}
	for _, c := range []struct {
		reason string
		entry  func(p *ebpf.ProgramSpec)
		hook   *ebpf.CollectionSpec
	}{
		{`its collection has no program "hook"`, plain, &ebpf.CollectionSpec{}},
		{`uses the map "gone", which its collection does not have`, plain, only(using("gone"))},
		{"handles no packets in several fragments", frags, only(using())},
		{"is BigEndian, but the entrypoint is LittleEndian", func(p *ebpf.ProgramSpec) { p.ByteOrder = binary.LittleEndian },
			only(with(func(p *ebpf.ProgramSpec) { p.ByteOrder = binary.BigEndian }))},
		{"calls bpf_fib_lookup, which only GPL-compatible programs may, and the entrypoint's licence is \"Proprietary\"", proprietary, only(with(call(asm.FnFibLookup.Call())))},
		{"calls bpf_throw", plain, only(with(call(throw)))},
		{`tail-calls the program "tail", which its collection does not have`, plain, calling(nil)},
		{`tail-calls the program "tail", which is SchedCLS, but the entrypoint is XDP`, plain, calling(with(func(p *ebpf.ProgramSpec) { p.Type = ebpf.SchedCLS }))},
		{`tail-calls the program "tail", which handles no packets in several fragments`, frags, calling(using())},
		{`tail-calls the program "tail", which calls bpf_fib_lookup without`, plain, calling(with(func(p *ebpf.ProgramSpec) { call(asm.FnFibLookup.Call())(p); p.License = "MIT" }))},
		{`has a PROG_ARRAY "tails", and the entrypoint is bound to an interface`, func(p *ebpf.ProgramSpec) { p.Ifindex = 7 }, calling(using())},
		{`tail-calls the program "tail", which calls "nothing"`, plain, calling(with(call(asm.Call.Label("nothing"))))},
	} {
		l, entry := target(nil)
		c.entry(entry)
		_, _, err := l.hook(entry, c.hook, "hook", "dp_h0_")
		require.ErrorContains(t, err, c.reason)
		var r *refusal
		require.ErrorAs(t, err, &r)
		assert.NotEmpty(t, r.fix)
	}

	l, _ := target(nil)
	_, err := l.original(with(call(throw)))
	require.ErrorContains(t, err, "calls bpf_throw")
}

// Members of a PROG_ARRAY are loaded as the entrypoint is, wherever they come from.
func TestMembersFollowTheEntrypoint(t *testing.T) {
	for _, flags := range []uint32{0, flagFrags} {
		tail := using()
		tail.Type, tail.Flags, tail.AttachTo = ebpf.XDP, flagFrags, "something"
		hook := using("tails")
		hook.Flags = flagFrags
		l, entry := target(nil)
		entry.Flags = flags
		_, _, err := l.hook(entry, &ebpf.CollectionSpec{
			Maps:     map[string]*ebpf.MapSpec{"tails": tails("tails")},
			Programs: map[string]*ebpf.ProgramSpec{"hook": hook, "tail": tail},
		}, "hook", "dp_h0_")
		require.NoError(t, err)
		assert.Equal(t, flags, l.out.Programs["dp_h0_tail"].Flags)
		assert.Empty(t, l.out.Programs["dp_h0_tail"].AttachTo)
	}
}

// A PROG_ARRAY belongs to programs of one type and attach type.
func TestProgramArrayServesOneKind(t *testing.T) {
	c := &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"tails": {Name: "tails", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 2}},
		Programs: map[string]*ebpf.ProgramSpec{"hook": using("tails")},
	}
	l, entry := target(nil)
	_, _, err := l.hook(entry, c, "hook", "dp_h0_")
	require.NoError(t, err)
	same := using()
	_, _, err = l.hook(same, c, "hook", "dp_h1_")
	require.NoError(t, err)
	other := using()
	other.AttachType = ebpf.AttachXDPDevMap
	_, _, err = l.hook(other, c, "hook", "dp_h2_")
	require.ErrorContains(t, err, `its PROG_ARRAY "tails" would be shared by programs of different types`)
	_, _, err = l.hook(other, c.Copy(), "hook", "dp_h2_")
	require.NoError(t, err)
}

// Loads of maps that exist already, and of what the loader resolves, stay as they are.
func TestHookLeavesOtherReferences(t *testing.T) {
	p := using()
	symbol := asm.LoadImm(asm.R1, 0, asm.DWord).WithReference("jiffies")
	number := asm.LoadMapPtr(asm.R2, 17)
	p.Instructions = append(asm.Instructions{symbol, number}, p.Instructions...)
	l, entry := target(nil)
	f, names, err := l.hook(entry, &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"hook": p}}, "hook", "dp_h0_")
	require.NoError(t, err)
	assert.Empty(t, names)
	body, err := f.pasted(0)
	require.NoError(t, err)
	assert.Equal(t, symbol, body[0])
	assert.Equal(t, number, body[1])
}

func TestCheckProgram(t *testing.T) {
	function := func(name string, frame int16, calls ...string) asm.Instructions {
		code := asm.Instructions{asm.StoreImm(asm.RFP, -frame, 0, asm.Byte).WithSymbol(name)}
		for _, callee := range calls {
			if callee == "tail" {
				code = append(code, asm.FnTailCall.Call())
			} else {
				code = append(code, asm.Call.Label(callee))
			}
		}
		return append(code, asm.Mov.Imm(asm.R0, 0), asm.Return())
	}
	join := func(functions ...asm.Instructions) asm.Instructions {
		var all asm.Instructions
		for _, f := range functions {
			all = append(all, f...)
		}
		return all
	}
	many := function("main", 8)
	for range 256 {
		name := "f" + string(rune('a'+len(many)))
		many = append(asm.Instructions{asm.Call.Label(name)}, append(many, function(name, 8)...)...)
	}
	deep := function("a", 8)
	for name := 'b'; name <= 'i'; name++ {
		deep = join(function(string(name), 8, string(name-1)), deep)
	}
	for _, c := range []struct {
		want  string
		small bool
		code  asm.Instructions
	}{
		{"", false, join(function("main", 224, "sub"), function("sub", 224, "tail"))},
		{"has 256 bytes of stack or more above", false, join(function("main", 232, "sub"), function("sub", 8, "tail"))},
		{"", true, join(function("main", 240, "sub"), function("sub", 8, "tail"))},
		{"has 256 bytes of stack or more above", true, join(function("main", 248, "sub"), function("sub", 8, "tail"))},
		{"", true, function("main", 256, "tail")},
		{"uses 544 bytes of stack, of which there are 512", false, join(function("main", 8, "sub"), function("sub", 488))},
		{"", true, join(function("main", 16, "sub"), function("sub", 488))},
		{"has 9 functions active at once, of which the kernel takes 8", true, deep},
		{"has 257 functions, of which the kernel takes 256", true, many},
		{`jumps over 40000 instructions in the function ""`, true, longJump()},
	} {
		f, err := inspect(&ebpf.ProgramSpec{Instructions: c.code})
		require.NoError(t, err)
		err = checkProgram(&ebpf.ProgramSpec{Instructions: c.code}, f.frame, c.small)
		if c.want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, c.want)
		}
	}
}
