package cnitest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Ping is one ICMP echo request.
type Ping struct {
	To           netip.Addr
	Size         int           // bytes of the whole IP packet; default 84 (IPv4) or 104 (IPv6)
	DontFragment bool          // neither here nor on the way
	Timeout      time.Duration // default 3s: the kernel repeats a lost neighbour request after one
}

// Sizes in bytes of the headers of an echo request.
const (
	ipv4Header = 20
	ipv6Header = 40
	icmpHeader = 8
)

// Ping sends the request from inside the namespace, on a raw socket of its own, and
// returns the time until the matching reply. No reply in time is [ErrNoReply]; with
// DontFragment, a packet that is too large for the route is [ErrTooBig] as soon as this
// host or a router says so.
func (n *Namespace) Ping(ctx context.Context, p Ping) (time.Duration, error) {
	took, err := n.ping(ctx, p.withDefaults())
	if err != nil {
		return 0, fmt.Errorf("ping %s from %s: %w", p.To, n.name, err)
	}
	return took, nil
}

func (p Ping) withDefaults() Ping {
	p.To = p.To.Unmap()
	if p.Size == 0 {
		p.Size = p.header() + icmpHeader + 56
	}
	if p.Timeout == 0 {
		p.Timeout = 3 * time.Second
	}
	return p
}

func (p Ping) header() int {
	if p.To.Is4() {
		return ipv4Header
	}
	return ipv6Header
}

func (n *Namespace) ping(ctx context.Context, p Ping) (time.Duration, error) {
	if p.Size < p.header()+icmpHeader {
		return 0, fmt.Errorf("size %d: an echo request has at least %d bytes", p.Size, p.header()+icmpHeader)
	}
	var socket *os.File
	err := n.Do(func() (err error) {
		socket, err = icmpSocket(p.To, p.DontFragment)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer func() { _ = socket.Close() }()
	if err := socket.SetDeadline(time.Now().Add(p.Timeout)); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	took, err := exchange(socket, p)
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, fmt.Errorf("%w within %s", ErrNoReply, p.Timeout)
	case errors.Is(err, syscall.EMSGSIZE):
		return 0, fmt.Errorf("%d bytes: %w", p.Size, ErrTooBig)
	}
	return took, err
}

// exchange sends the request and reads until its reply.
func exchange(socket *os.File, p Ping) (time.Duration, error) {
	request := echoRequest(p)
	start := time.Now()
	if _, err := socket.Write(request); err != nil {
		return 0, err
	}
	buf := make([]byte, 1<<16)
	for {
		size, err := socket.Read(buf)
		if err != nil {
			return 0, err
		}
		if isReply(buf[:size], request, p.To.Is4()) {
			return time.Since(start), nil
		}
	}
}

// ICMP and ICMPv6 types (RFC 792, RFC 4443).
const (
	echo4, reply4 = 8, 0
	echo6, reply6 = 128, 129
)

// echoRequest is the ICMP message. A random identifier keeps the replies of probes that
// run in parallel apart.
func echoRequest(p Ping) []byte {
	b := make([]byte, p.Size-p.header())
	b[0] = echo6 // the kernel fills in the ICMPv6 checksum
	binary.BigEndian.PutUint32(b[4:], rand.Uint32())
	if p.To.Is4() {
		b[0] = echo4
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

// isReply reports whether a packet answers the request: the type, identifier, sequence
// number and length are right. IPv4 raw sockets deliver the IP header too.
func isReply(packet, request []byte, ipv4 bool) bool {
	want := byte(reply6)
	if ipv4 {
		want = reply4
		if len(packet) < ipv4Header {
			return false
		}
		packet = packet[min(int(packet[0]&0xf)*4, len(packet)):]
	}
	return len(packet) == len(request) && packet[0] == want &&
		binary.BigEndian.Uint32(packet[4:]) == binary.BigEndian.Uint32(request[4:])
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
