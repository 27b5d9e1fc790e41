package hostlocal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A new stamp is never the one of the index on disk, which is not valid from here on,
// also where a file system cuts times off. Of whole seconds there are few.
func TestStampIsAnother(t *testing.T) {
	now := time.Now()
	for _, coarse := range []bool{false, true} {
		old := newStamp(now, time.Time{}, true)
		for range 20_000 {
			stamp := newStamp(now, old, coarse)
			for _, kept := range []time.Duration{1, time.Second, coarsest} {
				require.False(t, stamp.Truncate(kept).Equal(old), "%s, cut off to %s", stamp, kept)
			}
			require.Equal(t, coarse, stamp.Nanosecond() == 0)
			require.Equal(t, coarse, stamp.Nanosecond()%10 == 0, "%s must tell whether nanoseconds are kept", stamp)
			require.Less(t, now.Sub(stamp), stampAge+2*coarsest)
			require.GreaterOrEqual(t, now.Sub(stamp), coarsest)
		}
	}
}
