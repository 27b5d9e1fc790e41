package nl

import (
	"errors"
	"syscall"

	"github.com/vishvananda/netlink"
)

var (
	// ErrNotFound means that the link, address, route or setting does not exist.
	ErrNotFound = errors.New("not found")

	// ErrExists means that the kernel has the object already, or one that excludes it.
	ErrExists = errors.New("already exists")

	// ErrPartial means that a dump was interrupted by changes each time it was tried.
	// The data returned with it is real but may lack entries: it proves presence,
	// never absence.
	ErrPartial = errors.New("dump interrupted, entries may be missing")
)

// Error is a failed operation on a kernel object.
type Error struct {
	Op     string // verb and kind: "add route"
	Object string // which one: "10.1.2.0/24 dev vxlan0"
	Err    error
}

func (e *Error) Error() string { return e.Op + " " + e.Object + ": " + e.Err.Error() }

// Unwrap gives access to the errno.
func (e *Error) Unwrap() error { return e.Err }

// Is maps the kernel's errnos and the library's errors to the errors of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return absent(e.Err)
	case ErrExists:
		return errors.Is(e.Err, syscall.EEXIST)
	default:
		return false
	}
}

// absent reports whether err says that the object is not there: ENODEV for links,
// ESRCH for routes, ENOENT for neighbours, forwarding entries and files.
func absent(err error) bool {
	var noLink netlink.LinkNotFoundError
	return errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ESRCH) ||
		errors.Is(err, syscall.ENOENT) || errors.As(err, &noLink)
}
