package datapathtest_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/cilium/ebpf"

	"github.com/cnikit/cnikit/datapath/datapathtest"
)

func ExamplePacket() {
	frame := datapathtest.Packet(
		datapathtest.Ethernet{},
		datapathtest.IPv4{Src: v4src, Dst: v4dst},
		datapathtest.UDP{Src: 1000, Dst: 53},
		datapathtest.Payload("question"),
	)
	fmt.Printf("% x\n% x\n% x\n%s\n", frame[:14], frame[14:34], frame[34:42], frame[42:])
	// Output:
	// 02 00 00 00 00 02 02 00 00 00 00 01 08 00
	// 45 00 00 24 00 00 40 00 40 11 b6 c5 c0 00 02 01 c0 00 02 02
	// 03 e8 00 35 00 10 bc ec
	// question
}

// The same seed makes the same program.
func ExampleRandom() {
	options := datapathtest.RandomOptions{Type: ebpf.XDP, Verdicts: []int32{1, 2}, Statements: 2}
	one := datapathtest.Random(rand.New(rand.NewPCG(1, 1)), options).Programs[datapathtest.RandomProgram]
	two := datapathtest.Random(rand.New(rand.NewPCG(1, 1)), options).Programs[datapathtest.RandomProgram]
	fmt.Println(one.Type, one.Instructions.String() == two.Instructions.String())
	// Output: XDP true
}
