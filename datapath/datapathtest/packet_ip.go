package datapathtest

import (
	"encoding/binary"
	"net/netip"
)

const (
	protocolICMP   = 1
	protocolTCP    = 6
	protocolUDP    = 17
	protocolICMPv6 = 58
)

// IPv4 is a header without options (RFC 791).
type IPv4 struct {
	Src, Dst netip.Addr
	TTL      uint8 // zero: 64
	Protocol uint8 // zero: from the layer inside
}

func (ip IPv4) wrap(_, inner Layer, content []byte) []byte {
	header := make([]byte, 20, 20+len(content))
	header[0] = 4<<4 | 5 // version, and length in words
	binary.BigEndian.PutUint16(header[2:], uint16(20+len(content)))
	header[6] = 1 << 6 // do not fragment
	header[8], header[9] = hops(ip.TTL), protocol(ip.Protocol, inner, protocolICMP)
	copy(header[12:], ip.Src.AsSlice())
	copy(header[16:], ip.Dst.AsSlice())
	binary.BigEndian.PutUint16(header[10:], checksum(0, header))
	return append(header, content...)
}

// IPv6 is a header without extensions (RFC 8200).
type IPv6 struct {
	Src, Dst   netip.Addr
	HopLimit   uint8 // zero: 64
	NextHeader uint8 // zero: from the layer inside
}

func (ip IPv6) wrap(_, inner Layer, content []byte) []byte {
	header := make([]byte, 40, 40+len(content))
	header[0] = 6 << 4
	binary.BigEndian.PutUint16(header[4:], uint16(len(content)))
	header[6], header[7] = protocol(ip.NextHeader, inner, protocolICMPv6), hops(ip.HopLimit)
	copy(header[8:], ip.Src.AsSlice())
	copy(header[24:], ip.Dst.AsSlice())
	return append(header, content...)
}

func hops(given uint8) uint8 {
	if given == 0 {
		return 64
	}
	return given
}

// protocol is the number that stands for a layer inside IP, or the given one.
func protocol(given uint8, inner Layer, icmp uint8) uint8 {
	if given != 0 {
		return given
	}
	switch inner.(type) {
	case TCP:
		return protocolTCP
	case UDP:
		return protocolUDP
	case ICMP:
		return icmp
	default:
		return 253 // for experiments (RFC 3692)
	}
}

// pseudoHeader is the sum over what a transport's checksum covers of the layer around it (RFC 9293, 3.1, and RFC 8200, 8.1).
func pseudoHeader(around Layer, protocol uint8, length int) uint32 {
	var addresses []byte
	switch ip := around.(type) {
	case IPv4:
		addresses = append(ip.Src.AsSlice(), ip.Dst.AsSlice()...)
	case IPv6:
		addresses = append(ip.Src.AsSlice(), ip.Dst.AsSlice()...)
	default:
		return 0
	}
	return sum(uint32(protocol)+uint32(length), addresses)
}

// checksum is the Internet checksum (RFC 1071) of data, added to what start holds.
func checksum(start uint32, data []byte) uint16 {
	total := sum(start, data)
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return ^uint16(total)
}

func sum(start uint32, data []byte) uint32 {
	for len(data) > 1 {
		start += uint32(binary.BigEndian.Uint16(data))
		data = data[2:]
	}
	if len(data) == 1 {
		start += uint32(data[0]) << 8
	}
	return start
}
