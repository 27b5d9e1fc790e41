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

// RouteConflict says that a route cannot be added, or would never be used, because the
// namespace has another one to the same destination.
type RouteConflict struct {
	Route Route  // the one wanted
	Has   Route  // the one that is there
	Link  string // the interface of that one; empty: none or several
	Kind  string // of that one; empty: it leads through one interface; else "unreachable", "multipath", …
}

func (e *RouteConflict) Error() string {
	has := e.Has.String()
	if e.Kind != "" {
		has = e.Kind + " " + has
	}
	if e.Link != "" {
		has += " through " + e.Link
	}
	return fmt.Sprintf("the route %s conflicts with one that is there: %s", e.Route, has)
}

// LockedError says that a lock is held by another.
type LockedError struct {
	Name string
	PID  int // of the process that holds it; 0: not seen from here, as in another container
}

func (e *LockedError) Error() string {
	holder := "by a process that is not seen from here, perhaps in a container"
	if e.PID != 0 {
		holder = fmt.Sprintf("by process %d", e.PID)
	}
	return fmt.Sprintf("the lock %q is held %s", e.Name, holder)
}
