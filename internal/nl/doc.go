// Package nl is the one place that talks route netlink and net sysctls: it reads
// links, addresses, routes, neighbours, forwarding entries and rules of one network
// namespace, changes them, and tells of changes that anybody makes.
//
// Start with [Open] or [OpenIn] for a [Conn], and with [Subscribe] for events. Every
// write request that a Conn sends is counted ([Conn.Writes]), so that "a round with
// nothing to do writes nothing" can be proved. Errors are [*Error]: they name the
// operation and the object and match [ErrNotFound], [ErrExists], [ErrPartial] and
// the kernel's errno.
//
// The package keeps the types of github.com/vishvananda/netlink and hides its traps:
// interrupted dumps are retried and then return data together with ErrPartial;
// dumps of neighbours and forwarding entries are filtered by the kernel; deleting
// the absent is no error. It knows no desired state; that is reconcile's.
package nl
