package datapathtest

import "encoding/binary"

// UDP is a datagram (RFC 768).
type UDP struct {
	Src, Dst uint16 // ports
}

func (u UDP) wrap(around, _ Layer, content []byte) []byte {
	datagram := make([]byte, 8, 8+len(content))
	binary.BigEndian.PutUint16(datagram[0:], u.Src)
	binary.BigEndian.PutUint16(datagram[2:], u.Dst)
	binary.BigEndian.PutUint16(datagram[4:], uint16(8+len(content)))
	datagram = append(datagram, content...)
	value := checksum(pseudoHeader(around, protocolUDP, len(datagram)), datagram)
	if value == 0 {
		value = 0xffff // zero means that there is none
	}
	binary.BigEndian.PutUint16(datagram[6:], value)
	return datagram
}

// The flags of [TCP].
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// TCP is a segment without options (RFC 9293).
type TCP struct {
	Src, Dst uint16 // ports
	Seq, Ack uint32
	Flags    uint8  // FIN, SYN, …
	Window   uint16 // zero: 65535 bytes
}

func (s TCP) wrap(around, _ Layer, content []byte) []byte {
	if s.Window == 0 {
		s.Window = 0xffff
	}
	segment := make([]byte, 20, 20+len(content))
	binary.BigEndian.PutUint16(segment[0:], s.Src)
	binary.BigEndian.PutUint16(segment[2:], s.Dst)
	binary.BigEndian.PutUint32(segment[4:], s.Seq)
	binary.BigEndian.PutUint32(segment[8:], s.Ack)
	segment[12], segment[13] = 5<<4, s.Flags // length of the header in words
	binary.BigEndian.PutUint16(segment[14:], s.Window)
	segment = append(segment, content...)
	binary.BigEndian.PutUint16(segment[16:], checksum(pseudoHeader(around, protocolTCP, len(segment)), segment))
	return segment
}

// ICMP is a message of ICMP (RFC 792) inside [IPv4] and of ICMPv6 (RFC 4443) inside [IPv6]. Type and code are the protocol's own.
type ICMP struct {
	Type, Code uint8
	ID, Seq    uint16 // of an echo; zero in other messages
}

func (m ICMP) wrap(around, _ Layer, content []byte) []byte {
	message := make([]byte, 8, 8+len(content))
	message[0], message[1] = m.Type, m.Code
	binary.BigEndian.PutUint16(message[4:], m.ID)
	binary.BigEndian.PutUint16(message[6:], m.Seq)
	message = append(message, content...)
	var start uint32
	if _, ok := around.(IPv6); ok {
		start = pseudoHeader(around, protocolICMPv6, len(message))
	}
	binary.BigEndian.PutUint16(message[2:], checksum(start, message))
	return message
}
