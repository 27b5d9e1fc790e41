package datapath_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
)

var update = flag.Bool("update", false, "write golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./datapath -update writes %s anew", file)
}

// program returns a collection with one program, "entry", that returns a verdict after other instructions.
func program(typ ebpf.ProgramType, attach ebpf.AttachType, verdict int32, before ...asm.Instruction) *ebpf.CollectionSpec {
	return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"entry": {
		Name: "entry", Type: typ, AttachType: attach, License: "MIT",
		Instructions: append(asm.Instructions(before), asm.Mov.Imm(asm.R0, verdict), asm.Return()),
	}}}
}

// using returns instructions that use bytes of stack.
func using(bytes int16) asm.Instruction { return asm.StoreImm(asm.RFP, -bytes, 0, asm.Word) }

// tailCall returns a program that tail-calls through a map.
func tailCall(typ ebpf.ProgramType, attach ebpf.AttachType, verdict int32) *ebpf.CollectionSpec {
	spec := program(typ, attach, verdict, asm.LoadMapPtr(asm.R2, 0).WithReference("progs"), asm.Mov.Imm(asm.R3, 0), asm.FnTailCall.Call())
	spec.Maps = map[string]*ebpf.MapSpec{"progs": {Name: "progs", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1}}
	return spec
}

func long(n int) []asm.Instruction {
	var insns []asm.Instruction
	for range n {
		insns = append(insns, asm.Mov.Imm(asm.R1, 0))
	}
	return insns
}

func hook(kind datapath.Kind, name string, code *ebpf.CollectionSpec) datapath.Hook {
	return datapath.Hook{Owner: "acme", Name: name, Entrypoint: "entry", Kind: kind, Collection: code, Program: "entry"}
}

func TestPlanPrintsItself(t *testing.T) {
	const xdp, cgroup = ebpf.XDP, ebpf.CGroupSockAddr
	pre, post, observer := datapath.Pre, datapath.Post, datapath.Observer
	proceed := func(attach ebpf.AttachType) *ebpf.CollectionSpec { return program(xdp, attach, -1) }
	for _, tc := range []struct {
		name    string
		spec    *ebpf.CollectionSpec
		hooks   []datapath.Hook
		options datapath.Options
	}{
		{name: "none", spec: proceed(0)},
		{
			name: "pre-only", spec: tailCall(xdp, 0, 2),
			hooks: []datapath.Hook{hook(pre, "a", proceed(0)), hook(pre, "b", program(xdp, 0, -1, long(600)...))},
		},
		{
			name: "every-composition", spec: tailCall(xdp, 0, 2),
			hooks: []datapath.Hook{
				hook(pre, "small", proceed(0)),
				hook(pre, "tail", tailCall(xdp, 0, -1)),
				hook(pre, "slot", nil),
				hook(post, "stack", program(xdp, 0, -1, using(480))),
				{Owner: "acme", Name: "mask", Entrypoint: "entry", Kind: post, Collection: proceed(0), Program: "entry", Proceed: []int32{2, 3}, AfterTermination: true, Composition: datapath.Called},
				{Owner: "zeta", Name: "watch", Entrypoint: "entry", Kind: observer, After: []string{"gone", "acme/slot"}},
			},
			options: datapath.Options{Counters: true, Features: datapath.Features{Freplace: true}},
		},
		{
			name: "bind", spec: program(cgroup, ebpf.AttachCGroupInet4Bind, 1),
			hooks:   []datapath.Hook{hook(pre, "a", program(cgroup, ebpf.AttachCGroupInet4Bind, 1)), hook(pre, "slot", nil), hook(observer, "watch", program(ebpf.Extension, 0, 0))},
			options: datapath.Options{SlotsFailOpen: true, Features: datapath.Features{Freplace: true}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, err := datapath.NewPlan(tc.spec, tc.hooks, tc.options)
			require.NoError(t, err)
			golden(t, "plan-"+tc.name+".txt", plan.String())
		})
	}
}

func TestIgnored(t *testing.T) {
	h := hook(datapath.Post, "a", program(ebpf.XDP, 0, -1))
	h.Before, h.After = []string{"acme", "gone/x"}, []string{"other"}
	plan, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{hook(datapath.Post, "b", program(ebpf.XDP, 0, -1)), h}, datapath.Options{})
	require.NoError(t, err)
	of := datapath.Constraint{Entrypoint: "entry", Kind: datapath.Post, Owner: "acme", Hook: "a"}
	before, after := of, of
	before.Target = "gone/x"
	after.Target, after.After = "other", true
	assert.Equal(t, []datapath.Constraint{after, before}, plan.Ignored())
	plan.Ignored()[0].Target = "changed"
	assert.Equal(t, "other", plan.Ignored()[0].Target, "each call returns a copy")
}
