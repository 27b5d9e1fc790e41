package cni

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// Plugin is a CNI plugin whose configuration decodes into C, the JSON object that
// arrives on standard input. If C has a method Validate() error, it is called
// before Add, Check and Status; not before Del and GC, because cleaning up must
// not be refused.
//
// All five functions are required; see [NoState], [Ready] and [CheckWith] for
// those that have nothing to do. Plugin is a value without state and safe for
// concurrent use if its functions are.
type Plugin[C any] struct {
	Type  string // the name of the executable
	About string // one line for who runs the executable by hand

	Add    func(context.Context, *Request[C]) (*Result, error)
	Del    func(context.Context, *Request[C]) error
	Check  func(context.Context, *Request[C]) error
	Status func(context.Context, *Request[C]) error
	GC     func(context.Context, *Request[C]) error

	Versions       []string      // of the specification; default SupportedVersions
	Timeout        time.Duration // of one call, without its undo steps; 0 none
	Delegates      Executor      // finds delegates; default Exec{}
	AllowHostNetNS bool          // serve requests for the plugin's own namespace
}

// Handler returns the plugin as a [Handler], without its configuration type. A
// plugin with a nil function answers every command, VERSION too, with an error
// that names the field and what to set it to.
func (p Plugin[C]) Handler() Handler { return handler[C]{p} }

type handler[C any] struct{ p Plugin[C] }

func (h handler[C]) Handle(ctx context.Context, inv Invocation) ([]byte, error) {
	return nil, AsError(errors.ErrUnsupported)
}

// NoState says that the plugin keeps nothing that the command would look at:
// success. For Del, Check and GC.
func NoState[C any](context.Context, *Request[C]) error { return nil }

// Ready says that the plugin can always serve an ADD: success. For Status.
func Ready[C any](context.Context, *Request[C]) error { return nil }

// CheckWith makes a Check function from one that compares an interface in a
// namespace with what it should have. It is called for every interface of
// PrevResult in the request's namespace; the routes go with CNI_IFNAME.
func CheckWith[C any](verify func(ctx context.Context, netns, ifName string, addrs, routes []netip.Prefix) error) func(context.Context, *Request[C]) error {
	return func(context.Context, *Request[C]) error { return errors.ErrUnsupported }
}
