package reconcile

import (
	"time"
)

// Status is the state of an engine at one moment. It marshals to JSON.
type Status struct {
	Time    time.Time      // when it was taken
	Running bool           // Run has been called and has not returned
	Round   Round          // the last one; Number 0: none yet
	Targets []TargetStatus // in the order in which they are applied
}

// TargetStatus is the state of one target.
type TargetStatus struct {
	Name  string
	Phase int

	Synced    bool     // the table has had its first Replace
	Converged bool     // synced, and every wanted key stands as wanted; deletes may be outstanding
	Waiting   []string // targets named in After that have not converged
	Desired   int      // wanted keys
	Observed  int      // keys in the remembered observation

	LastLook    time.Time // last complete observation; zero: none
	LastSuccess time.Time // last time the target was found or made converged; zero: never

	Failing []KeyError // sorted by key
	Held    []string   // keys whose deletion is held back, sorted
}
