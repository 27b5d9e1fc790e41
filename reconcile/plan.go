package reconcile

// A Plan is what a round would do now.
type Plan struct {
	Targets []TargetPlan // in the order in which they are applied
}

// A TargetPlan is what a round would do to one target.
type TargetPlan struct {
	Name    string
	Phase   int
	Waiting []string // targets that would have to converge first
	Changes []Change // creations and changes, then deletions, each sorted by key
	Err     error    // the observation failed or was partial
}

// A Change is one operation of a plan.
type Change struct {
	Op   Op
	Key  string // as fmt.Sprint prints it
	Text string // as TableOptions.Format prints it; for Modify: observed => desired
	Held bool   // a deletion that the guard would hold back
}

// Op is what happens to a key.
type Op byte

// The operations, as they are printed.
const (
	Create Op = '+'
	Modify Op = '~'
	Remove Op = '-'
)

// String prints one line per target and one per change.
func (p Plan) String() string { return "" }
