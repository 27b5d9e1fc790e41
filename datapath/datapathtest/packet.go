package datapathtest

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// Layer is a part of a packet: [Ethernet], [VLAN], [ARP], [IPv4], [IPv6], [ICMP], [TCP], [UDP] or [Payload].
type Layer interface {
	// wrap puts the layer around what it carries; around is the layer that it will be put into, and inner the first one inside.
	wrap(around, inner Layer, content []byte) []byte
}

// Packet puts layers into one another, the outermost first, and fills in lengths, checksums and the numbers by which a layer says what it carries.
func Packet(layers ...Layer) []byte {
	var packet []byte
	var inner Layer
	for i, layer := range slices.Backward(layers) {
		var around Layer
		if i > 0 {
			around = layers[i-1]
		}
		packet = layer.wrap(around, inner, packet)
		inner = layer
	}
	return packet
}

// Payload is what the innermost layer carries.
type Payload string

func (p Payload) wrap(_, _ Layer, content []byte) []byte { return append([]byte(p), content...) }

// Ethernet is the header of a frame. Addresses that are not given are locally administered ones.
type Ethernet struct {
	Src, Dst net.HardwareAddr
	Type     uint16 // zero: from the layer inside
}

func (e Ethernet) wrap(_, inner Layer, content []byte) []byte {
	frame := make([]byte, 0, 14+len(content))
	frame = append(frame, orDefault(e.Dst, 2)...)
	frame = append(frame, orDefault(e.Src, 1)...)
	frame = binary.BigEndian.AppendUint16(frame, etherType(e.Type, inner))
	return append(frame, content...)
}

func orDefault(address net.HardwareAddr, last byte) net.HardwareAddr {
	if address == nil {
		return net.HardwareAddr{2, 0, 0, 0, 0, last}
	}
	return address
}

// VLAN is an 802.1Q tag inside [Ethernet].
type VLAN struct {
	ID   uint16 // 12 bits
	Type uint16 // zero: from the layer inside
}

func (v VLAN) wrap(_, inner Layer, content []byte) []byte {
	tag := binary.BigEndian.AppendUint16(nil, v.ID)
	return append(binary.BigEndian.AppendUint16(tag, etherType(v.Type, inner)), content...)
}

// etherType is the number that stands for a layer (RFC 9542, appendix B), or the given one.
func etherType(given uint16, inner Layer) uint16 {
	if given != 0 {
		return given
	}
	switch inner.(type) {
	case ARP:
		return 0x0806
	case VLAN:
		return 0x8100
	case IPv6:
		return 0x86dd
	case IPv4:
		return 0x0800
	default:
		return 0x88b5 // for local experiments
	}
}

// ARP is a request, or a reply, for an IPv4 address (RFC 826).
type ARP struct {
	Reply                bool
	SenderMAC, TargetMAC net.HardwareAddr // not given: as in [Ethernet], and none for who is asked for
	Sender, Target       netip.Addr
}

func (a ARP) wrap(_, _ Layer, content []byte) []byte {
	operation, target := byte(1), a.TargetMAC
	if a.Reply {
		operation, target = 2, orDefault(target, 2)
	}
	if target == nil {
		target = make(net.HardwareAddr, 6)
	}
	packet := []byte{0, 1, 8, 0, 6, 4, 0, operation}
	packet = append(packet, orDefault(a.SenderMAC, 1)...)
	packet = append(packet, a.Sender.AsSlice()...)
	packet = append(packet, target...)
	packet = append(packet, a.Target.AsSlice()...)
	return append(packet, content...)
}
