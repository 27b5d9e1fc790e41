package netif

import "net"

// Link is what the kernel says of one interface. It is a snapshot.
type Link struct {
	Name  string
	Index int    // in its namespace
	Kind  string // "bridge", "veth", …; "device" for hardware and lo
	MAC   net.HardwareAddr
	MTU   int    // bytes
	Alias string // a free text that serves as owner mark; see ip-link(8)

	Up      bool // switched on (IFF_UP)
	Carrier bool // the other end is on, too (IFF_LOWER_UP)
	Running bool // ready to pass packets (IFF_RUNNING)

	Master int // index of the bridge whose port this is; 0: none
	Peer   int // veth: index of the other end, in that one's namespace
}
