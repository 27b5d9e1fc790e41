package cnitest

import (
	"fmt"
	"io"
	"regexp"
	"time"
)

// DefaultTimeout is how long a plugin may take for one call.
const DefaultTimeout = 10 * time.Second

// Options are for [Run] and [Examine]. The zero value runs everything that fits the
// target.
type Options struct {
	Run, Skip string        // regular expressions over "group/case"; "": all, none
	Seed      uint64        // of what is chosen at random; 0: a random one, which is told; see also [Run]
	Timeout   time.Duration // of one call of the plugin; default [DefaultTimeout]
	Budget    time.Duration // after it, no further case is begun; 0: no limit
	Progress  io.Writer     // gets a line before each case; nil: none
	Strict    bool          // a rule that should be kept is [Broken] like one that must, not [Warned]
}

// filter chooses cases by name.
type filter struct{ run, skip *regexp.Regexp }

func (o Options) filter() (f filter, err error) {
	if f.run, err = regexp.Compile(o.Run); err != nil {
		return f, fmt.Errorf("option Run: %w", err)
	}
	if o.Skip == "" {
		return f, nil
	}
	if f.skip, err = regexp.Compile(o.Skip); err != nil {
		return f, fmt.Errorf("option Skip: %w", err)
	}
	return f, nil
}

func (f filter) wants(name string) bool {
	return f.run.MatchString(name) && (f.skip == nil || !f.skip.MatchString(name))
}
