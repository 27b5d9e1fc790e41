package datapathtest_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/datapath/datapathtest"
)

var (
	v4src, v4dst = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	v6src, v6dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
)

// Packets are compared with what other implementations write for the same fields.
func TestPackets(t *testing.T) {
	tests := []struct {
		name   string
		layers []datapathtest.Layer
		want   string // in hexadecimal
	}{
		{
			"arp request",
			[]datapathtest.Layer{datapathtest.Ethernet{}, datapathtest.ARP{Sender: v4src, Target: v4dst}},
			"020000000002 020000000001 0806 0001 0800 06 04 0001 020000000001 c0000201 000000000000 c0000202",
		},
		{
			"arp reply in a VLAN",
			[]datapathtest.Layer{datapathtest.Ethernet{}, datapathtest.VLAN{ID: 7}, datapathtest.ARP{Reply: true, Sender: v4src, Target: v4dst}},
			"020000000002 020000000001 8100 0007 0806 0001 0800 06 04 0002 020000000001 c0000201 020000000002 c0000202",
		},
		{
			"echo request",
			[]datapathtest.Layer{datapathtest.IPv4{Src: v4src, Dst: v4dst}, datapathtest.ICMP{Type: 8, ID: 1, Seq: 2}, datapathtest.Payload("abc")},
			"4500 001f 0000 4000 4001 b6da c0000201 c0000202 0800 339a 0001 0002 616263",
		},
		{
			"udp",
			[]datapathtest.Layer{datapathtest.Ethernet{}, datapathtest.IPv4{Src: v4src, Dst: v4dst}, datapathtest.UDP{Src: 1000, Dst: 53}, datapathtest.Payload("abc")},
			"020000000002 020000000001 0800 4500 001f 0000 4000 4011 b6ca c0000201 c0000202 03e8 0035 000b b354 616263",
		},
		{
			"tcp over IPv6",
			[]datapathtest.Layer{datapathtest.IPv6{Src: v6src, Dst: v6dst}, datapathtest.TCP{Src: 1000, Dst: 80, Seq: 1, Flags: datapathtest.SYN}},
			"60000000 0014 06 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
				"03e8 0050 00000001 00000000 50 02 ffff 5035 0000",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, strings.ReplaceAll(tt.want, " ", ""), hex.EncodeToString(datapathtest.Packet(tt.layers...)))
		})
	}
}

// A receiver that sums up all that a checksum covers, the checksum included, gets all ones.
func TestChecksumsAddUp(t *testing.T) {
	transports := map[byte]datapathtest.Layer{
		6: datapathtest.TCP{Src: 1, Dst: 2, Seq: 0x01020304, Ack: 5, Flags: datapathtest.PSH | datapathtest.ACK}, 17: datapathtest.UDP{Src: 1, Dst: 2},
		1: datapathtest.ICMP{Type: 8, ID: 3, Seq: 4}, 58: datapathtest.ICMP{Type: 128, ID: 3, Seq: 4},
	}
	for protocol, transport := range transports {
		for size := range 5 {
			payload := datapathtest.Payload(strings.Repeat("\xff", size))
			if protocol != 58 {
				packet := datapathtest.Packet(datapathtest.IPv4{Src: v4src, Dst: v4dst}, transport, payload)
				assert.Equal(t, protocol, packet[9])
				assert.Equal(t, uint16(0xffff), add(packet[:20]), "header of IPv4")
				pseudo := append(packet[12:20:20], 0, protocol, 0, byte(len(packet)-20))
				if protocol == 1 {
					pseudo = nil
				}
				assert.Equal(t, uint16(0xffff), add(append(pseudo, packet[20:]...)), "protocol %d over IPv4", protocol)
			}
			if protocol != 1 {
				packet := datapathtest.Packet(datapathtest.IPv6{Src: v6src, Dst: v6dst}, transport, payload)
				assert.Equal(t, protocol, packet[6])
				pseudo := append(packet[8:40:40], 0, 0, 0, byte(len(packet)-40), 0, 0, 0, protocol)
				assert.Equal(t, uint16(0xffff), add(append(pseudo, packet[40:]...)), "protocol %d over IPv6", protocol)
			}
		}
	}
}

// add is the sum of RFC 1071, written in another way than the kit's.
func add(data []byte) uint16 {
	var total uint64
	for i, b := range data {
		total += uint64(b) << (8 * (1 - i%2))
	}
	return uint16(total%0xffff + (0xffff * btoi(total%0xffff == 0)))
}

func btoi(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
