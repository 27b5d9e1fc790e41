package netif

import (
	"encoding/binary"
	"net"
	"net/netip"
)

const (
	etherTypeARP  = 0x0806
	etherTypeIPv6 = 0x86dd
)

// announcement is the Ethernet frame that tells the link that addr is at mac.
func announcement(mac net.HardwareAddr, addr netip.Addr) []byte {
	if addr.Is4() {
		return gratuitousARP(mac, addr)
	}
	return unsolicitedNA(mac, addr)
}

// gratuitousARP is the announcement of RFC 5227, section 3: a broadcast request for
// the sender's own address.
func gratuitousARP(mac net.HardwareAddr, addr netip.Addr) []byte {
	frame := ethernet(net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, etherTypeARP)
	frame = append(frame, 0, 1, 8, 0, 6, 4, 0, 1) // Ethernet, IPv4, their lengths, request
	frame = append(frame, mac...)
	frame = append(frame, addr.AsSlice()...)
	frame = append(frame, make([]byte, 6)...)
	return append(frame, addr.AsSlice()...)
}

// unsolicitedNA is the neighbour advertisement of RFC 4861, section 7.2.6, to all
// nodes, with the override flag and the target's link-layer address.
func unsolicitedNA(mac net.HardwareAddr, addr netip.Addr) []byte {
	const override, nextHeaderICMPv6, hopLimit = 0x20, 58, 255
	allNodes := netip.MustParseAddr("ff02::1")

	icmp := append([]byte{136, 0, 0, 0, override, 0, 0, 0}, addr.AsSlice()...)
	icmp = append(icmp, 2, 1) // option: target link-layer address, in units of 8 bytes
	icmp = append(icmp, mac...)

	pseudo := append(addr.AsSlice(), allNodes.AsSlice()...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(icmp)))
	pseudo = append(pseudo, 0, 0, 0, nextHeaderICMPv6)
	binary.BigEndian.PutUint16(icmp[2:], checksum(append(pseudo, icmp...)))

	frame := ethernet(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, mac, etherTypeIPv6)
	frame = append(frame, 0x60, 0, 0, 0)
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(icmp)))
	frame = append(frame, nextHeaderICMPv6, hopLimit)
	frame = append(frame, addr.AsSlice()...)
	frame = append(frame, allNodes.AsSlice()...)
	return append(frame, icmp...)
}

func ethernet(dst, src net.HardwareAddr, etherType uint16) []byte {
	frame := append(make([]byte, 0, 128), dst...)
	frame = append(frame, src...)
	return binary.BigEndian.AppendUint16(frame, etherType)
}

// checksum is the Internet checksum (RFC 1071) of data, which has an even length.
func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
