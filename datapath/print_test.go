package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
)

// A plan calls each type, and each of its verdicts, as the kernel's headers do.
func TestNamesOfVerdicts(t *testing.T) {
	for _, tc := range []struct {
		program ebpf.ProgramType
		attach  ebpf.AttachType
		name    string
		rule    string // what the verdicts -1 to 3 and 7 are called
	}{
		{ebpf.XDP, 0, "XDP", "PROCEED(-1) or XDP_ABORTED(0) or XDP_DROP(1) or XDP_PASS(2) or XDP_TX(3) or 7"},
		{ebpf.SchedCLS, 0, "TC", "TC_ACT_UNSPEC(-1) or TC_ACT_OK(0) or TC_ACT_RECLASSIFY(1) or TC_ACT_SHOT(2) or TC_ACT_PIPE(3) or TC_ACT_REDIRECT(7)"},
		{ebpf.SchedACT, 0, "TC", "TC_ACT_UNSPEC(-1) or TC_ACT_OK(0) or TC_ACT_RECLASSIFY(1) or TC_ACT_SHOT(2) or TC_ACT_PIPE(3) or TC_ACT_REDIRECT(7)"},
		{ebpf.SchedCLS, ebpf.AttachTCXEgress, "TCX", "NEXT(-1) or PASS(0) or 1 or DROP(2) or 3 or REDIRECT(7)"},
		{ebpf.SchedCLS, ebpf.AttachNetkitPeer, "netkit", "NEXT(-1) or PASS(0) or 1 or DROP(2) or 3 or REDIRECT(7)"},
		{ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress, "cgroup_skb", "PROCEED(-1) or DENY(0) or ALLOW(1) or 2 or 3 or 7"},
		{ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress, "cgroup_skb", "PROCEED(-1) or DENY(0) or ALLOW(1) or DENY_CN(2) or ALLOW_CN(3) or 7"},
		{ebpf.CGroupSockAddr, ebpf.AttachCGroupInet6Bind, "cgroup sock_addr", "PROCEED(-1) or DENY(0) or ALLOW(1) or DENY(2) or ALLOW_ANY_PORT(3) or 7"},
		{ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, "cgroup sock_addr", "PROCEED(-1) or DENY(0) or ALLOW(1) or 2 or 3 or 7"},
		{ebpf.CGroupSock, ebpf.AttachCGroupInetSockCreate, "cgroup sock", "PROCEED(-1) or DENY(0) or ALLOW(1) or 2 or 3 or 7"},
		{ebpf.SockOps, ebpf.AttachCGroupSockOps, "sock_ops", "PROCEED(-1) or NO_REPLY(0) or REPLY(1) or 2 or 3 or 7"},
		{ebpf.SkLookup, ebpf.AttachSkLookup, "sk_lookup", "PROCEED(-1) or SK_DROP(0) or SK_PASS(1) or 2 or 3 or 7"},
	} {
		h := hook(datapath.Pre, "a", program(tc.program, tc.attach, 1))
		h.Proceed = []int32{-1, 0, 1, 2, 3, 7}
		plan, err := datapath.NewPlan(program(tc.program, tc.attach, 1), []datapath.Hook{h}, datapath.Options{})
		require.NoError(t, err)
		assert.Contains(t, plan.String(), "entry ("+tc.name+")\n")
		assert.Contains(t, plan.String(), "  "+tc.rule+" goes on")
	}
}

// Where main saves registers around code that needs them all, the plan says what that takes.
func TestPlanShowsItsStack(t *testing.T) {
	var greedy []asm.Instruction
	for r := asm.R6; r <= asm.R9; r++ {
		greedy = append(greedy, asm.Mov.Imm(r, 0))
	}
	stack := func(before ...asm.Instruction) string {
		plan, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{hook(datapath.Post, "a", program(ebpf.XDP, 0, -1, before...))}, datapath.Options{})
		require.NoError(t, err)
		return plan.String()
	}
	assert.NotContains(t, stack(), "stack:")
	assert.Contains(t, stack(using(24)), "  stack: 24 bytes\n")
	assert.Contains(t, stack(append(greedy, using(24))...), "  stack: 40 bytes, 16 of them to save registers around pasted code\n")
}
