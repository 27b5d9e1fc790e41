package reconcile

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Round is what one pass over the targets did.
type Round struct {
	Number  uint64        // from 1
	Started time.Time     //
	Took    time.Duration //
	Full    bool          // every target was looked at afresh
	Looks   int           // targets looked at afresh
	Applied int           // keys created or changed
	Deleted int           // keys deleted
	Held    int           // deletes held back by the guard, at the end of the round
	Failed  []KeyError    // what failed in this round
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
