// Package datapathtest helps to test eBPF programs, alone or as hooks of a dispatcher: it builds packets, loads and runs programs on them, shows in which
// order programs ran, compiles C and makes random programs that the verifier accepts.
//
//	frame := datapathtest.Packet(
//		datapathtest.Ethernet{},
//		datapathtest.IPv4{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")},
//		datapathtest.UDP{Src: 1000, Dst: 53},
//		datapathtest.Payload("question"),
//	)
//	collection := datapathtest.Load(t, spec)
//	result := datapathtest.Run(t, collection.Programs["entry"], frame)
//
// What fails ends the test with what the verifier said. Nothing here attaches a program or needs an interface: programs run by the kernel's test run
// (BPF_PROG_TEST_RUN), which XDP, TC, cgroup_skb and sk_lookup programs have; those of sockets run in a cgroup only.
package datapathtest
