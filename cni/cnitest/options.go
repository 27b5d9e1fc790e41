package cnitest

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"time"
)

// DefaultTimeout is how long a plugin may take for one call. Runtimes give it minutes, and
// on a busy machine one of a dozen calls at once has needed ten seconds.
const DefaultTimeout = 30 * time.Second

// Options are for [Run] and [Examine]. The zero value runs everything that fits the
// target.
type Options struct {
	Run, Skip string        // regular expressions over "group/case"; "": all, none
	Seed      uint64        // of what is chosen at random; 0: a random one, which is told; see also [Run]
	Timeout   time.Duration // of one call of the plugin; default [DefaultTimeout]
	Budget    time.Duration // after it, no further case is begun; 0: no limit
	Progress  io.Writer     // gets a line before each case; nil: none
	Strict    bool          // a rule that should be kept is [Broken] like one that must, not [Warned]

	// Kills is at how many moments, at most, ADD and DEL are killed, chosen by the seed;
	// 0: at all. It ends after ten seconds each in any case, with a note.
	Kills int

	// Parallel examines cases at once, which takes less time on a machine with nothing else
	// to do: most of it is spent waiting for the kernel. It is for plugins that keep all
	// they have in the namespaces that they are given and in [Placeholder]; whatever else a
	// plugin keeps, one case finds of another. A target with Dirs is refused.
	Parallel bool
}

// atOnce is how many cases run at once: more than there are processors, since they wait.
func (o Options) atOnce() int {
	if !o.Parallel {
		return 1
	}
	return 2 * runtime.GOMAXPROCS(0)
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
