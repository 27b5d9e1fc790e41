package reconcile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// A Round is what one pass over the targets did.
type Round struct {
	Number  uint64        `json:"number"` // from 1
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took"`             // nanoseconds in JSON
	Full    bool          `json:"full"`             // every target was looked at afresh
	Looks   int           `json:"looks"`            // targets looked at afresh
	Applied int           `json:"applied"`          // keys created or changed
	Deleted int           `json:"deleted"`          // keys deleted
	Held    int           `json:"held"`             // deletes held back, by the guard or by the order, at the end of the round
	Failed  []KeyError    `json:"failed,omitempty"` // what failed in this round
}

// A KeyError is the failure of one key, or of a whole observation when Key is empty.
type KeyError struct {
	Target string
	Key    string    // as fmt.Sprint prints it; empty: the observation of the target failed
	Tries  int       // in a row
	Retry  time.Time // when it is tried again at the latest
	Err    error
}

func (e KeyError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s: %v", e.Target, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Target, e.Key, e.Err)
}

func (e KeyError) Unwrap() error { return e.Err }

// MarshalJSON writes the error as its text.
func (e KeyError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Target string    `json:"target"`
		Key    string    `json:"key,omitempty"`
		Tries  int       `json:"tries"`
		Retry  time.Time `json:"retry"`
		Error  string    `json:"error"`
	}{e.Target, e.Key, e.Tries, e.Retry, e.Err.Error()})
}

// round is a round in the making.
type round struct {
	Round
	opts   Options
	resync bool
	jitter float64        // of this round's back-offs: what failed together is retried together, by one look
	active bool           // a store was called, or deletes were held
	told   map[string]int // failures that were to be logged, by target
	lowest *int           // deletes of lower phases have to wait; nil: none
}

func newRound(o Options, resync bool) *round {
	return &round{
		Round:  Round{Started: time.Now()},
		opts:   o,
		resync: resync,
		jitter: 0.5 + rand.Float64()/2,
		told:   map[string]int{},
	}
}

// backoff returns how long to wait after so many failures in a row: BackoffMin, doubled with each, up to BackoffMax, less up
// to half of it; nothing after none.
func (r *round) backoff(tries int) time.Duration {
	if tries <= 0 {
		return 0
	}
	d := r.opts.BackoffMax
	if shift := tries - 1; shift < 32 && r.opts.BackoffMin < d>>shift {
		d = r.opts.BackoffMin << shift
	}
	return time.Duration(float64(d) * r.jitter)
}
