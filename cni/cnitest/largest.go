package cnitest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// largestPing is the largest packet that LargestPacket tries: the limit of IPv4.
const largestPing = 65535

// tryTimeout is how long a packet of one size may take, or slack times as long as a small
// one takes, whichever is longer; a size is given up after sizeTries.
const (
	tryTimeout = 300 * time.Millisecond
	slack      = 20
	sizeTries  = 3
)

// LargestPacket measures the size in bytes of the largest IP packet that reaches an
// address, and whose reply comes back, without being fragmented at either end or on the
// way (the outer packets of a tunnel are not looked at; see [Namespace.Counters]).
// guess is the size that is expected: guess and guess+1 are tried first, and when the
// guess is right nothing else is. An address that not even the smallest packet reaches
// is [ErrNoReply].
func (n *Namespace) LargestPacket(ctx context.Context, to netip.Addr, guess int) (int, error) {
	smallest := Ping{To: to}.withDefaults()
	low, high := smallest.header()+icmpHeader, largestPing+1
	if _, err := n.Ping(ctx, Ping{To: to, Size: low, DontFragment: true}); err != nil {
		return 0, fmt.Errorf("measure largest packet: %w", err)
	}
	ping := func(size int, timeout time.Duration) (time.Duration, error) {
		return n.Ping(ctx, Ping{To: to, Size: size, DontFragment: true, Timeout: timeout})
	}
	return largest(low, high, guess, func(size int) (bool, error) { return passes(size, low, ping) })
}

// passes tries one size. How long it waits for an answer follows from how long one takes
// to a packet of a size that passes: a busy machine loses nothing, it is slow.
func passes(size, small int, ping func(size int, timeout time.Duration) (time.Duration, error)) (bool, error) {
	timeout := tryTimeout
	for range sizeTries {
		_, err := ping(size, timeout)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrTooBig):
			return false, nil
		case !errors.Is(err, ErrNoReply):
			return false, err
		}
		took, err := ping(small, slack*timeout)
		if err != nil && !errors.Is(err, ErrNoReply) {
			return false, err
		}
		timeout = max(timeout, slack*took)
	}
	return false, nil
}

// largest finds the largest size in [low, high) that passes; low does. The two sizes
// that decide whether the guess is right come first, then bisection.
func largest(low, high, guess int, passes func(int) (bool, error)) (int, error) {
	sizes := []int{guess, guess + 1}
	for high-low > 1 {
		size := (low + high) / 2
		if len(sizes) > 0 {
			size, sizes = sizes[0], sizes[1:]
			if size <= low || size >= high {
				continue
			}
		}
		ok, err := passes(size)
		if err != nil {
			return 0, err
		}
		if ok {
			low = size
		} else {
			high = size
		}
	}
	return low, nil
}
