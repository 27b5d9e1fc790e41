package nft

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
)

// Flush deletes everything that nftables holds in ns, in one transaction: a test does to
// a node what an operator's "nft flush ruleset" does.
func Flush(ns *netns.NS) error {
	c, err := dial(ns)
	if err != nil {
		return fmt.Errorf("flush nftables: %w", err)
	}
	defer c.close()
	if err := c.flush(); err != nil {
		return fmt.Errorf("flush nftables: %w", err)
	}
	return nil
}

// flush sends a batch with one deletion. One that names no table means all of them.
func (c *conn) flush() error {
	c.seq++
	batch := control(unix.NFNL_MSG_BATCH_BEGIN, c.seq)
	deletion := encode(unix.NFT_MSG_DELTABLE, c.seq, &message{family: unix.NFPROTO_UNSPEC})
	binary.NativeEndian.PutUint16(deletion[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	batch = append(append(batch, deletion...), control(unix.NFNL_MSG_BATCH_END, c.seq)...)
	if err := unix.Sendto(c.fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 1<<12)
	n, _, err := unix.Recvfrom(c.fd, buf, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return unix.EBADMSG
	}
	if errno := int32(binary.NativeEndian.Uint32(buf[unix.SizeofNlMsghdr:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// control begins or ends a batch of nf_tables messages, which its nfgenmsg names.
func control(kind uint16, seq uint32) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.SizeofNlMsghdr+4)
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = append(b, unix.AF_UNSPEC, unix.NFNETLINK_V0)
	return binary.BigEndian.AppendUint16(b, unix.NFNL_SUBSYS_NFTABLES)
}
