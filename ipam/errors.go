package ipam

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that callers tell apart. Compare with errors.Is.
var (
	// ErrExhausted says that a range set has no free address; errors.As finds
	// the figures in an [*ExhaustedError].
	ErrExhausted = errors.New("no free address")
	// ErrTaken says that a requested address is held by another owner.
	ErrTaken = errors.New("address is taken")
	// ErrNotAllocatable says that a requested address lies in no range, is a gateway,
	// network or broadcast address, is excluded, has a zone, or competes with another
	// request for the one address of a range set.
	ErrNotAllocatable = errors.New("address cannot be allocated")
	// ErrHeld says that the owner already holds an address that does not fit
	// the request, or any where [PoolOptions] forbid that; it has to be released
	// first.
	ErrHeld = errors.New("owner already holds an address")
	// ErrInvalidOwner says that an owner cannot be recorded.
	ErrInvalidOwner = errors.New("invalid owner")
)

// ExhaustedError carries the figures of an exhausted range set. It matches
// [ErrExhausted].
type ExhaustedError struct {
	Set      int       // index of the range set in its pool
	Ranges   RangeSet  // the set itself
	Size     uint64    // addresses of the set that may be handed out
	Resting  uint64    // of these, those in quarantine; the others are taken
	Next     time.Time // when the first of the resting ones becomes free; zero when none rests
	KeptBack uint64    // addresses of the ranges that are never handed out; zero when they are too many to count
}

// Error names the set, its figures and the ways out.
func (e *ExhaustedError) Error() string {
	head := fmt.Sprintf("range set %d (%s): %v: ", e.Set, e.Ranges, ErrExhausted)
	if e.Resting == 0 {
		return head + fmt.Sprintf("all %s are taken%s; release stale leases (GC) or widen the range", e.size(), e.keptBack())
	}
	return head + fmt.Sprintf("of %s%s, %d are taken and %d rest in quarantine, the first until %s; wait, release stale leases (GC) or widen the range",
		e.size(), e.keptBack(), e.Size-min(e.Size, e.Resting), e.Resting, e.Next.Format(time.RFC3339))
}

// size and keptBack keep the figures apart from those that a reader finds by counting from
// the first to the last address of a range.
func (e *ExhaustedError) size() string {
	if e.KeptBack == 0 {
		return fmt.Sprint(e.Size)
	}
	return fmt.Sprintf("%d that may be handed out", e.Size)
}

func (e *ExhaustedError) keptBack() string {
	if e.KeptBack == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d kept back as gateway, excluded, network or broadcast address)", e.KeptBack)
}

// Is reports that target is [ErrExhausted].
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }

// RangeError describes a range or range set that cannot be used.
type RangeError struct {
	Set    int    // index of the range set, where several were given
	Range  int    // index of the range in its set
	Key    string // configuration key: subnet, rangeStart, rangeEnd, gateway, exclude; empty: the set as a whole
	Value  string // offending value, as given
	Reason string // what is wrong with it
	Fix    string // what to write instead
}

// Error renders key, value, reason and way out. The indexes are left to callers
// that know how their configuration spells them.
func (e *RangeError) Error() string {
	var b strings.Builder
	if e.Key != "" {
		fmt.Fprintf(&b, "%s=%q: ", e.Key, e.Value)
	}
	b.WriteString(e.Reason)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}
