package nl

import "strconv"

// EventKind is what an event is about.
type EventKind int

// The kinds of events. [Overflow] is always delivered, the others when subscribed.
const (
	LinkEvent    EventKind = iota + 1 // a link came, went or changed
	AddrEvent                         // an IPv4 or IPv6 address
	RouteEvent                        // an IPv4 or IPv6 route, of any table
	NeighEvent                        // a neighbour or a forwarding (FDB) entry
	RuleEvent                         // an IPv4 or IPv6 routing rule
	NetconfEvent                      // a per-interface sysctl such as forwarding
	Overflow                          // events were lost: look at everything
)

// String is the name of the kind.
func (k EventKind) String() string {
	switch k {
	case LinkEvent:
		return "link"
	case AddrEvent:
		return "address"
	case RouteEvent:
		return "route"
	case NeighEvent:
		return "neighbour"
	case RuleEvent:
		return "rule"
	case NetconfEvent:
		return "netconf"
	case Overflow:
		return "overflow"
	default:
		return "event " + strconv.Itoa(int(k))
	}
}

// Event tells that something changed. It does not carry the object: by the time it
// is read the kernel may have moved on, so the reader looks.
type Event struct {
	Kind EventKind

	// Link is the index of the link concerned. It is 0 when there is none (rules,
	// multipath routes, Overflow) and negative for the netconf entries "all" (-1) and
	// "default" (-2).
	Link int

	// Gone says that the object was deleted.
	Gone bool
}
