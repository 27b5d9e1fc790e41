package cnitest

import "errors"

var (
	// ErrNoReply means that a probe got no answer in time.
	ErrNoReply = errors.New("no reply")
	// ErrTooBig means that a packet that must not be fragmented was refused for its size,
	// here or by a router on the way.
	ErrTooBig = errors.New("packet too big")
	// ErrMissed means that a [Monitor] could not keep up and does not know everything
	// that happened.
	ErrMissed = errors.New("notifications were missed")
)
