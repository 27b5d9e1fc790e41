package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// failure is a finding that is not what it has to be.
type failure struct{ want, got string }

func (f *failure) Error() string { return fmt.Sprintf("expected %s; seen: %s", f.want, f.got) }

// fail prints what went wrong in a step, and where to look.
func (c *console) fail(step string, err error, logs string) {
	want, got := "that the step completes", err.Error()
	var f *failure
	if errors.As(err, &f) {
		want, got = f.want, f.got
	}
	fmt.Fprintf(c.w, "\nFAILED after %.1fs: step %q\n", c.elapsed().Seconds(), step)
	for _, part := range [][2]string{{"expected:", want}, {"seen:", got}, {"logs:", logs}} {
		text := strings.ReplaceAll(strings.TrimSpace(part[1]), "\n", "\n            ")
		fmt.Fprintf(c.w, "  %-9s %s\n", part[0], text)
	}
	fmt.Fprintln(c.w)
}

// interval is how often await looks.
const interval = 2 * time.Millisecond

// patience is how long the lab waits for what has no limit of its own.
const patience = time.Minute

// await looks until nothing is wrong, and returns how long that took. look returns what
// is still wrong, and "" in the end. When the limit passes first, the error is a failure.
func await(ctx context.Context, limit time.Duration, want string, look func() (wrong string, err error)) (time.Duration, error) {
	start := time.Now()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		wrong, err := look()
		if wrong == "" && err == nil {
			return time.Since(start), nil
		}
		if time.Since(start) > limit {
			if err != nil {
				wrong = err.Error()
			}
			return 0, &failure{fmt.Sprintf("%s within %s", want, limit), wrong}
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-tick.C:
		}
	}
}
