package datapath

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/cnikit/cnikit/datapath/datapathtest"
)

// host is a program type with what a program around a hook must know of it.
type host struct {
	random  datapathtest.RandomOptions
	context string
}

func hosts() []host {
	return []host{
		{datapathtest.RandomOptions{Type: ebpf.XDP, Verdicts: []int32{-1, 1, 2, 3}, Writes: true}, "xdp_md"},
		{datapathtest.RandomOptions{Type: ebpf.SchedCLS, Verdicts: []int32{-1, 0, 2, 7}, Writes: true}, "__sk_buff"},
	}
}

func (h host) proto() *btf.FuncProto {
	return &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: &btf.Struct{Name: h.context}}}},
	}
}
