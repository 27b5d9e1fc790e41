package datapath

import (
	"fmt"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// programType is what the builder knows about the programs of one type and attach type.
type programType struct {
	name    string // as documents call it
	context string // the kernel's name of the struct that the context points to

	proceed int32 // the default of Hook.Proceed
	deny    int32 // what an empty slot returns when it fails closed; the same as proceed where the type cannot deny
	clamp   *clamp
	names   map[int32]string // of verdicts

	// changer is a helper that changes packet data, or for types without packets one that counts as such. A
	// slot that contains it can be replaced by a program that changes packets or makes tail calls
	// (kernel/bpf/verifier.c, bpf_check_attach_target, from 6.12 on).
	changer asm.BuiltinFunc

	// exact types allow a hook for one attach type at no other, because the context's fields depend on it.
	exact bool

	// interruptible programs can be preempted by others of the same processor, so counters are added to
	// atomically.
	interruptible bool
}

// clamp is the range of verdicts that the verifier accepts (check_return_code); what lies outside becomes
// otherwise.
type clamp struct{ low, high, otherwise int32 }

func (c *clamp) String() string {
	if c.low == c.high {
		return fmt.Sprintf("always %d", c.low)
	}
	return fmt.Sprintf("%d..%d, anything else becomes %d", c.low, c.high, c.otherwise)
}

// apply returns the verdict that comes out.
func (c *clamp) apply(verdict int32) int32 {
	if c != nil && (verdict < c.low || verdict > c.high) {
		return c.otherwise
	}
	return verdict
}

// verdict renders a verdict with its name, if it has one.
func (t *programType) verdict(v int32) string {
	if name, ok := t.names[v]; ok {
		return fmt.Sprintf("%s(%d)", name, v)
	}
	return strconv.Itoa(int(v))
}

// typeOf returns what is known about programs of a type, and false when there are no dispatchers for them.
func typeOf(p *ebpf.ProgramSpec) (programType, bool) {
	switch p.Type {
	case ebpf.XDP:
		return xdpType(), true
	case ebpf.SchedCLS, ebpf.SchedACT:
		return tcType(p), true
	case ebpf.CGroupSKB:
		return cgroupSKBType(p.AttachType), true
	case ebpf.CGroupSockAddr:
		return sockAddrType(p.AttachType)
	case ebpf.CGroupSock:
		return cgroupType("cgroup sock", "bpf_sock", true), true
	case ebpf.SockOps:
		t := cgroupType("sock_ops", "bpf_sock_ops", false)
		t.names = map[int32]string{-1: "PROCEED", 0: "NO_REPLY", 1: "REPLY"}
		return t, true
	case ebpf.SkLookup:
		t := cgroupType("sk_lookup", "bpf_sk_lookup", false)
		t.names = map[int32]string{-1: "PROCEED", 0: "SK_DROP", 1: "SK_PASS"}
		return t, true
	default:
		return programType{}, false
	}
}

func xdpType() programType {
	return programType{
		name: "XDP", context: "xdp_md", proceed: -1, deny: 1, changer: asm.FnXdpAdjustHead,
		names: map[int32]string{-1: "PROCEED", 0: "XDP_ABORTED", 1: "XDP_DROP", 2: "XDP_PASS", 3: "XDP_TX", 4: "XDP_REDIRECT"},
	}
}

func tcType(p *ebpf.ProgramSpec) programType {
	t := programType{
		name: "TC", context: "__sk_buff", proceed: -1, deny: 2, changer: asm.FnSkbPullData,
		names: map[int32]string{
			-1: "TC_ACT_UNSPEC", 0: "TC_ACT_OK", 1: "TC_ACT_RECLASSIFY", 2: "TC_ACT_SHOT", 3: "TC_ACT_PIPE",
			4: "TC_ACT_STOLEN", 5: "TC_ACT_QUEUED", 6: "TC_ACT_REPEAT", 7: "TC_ACT_REDIRECT", 8: "TC_ACT_TRAP",
		},
	}
	switch p.AttachType {
	case ebpf.AttachTCXIngress, ebpf.AttachTCXEgress:
		t.name = "TCX"
	case ebpf.AttachNetkitPrimary, ebpf.AttachNetkitPeer:
		t.name = "netkit"
	default:
		return t
	}
	t.names = map[int32]string{-1: "NEXT", 0: "PASS", 2: "DROP", 7: "REDIRECT"}
	return t
}

// cgroupType is the common of programs that answer yes or no.
func cgroupType(name, context string, exact bool) programType {
	return programType{
		name: name, context: context, proceed: 1, deny: 0, clamp: &clamp{0, 1, 0}, changer: asm.FnSkbPullData,
		names: map[int32]string{-1: "PROCEED", 0: "DENY", 1: "ALLOW"}, exact: exact, interruptible: true,
	}
}

func cgroupSKBType(attach ebpf.AttachType) programType {
	t := cgroupType("cgroup_skb", "__sk_buff", false)
	if attach == ebpf.AttachCGroupInetEgress { // BPF_PROG_CGROUP_INET_EGRESS_RUN_ARRAY: the second bit signals congestion
		t.clamp.high = 3
		t.names[2], t.names[3] = "DENY_CN", "ALLOW_CN"
	}
	return t
}

func sockAddrType(attach ebpf.AttachType) (programType, bool) {
	t := cgroupType("cgroup sock_addr", "bpf_sock_addr", true)
	switch attach {
	case ebpf.AttachCGroupInet4Bind, ebpf.AttachCGroupInet6Bind: // the second bit waives CAP_NET_BIND_SERVICE
		t.clamp.high = 3
		t.names[2], t.names[3] = "DENY", "ALLOW_ANY_PORT"
	case ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect, ebpf.AttachCgroupUnixConnect,
		ebpf.AttachCGroupUDP4Sendmsg, ebpf.AttachCGroupUDP6Sendmsg, ebpf.AttachCgroupUnixSendmsg:
	case ebpf.AttachCGroupUDP4Recvmsg, ebpf.AttachCGroupUDP6Recvmsg, ebpf.AttachCgroupUnixRecvmsg,
		ebpf.AttachCgroupInet4GetPeername, ebpf.AttachCgroupInet6GetPeername, ebpf.AttachCgroupUnixGetpeername,
		ebpf.AttachCgroupInet4GetSockname, ebpf.AttachCgroupInet6GetSockname, ebpf.AttachCgroupUnixGetsockname:
		t.deny, t.clamp = 1, &clamp{1, 1, 1}
	default:
		return programType{}, false
	}
	return t, true
}
