package netif

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrNotFound says that there is no interface of that name.
var ErrNotFound = errors.New("no such interface")

// ErrExists says that an interface of that name is there already.
var ErrExists = errors.New("interface exists")

// ErrWrongKind says that the interface of that name is not of the kind needed, for
// example that it is no bridge.
var ErrWrongKind = errors.New("interface is of another kind")

// AddressConflict says that an interface has an address that cannot stay beside one
// that it should get.
type AddressConflict struct {
	Link   string
	Has    netip.Prefix
	Wanted netip.Prefix
}

func (e *AddressConflict) Error() string {
	return fmt.Sprintf("%s has the address %s, which conflicts with %s", e.Link, e.Has, e.Wanted)
}

// RouteConflict says that a route cannot be added because the namespace has one with
// the same destination, table and priority through another interface.
type RouteConflict struct {
	Route Route
	Link  string // the interface of the route that is there
}

func (e *RouteConflict) Error() string {
	return fmt.Sprintf("a route to %s with priority %d is there already, through %s", e.Route.Dst, e.Route.Priority, e.Link)
}
