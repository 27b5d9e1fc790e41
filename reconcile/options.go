package reconcile

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Options configure an [Engine]. Only Targets is required; the zero value of everything else is its default.
type Options struct {
	Targets []Target // what to keep as wanted; the names must differ

	Resync   time.Duration // between full looks without a cause, jittered by ±10 %; default 1 min, negative: none
	Coalesce time.Duration // how long to gather changes before a round; default 5 ms, negative: not at all
	Timeout  time.Duration // of one call of a store; default 10 s

	BackoffMin time.Duration // before the first retry of a failed key or observation; default 100 ms
	BackoffMax time.Duration // the limit of its doubling; default 30 s, after a partial observation no more than 1 s

	MaxDeleteShare float64       // of a target's observed keys that may be deleted in one round; default 0.5, 1: any share
	DeleteFloor    int           // this many deletes are always allowed; default 10, negative: none
	HoldFor        time.Duration // from holding deletes back to the second look that may release them; default 10 s

	// Log gets, as a warning, each key that cannot be brought to what is wanted: when it begins, when the error changes, and
	// at intervals that grow from a minute to an hour. Nil discards.
	Log     *slog.Logger
	OnRound func(Round) // called after each round, on the goroutine of Run; may call the engine, must not block
}

func (o Options) withDefaults() Options {
	o.Resync = orDefault(o.Resync, time.Minute)
	o.Coalesce = max(orDefault(o.Coalesce, 5*time.Millisecond), 0)
	o.Timeout = orDefault(o.Timeout, 10*time.Second)
	o.BackoffMin = orDefault(o.BackoffMin, 100*time.Millisecond)
	o.BackoffMax = orDefault(o.BackoffMax, 30*time.Second)
	o.MaxDeleteShare = orDefault(o.MaxDeleteShare, 0.5)
	o.DeleteFloor = orDefault(o.DeleteFloor, 10)
	o.HoldFor = orDefault(o.HoldFor, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	switch {
	case len(o.Targets) == 0:
		return fmt.Errorf("targets: none given; an engine needs at least one")
	case o.MaxDeleteShare < 0 || o.MaxDeleteShare > 1:
		return fmt.Errorf("max delete share %v: not between 0 and 1; use 1 to allow any share", o.MaxDeleteShare)
	case o.BackoffMin < 0 || o.BackoffMax < o.BackoffMin:
		return fmt.Errorf("back-off from %v to %v: must be positive and ascending", o.BackoffMin, o.BackoffMax)
	case o.Timeout < 0 || o.HoldFor < 0:
		return fmt.Errorf("timeout %v, hold for %v: must not be negative", o.Timeout, o.HoldFor)
	}
	return checkTargets(o.Targets)
}

var errNilTarget = errors.New("targets: one is nil; leave it out")

// checkTargets refuses targets that are incomplete, that cannot be told apart or that wait for what the engine never converges
// before them.
func checkTargets(targets []Target) error {
	names := map[string]bool{}
	for _, t := range targets {
		if t == nil {
			return errNilTarget
		}
		if err := t.check(); err != nil {
			return err
		}
		if names[t.Name()] {
			return fmt.Errorf("target %q: the name is taken; give each target its own", t.Name())
		}
		names[t.Name()] = true
		for _, a := range t.settings().after {
			switch {
			case !slices.Contains(targets, a):
				return fmt.Errorf("target %q: waits for %q, which is not among the targets; add it", t.Name(), a.Name())
			case a.settings().phase > t.settings().phase:
				return fmt.Errorf("target %q: phase %d, but waits for %q of phase %d; use at least that phase",
					t.Name(), t.settings().phase, a.Name(), a.settings().phase)
			}
		}
	}
	return nil
}

// soon is the least time between two tries of one failing key, however often they are triggered, and how long a repair must
// last to be forgotten.
func (o Options) soon() time.Duration { return 10 * o.BackoffMin }

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
