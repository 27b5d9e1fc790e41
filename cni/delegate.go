package cni

import (
	"context"
	"errors"
)

// Delegate is another plugin that serves part of a request, such as address
// management. It gets the same configuration and the same environment.
type Delegate struct {
	plugin string
}

// Delegate returns the plugin of the given type as a delegate of this request.
func (r *Request[C]) Delegate(plugin string) *Delegate { return &Delegate{plugin: plugin} }

// Add runs ADD. If it fails, the delegate's DEL has run when Add returns; if it
// succeeds, the delegate's DEL is registered with [Request.Undo].
func (d *Delegate) Add(ctx context.Context) (*Result, error) { return nil, errors.ErrUnsupported }

// Del runs DEL.
func (d *Delegate) Del(ctx context.Context) error { return errors.ErrUnsupported }

// Check runs CHECK.
func (d *Delegate) Check(ctx context.Context) error { return errors.ErrUnsupported }

// Status runs STATUS.
func (d *Delegate) Status(ctx context.Context) error { return errors.ErrUnsupported }

// GC runs GC.
func (d *Delegate) GC(ctx context.Context) error { return errors.ErrUnsupported }
