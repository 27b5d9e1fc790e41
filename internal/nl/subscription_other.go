//go:build !linux

package nl

import (
	"context"

	"github.com/cnikit/cnikit/internal/netns"
)

// Subscription cannot be made on this platform; see the Linux documentation.
type Subscription struct{}

// Subscribe is not supported on this platform.
func Subscribe(*netns.NS, ...EventKind) (*Subscription, error) { return nil, errUnsupported }

// Receive is not supported on this platform.
func (s *Subscription) Receive(context.Context) ([]Event, error) { return nil, errUnsupported }

// Close does nothing.
func (s *Subscription) Close() error { return nil }
