package hostlocal

import (
	"math/rand/v2"
	"time"
)

// stampAge is how long ago a stamp lies at most. It is in the past so that no change in
// the present can be taken for it, and recent so that a listing of the directory still
// tells when it was used.
const stampAge = time.Hour

// newStamp returns a random time: to the nanosecond, or for a file system that keeps
// less, to two seconds, as the coarsest does.
func newStamp(now time.Time, coarse bool) time.Time {
	at := now.Add(-2*time.Second - rand.N(stampAge))
	if coarse {
		return at.Truncate(2 * time.Second).Round(0)
	}
	if at.Nanosecond() == 0 {
		at = at.Add(1) // seconds alone would look coarse
	}
	return at.Round(0)
}
