package cnitest

import "time"

// Strength is how binding the rules of a case are.
type Strength string

// The strengths, in the words of RFC 2119.
const (
	Must   Strength = "must"   // broken: the plugin does not keep the specification
	Should Strength = "should" // broken: a warning
)

// Verdict is the outcome of a case in a word.
type Verdict string

// The verdicts.
const (
	Kept        Verdict = "kept"
	Broken      Verdict = "broken"        // a rule that must be kept is not, or with [Options.Strict] any
	Warned      Verdict = "warned"        // a rule that should be kept is not
	Skipped     Verdict = "skipped"       // does not apply here; Reason says why
	FailedToRun Verdict = "failed to run" // the kit could not do what the case needs, or the plugin hangs all of a sudden
)

// CaseInfo says what a case is about.
type CaseInfo struct {
	Group    string   `json:"group"`
	Name     string   `json:"name"`     // within the group
	Rows     []int    `json:"rows"`     // the rules that it looks at, see [Rules]
	Strength Strength `json:"strength"` // of these rules
	About    string   `json:"about"`    // the rule in one sentence
	Fix      string   `json:"fix"`      // what to change in a plugin that breaks it
}

// ID is "group/name".
func (c CaseInfo) ID() string { return c.Group + "/" + c.Name }

// Outcome is what came of a case.
type Outcome struct {
	CaseInfo
	Verdict Verdict       `json:"verdict"`
	Seen    string        `json:"seen,omitempty"`   // what broke the rule, with values
	Reason  string        `json:"reason,omitempty"` // why it was skipped or failed to run
	Took    time.Duration `json:"took"`             // nanoseconds
}

// Report is the outcome of an examination.
type Report struct {
	Plugin   string        `json:"plugin"`
	Profile  Profile       `json:"profile"`
	Versions []string      `json:"versions"` // of the specification, that the plugin says it speaks
	Seed     uint64        `json:"seed"`
	Outcomes []Outcome     `json:"outcomes"`
	Took     time.Duration `json:"took"`            // nanoseconds
	Notes    []string      `json:"notes,omitempty"` // what the reader has to know about how it was done
}

// Count returns how many cases had the verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, o := range r.Outcomes {
		if o.Verdict == v {
			n++
		}
	}
	return n
}
