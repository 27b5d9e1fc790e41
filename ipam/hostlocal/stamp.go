package hostlocal

import (
	"math/rand/v2"
	"time"
)

// stampAge is how long ago a stamp lies at most. It is in the past so that no change in
// the present can be taken for it, and recent so that a listing of the directory still
// tells when it was used.
const stampAge = time.Hour

// coarsest is the coarsest time that a file system keeps.
const coarsest = 2 * time.Second

// newStamp returns a random time: to the nanosecond, or for a file system that keeps
// less, to two seconds, as the coarsest does. It is another one than old, even after such
// a file system has cut it off.
func newStamp(now, old time.Time, coarse bool) time.Time {
	at := old
	for at.Sub(old).Abs() < coarsest {
		at = now.Add(-coarsest - rand.N(stampAge))
		if coarse {
			at = at.Truncate(coarsest)
		}
	}
	if coarse {
		return at.Round(0)
	}
	if at.Nanosecond()%10 == 0 {
		at = at.Add(1) // one that keeps less than nanoseconds would keep this by chance, and not the next
	}
	return at.Round(0)
}
