package nl

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	nlsys "github.com/vishvananda/netlink/nl"
	vishns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
)

const (
	// timeout bounds the wait for a reply; the kernel answers at once or never.
	timeout = 30 * time.Second

	// dumpTries is how often an interrupted dump is made before its data is returned
	// with ErrPartial.
	dumpTries = 4
)

// Conn reads and writes the network configuration of one namespace. It is safe for
// concurrent use. Methods that take a link use its index, or its name when the index
// is 0.
type Conn struct {
	ns     *netns.NS
	plain  *netlink.Handle // everything but what the other two do
	strict *netlink.Handle // route dumps that the kernel filters
	raw    map[int]*nlsys.SocketHandle
	writes atomic.Uint64
}

// Open opens the network namespace of the calling thread.
func Open() (*Conn, error) {
	ns, err := netns.Current()
	if err != nil {
		return nil, fmt.Errorf("open route netlink: %w", err)
	}
	defer func() { _ = ns.Close() }()
	return OpenIn(ns)
}

// OpenIn opens a network namespace. The Conn keeps the namespace alive; ns may be
// closed.
func OpenIn(ns *netns.NS) (*Conn, error) {
	c := &Conn{}
	if err := ns.Do(c.open); err != nil {
		c.Close()
		return nil, fmt.Errorf("open route netlink in %s: %w", ns.Path(), err)
	}
	return c, nil
}

// open makes the sockets, inside the namespace.
func (c *Conn) open() (err error) {
	if c.ns, err = netns.Current(); err != nil {
		return err
	}
	if c.plain, err = newHandle(); err != nil {
		return err
	}
	if c.strict, err = newHandle(); err != nil {
		return err
	}
	socket, err := nlsys.GetNetlinkSocketAt(vishns.None(), vishns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	c.raw = map[int]*nlsys.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}
	limit := unix.NsecToTimeval(timeout.Nanoseconds())
	if err := errors.Join(socket.SetSendTimeout(&limit), socket.SetReceiveTimeout(&limit)); err != nil {
		return err
	}
	// Kernels before 4.20 know neither option, filter nothing and say less.
	_ = socket.SetExtAck(true)
	_ = unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1)
	_ = c.strict.SetStrictCheck(true)
	return nil
}

func newHandle() (*netlink.Handle, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := h.SetSocketTimeout(timeout); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Close releases the sockets. No other method may be running or follow.
func (c *Conn) Close() {
	for _, h := range []*netlink.Handle{c.plain, c.strict} {
		if h != nil {
			h.Close()
		}
	}
	for _, socket := range c.raw {
		socket.Close()
	}
	if c.ns != nil {
		_ = c.ns.Close()
	}
}

// NS is the namespace, owned by c and closed with it.
func (c *Conn) NS() *netns.NS { return c.ns }

// Writes is the number of write requests sent so far, whether the kernel accepted
// them or not; writes of sysctls count too.
func (c *Conn) Writes() uint64 { return c.writes.Load() }

// write sends one write request. Every write of this package passes here.
func (c *Conn) write(op, object string, send func() error) error {
	c.writes.Add(1)
	if err := send(); err != nil {
		return &Error{Op: op, Object: object, Err: err}
	}
	return nil
}

// del is write for deletions, where absence is success.
func (c *Conn) del(op, object string, send func() error) error {
	err := c.write(op, object, send)
	if absent(err) {
		return nil
	}
	return err
}

// request is a request on the raw socket.
func (c *Conn) request(kind, flags int) *nlsys.NetlinkRequest {
	return &nlsys.NetlinkRequest{
		NlMsghdr: unix.NlMsghdr{
			Len:   unix.SizeofNlMsghdr,
			Type:  uint16(kind),
			Flags: unix.NLM_F_REQUEST | uint16(flags),
		},
		Sockets: c.raw,
	}
}

// dump repeats an interrupted dump and returns the best it got.
func dump[T any](op, object string, read func() ([]T, error)) ([]T, error) {
	var items []T
	var err error
	for range dumpTries {
		items, err = read()
		if err == nil {
			return items, nil
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, syscall.EINTR) {
			return nil, &Error{Op: op, Object: object, Err: err}
		}
	}
	return items, &Error{Op: op, Object: object, Err: ErrPartial}
}
