package cnitest

import (
	"encoding/binary"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestDescribe has what a test cannot provoke in time: the announcement of a bridge port
// comes 15 seconds after it joined, a learned entry ages for minutes.
func TestDescribe(t *testing.T) {
	neighbour := func(family byte, state uint16) []byte {
		data := make([]byte, unix.SizeofNdMsg)
		data[0] = family
		binary.NativeEndian.PutUint16(data[stateOffset:], state)
		return data
	}
	for name, c := range map[string]struct {
		kind uint16
		port uint32
		data []byte
		want string // "": not told
	}{
		"link":                         {unix.RTM_NEWLINK, 0, make([]byte, unix.SizeofIfInfomsg), "new link"},
		"link/bridge port, repeated":   {unix.RTM_NEWLINK, 0, append([]byte{unix.AF_BRIDGE}, make([]byte, unix.SizeofIfInfomsg)...), ""},
		"link/bridge port, left":       {unix.RTM_DELLINK, 0, append([]byte{unix.AF_BRIDGE}, make([]byte, unix.SizeofIfInfomsg)...), "delete link bridge"},
		"neighbour/permanent":          {unix.RTM_NEWNEIGH, 0, neighbour(unix.AF_INET, unix.NUD_PERMANENT), "new neighbour ipv4"},
		"neighbour/learned":            {unix.RTM_NEWNEIGH, 0, neighbour(unix.AF_INET, unix.NUD_REACHABLE), ""},
		"neighbour/aged":               {unix.RTM_DELNEIGH, 0, neighbour(unix.AF_INET6, unix.NUD_STALE), ""},
		"neighbour/of a group":         {unix.RTM_DELNEIGH, 0, neighbour(unix.AF_INET6, unix.NUD_NOARP), ""},
		"neighbour/set by somebody":    {unix.RTM_NEWNEIGH, 7, neighbour(unix.AF_INET, unix.NUD_REACHABLE), "new neighbour ipv4"},
		"neighbour/deleted":            {unix.RTM_NEWNEIGH, 7, neighbour(unix.AF_INET, unix.NUD_FAILED), "new neighbour ipv4 failed"},
		"fdb/static":                   {unix.RTM_NEWNEIGH, 0, neighbour(unix.AF_BRIDGE, unix.NUD_NOARP), "new neighbour bridge"},
		"fdb/learned":                  {unix.RTM_NEWNEIGH, 0, neighbour(unix.AF_BRIDGE, unix.NUD_REACHABLE), ""},
		"rule":                         {unix.RTM_DELRULE, 0, make([]byte, unix.SizeofRtMsg), "delete rule"},
		"next hop":                     {unix.RTM_NEWNEXTHOP, 0, make([]byte, 8), "new next hop"},
		"nftables":                     {unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE, 0, make([]byte, 4), "nftables message 6"},
		"unknown":                      {200, 0, nil, "message of type 200"},
		"the end of a list is no news": {unix.NLMSG_DONE, 0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			what, told := describe(syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: c.kind, Pid: c.port}, Data: append(c.data, 0, 0, 0, 0)})
			require.Equal(t, c.want != "", told)
			if told {
				require.Equal(t, c.want, what)
			}
		})
	}
}
