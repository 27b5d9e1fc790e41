package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
)

// attempts bounds how often a list that changes while it is read is read again.
const attempts = 10

// errChanged means that the rule set changed in the middle of a dump (NLM_F_DUMP_INTR).
var errChanged = errors.New("changed while it was read")

// conn is a nfnetlink socket in one namespace.
type conn struct {
	fd  int
	seq uint32
}

// message is one nftables message: the family of its nfgenmsg header and its
// attributes.
type message struct {
	family  byte
	payload []byte
	attrs   map[uint16][]byte
}

func (m message) text(kind uint16) string { return text(m.attrs[kind]) }

// dial opens the socket on a thread inside ns; it stays there.
func dial(ns *netns.NS) (*conn, error) {
	c := &conn{}
	err := ns.Do(func() (err error) {
		c.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		return err
	})
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		err = fmt.Errorf("kernel without nfnetlink: %w", errors.ErrUnsupported)
	}
	return c, err
}

func (c *conn) close() { _ = unix.Close(c.fd) }

// dump asks for a list; request may narrow it.
func (c *conn) dump(kind uint16, request *message) ([]message, error) {
	if request == nil {
		request = &message{family: unix.NFPROTO_UNSPEC}
	}
	for range attempts {
		got, err := c.dumpOnce(kind, request)
		if !errors.Is(err, errChanged) && !errors.Is(err, unix.EINTR) {
			return got, err
		}
	}
	return nil, errChanged
}

func (c *conn) dumpOnce(kind uint16, request *message) ([]message, error) {
	c.seq++
	if err := unix.Sendto(c.fd, encode(kind, c.seq, request), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var all []message
	var changed error
	buf := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(c.fd, buf, 0)
		if err != nil {
			return nil, err
		}
		parsed, err := syscall.ParseNetlinkMessage(bytes.Clone(buf[:n])) // messages point into it
		if err != nil {
			return nil, err
		}
		for _, m := range parsed {
			if m.Header.Seq != c.seq {
				continue // the rest of a dump that failed
			}
			if m.Header.Flags&unix.NLM_F_DUMP_INTR != 0 {
				changed = errChanged
			}
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return all, changed
			case unix.NLMSG_ERROR:
				return nil, errnoOf(m.Data)
			default:
				all = append(all, decode(m.Data))
			}
		}
	}
}

// errnoOf reads an nlmsgerr. nfnetlink answers EINVAL when no module serves a
// subsystem, and a dump of ours has nothing else that it could refuse.
func errnoOf(data []byte) error {
	if len(data) < 4 {
		return unix.EBADMSG
	}
	errno := unix.Errno(-int32(binary.NativeEndian.Uint32(data)))
	if errno == unix.EINVAL || errno == unix.EOPNOTSUPP {
		return fmt.Errorf("kernel without nf_tables: %w", errors.ErrUnsupported)
	}
	return errno
}

// encode is a nlmsghdr, a nfgenmsg and the attributes of the request.
func encode(kind uint16, seq uint32, request *message) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+4+len(request.payload)))
	b = binary.NativeEndian.AppendUint16(b, unix.NFNL_SUBSYS_NFTABLES<<8|kind)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = append(b, request.family, unix.NFNETLINK_V0, 0, 0)
	return append(b, request.payload...)
}

func decode(data []byte) message {
	m := message{attrs: map[uint16][]byte{}}
	if len(data) < 4 {
		return m
	}
	m.family = data[0]
	eachAttr(data[4:], func(kind uint16, value []byte) { m.attrs[kind] = value })
	return m
}

// eachAttr calls fn for each attribute in b and stops at a malformed one.
func eachAttr(b []byte, fn func(kind uint16, value []byte)) {
	for len(b) >= unix.SizeofNlAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofNlAttr || length > len(b) {
			return
		}
		fn(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.SizeofNlAttr:length])
		b = b[min(aligned(length), len(b)):]
	}
}

// attr encodes a string attribute.
func attr(kind uint16, value string) []byte {
	length := unix.SizeofNlAttr + len(value) + 1
	b := binary.NativeEndian.AppendUint16(nil, uint16(length))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, 1+aligned(length)-length)...)
}

func aligned(n int) int { return (n + 3) &^ 3 }

func text(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }
