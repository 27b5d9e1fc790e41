package cnitest

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// request encodes one netlink message.
func netlinkRequest(kind, flags int, body ...byte) []byte {
	m := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	m = binary.NativeEndian.AppendUint16(m, uint16(kind))
	m = binary.NativeEndian.AppendUint16(m, uint16(flags))
	return append(append(m, make([]byte, 8)...), body...)
}

func TestNetlinkChanges(t *testing.T) {
	link := make([]byte, 16)
	binary.NativeEndian.PutUint32(link[4:], 7)
	binary.NativeEndian.PutUint32(link[8:], 1)
	binary.NativeEndian.PutUint32(link[12:], 1)
	name := binary.NativeEndian.AppendUint16(nil, 9)
	name = append(binary.NativeEndian.AppendUint16(name, 3), "eth0\x00\x00\x00\x00"...)
	for _, c := range []struct {
		protocol int
		message  []byte
		want     []string
	}{
		{routeNetlink, netlinkRequest(16, 5, append(make([]byte, 16), name...)...), []string{"RTM_NEWLINK eth0"}},
		{routeNetlink, netlinkRequest(19, 5, link...), []string{"RTM_SETLINK #7 up"}},
		{routeNetlink, netlinkRequest(18, 0x305, link...), nil},
		{routeNetlink, netlinkRequest(24, 0x605, 2, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), []string{"RTM_NEWROUTE default"}},
		{routeNetlink, netlinkRequest(105, 5, make([]byte, 8)...), []string{"RTM_DELNEXTHOP"}},
		{routeNetlink, netlinkRequest(2, 0), nil},
		{nfNetlink, append(netlinkRequest(0x10, 1, 0, 0, 0, 10), netlinkRequest(10<<8, 1, 2, 0, 0, 0)...), []string{"NFT_MSG_NEWTABLE"}},
		{nfNetlink, netlinkRequest(10<<8|7, 0x301, 2, 0, 0, 0), nil},
		{nfNetlink, netlinkRequest(6<<8|9, 1, 2, 0, 0, 0), []string{"IPSET_CMD_ADD"}},
		{nfNetlink, netlinkRequest(1<<8|2, 1, 2, 0, 0, 0), []string{"nfnetlink subsystem 1 message 2"}},
		{xfrmNetlink, netlinkRequest(0x10, 1), []string{"XFRM message 0x10"}},
		{xfrmNetlink, netlinkRequest(0x12, 1), nil},
		{genericNetlink, netlinkRequest(16, 1), nil},
		{genericNetlink, netlinkRequest(0x1c, 1), []string{"generic netlink message 0x1c"}},
		{4, netlinkRequest(20, 1), nil},
		{routeNetlink, netlinkRequest(16, 5, append(make([]byte, 16), name...)...)[:30], nil},
	} {
		require.Equal(t, c.want, netlinkChanges(c.protocol, c.message), "%d %x", c.protocol, c.message)
	}
}

func TestNetlinkSummary(t *testing.T) {
	require.Equal(t, []string{"a (2 times)", "b", "a"}, summary([]string{"a", "a", "b", "a"}))
	require.Equal(t, []string{"a", "b", "c", "d", "and 2 more"}, summary([]string{"a", "b", "c", "d", "e", "e"}))
}

func FuzzNetlinkChanges(f *testing.F) {
	f.Add(0, netlinkRequest(16, 5, make([]byte, 40)...))
	f.Fuzz(func(_ *testing.T, protocol int, message []byte) { netlinkChanges(protocol, message) })
}
