package cnitest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func rulesText(rows []int) string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = fmt.Sprint(row)
	}
	if len(texts) == 1 {
		return "rule " + texts[0]
	}
	return "rules " + strings.Join(texts, ", ")
}

// Examine runs the cases without package testing. An error means that nothing could be
// examined; what the cases found is in the report. When ctx ends, so does the
// examination, and the report has the cases up to there.
func Examine(ctx context.Context, target Target, o Options) (*Report, error) {
	began := time.Now()
	x, err := newExam(ctx, target, o)
	if err != nil {
		return nil, err
	}
	defer x.close()
	r := &Report{Plugin: x.target.Plugin, Profile: x.target.Profile, Versions: x.versions, Seed: x.seed}
	r.Outcomes = x.runAll(ctx)
	r.Notes = x.notes
	r.Took = time.Since(began)
	return r, ctx.Err()
}

// runAll runs the cases until ctx ends, as many at once as the options allow. The
// outcomes are in the order of the cases.
func (x *exam) runAll(ctx context.Context) []Outcome {
	outcomes := make([]Outcome, len(x.cases))
	var begun atomic.Int64
	var workers sync.WaitGroup
	for range x.o.atOnce() {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(begun.Add(1)) - 1
				if i >= len(x.cases) {
					return
				}
				x.progress(i)
				outcomes[i] = x.judge(ctx, x.cases[i])
			}
		})
	}
	workers.Wait()
	return slices.DeleteFunc(outcomes, func(o Outcome) bool { return o.Verdict == "" })
}

// progress tells that a case begins.
func (x *exam) progress(i int) {
	if x.o.Progress == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	fmt.Fprintf(x.o.Progress, "%d/%d %s\n", i+1, len(x.cases), x.cases[i].ID())
}

// errNoNamespaces: without them, nothing can be examined.
var errNoNamespaces = errors.New("no network namespace can be made: root is needed, or a user namespace (unshare -rn)")

// exam is one examination of one target.
type exam struct {
	target   Target
	net      *network
	o        Options
	cases    []kase
	dir      string // has a directory for each case
	versions []string
	version  string // of the requests, unless a case chooses another
	because  string // why it is not the newest that the plugin speaks; "" if it is
	limit    limit
	seed     uint64
	ends     time.Time // zero: no budget
	killing  time.Duration
	count    atomic.Int64
	hangs    hangs

	mu    sync.Mutex // for what follows, and Options.Progress
	notes []string
}

func newExam(ctx context.Context, target Target, o Options) (*exam, error) {
	t, net, err := target.prepared()
	if err != nil {
		return nil, fmt.Errorf("examine plugin: %w", err)
	}
	f, err := o.filter()
	if err != nil {
		return nil, fmt.Errorf("examine plugin: %w", err)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Parallel && len(t.Dirs) > 0 {
		return nil, fmt.Errorf("examine plugin: option Parallel: cases share the directories %s; leave one of the two out, or have the configuration name %s",
			strings.Join(t.Dirs, ", "), Placeholder)
	}
	x := &exam{target: t, net: net, o: o, seed: o.Seed, killing: defaultKilling}
	if x.seed == 0 {
		x.seed = rand.Uint64()
	}
	if o.Budget > 0 {
		x.ends = time.Now().Add(o.Budget)
	}
	for _, c := range groups() {
		if c.suits(t.Profile) && f.wants(c.ID()) {
			x.cases = append(x.cases, c)
		}
	}
	if x.dir, err = os.MkdirTemp("", "cnitest-"); err != nil {
		return nil, fmt.Errorf("examine plugin: %w", err)
	}
	if err := x.ask(ctx); err != nil {
		x.close()
		return nil, fmt.Errorf("examine plugin %s: %w", t.Plugin, err)
	}
	return x, nil
}

func (x *exam) close() { _ = removeTree(x.dir) } // what is left of a case was noted

// note remembers what the reader of the report has to know, once.
func (x *exam) note(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Contains(x.notes, note) {
		x.notes = append(x.notes, note)
	}
}

// ask finds the plugin and asks it for its versions.
func (x *exam) ask(ctx context.Context) error {
	if n, err := NewNamespace(); err != nil {
		return fmt.Errorf("%w: %w", errNoNamespaces, err)
	} else if err := n.Close(); err != nil {
		return err
	}
	if x.target.Handler == nil {
		if _, err := find(x.target.Plugin, x.target.Path); err != nil {
			return err
		}
	}
	p, err := x.probe(ctx, "versions")
	if err != nil {
		return err
	}
	defer p.close()
	if err := guarded(p.askBefore); err != nil {
		return fmt.Errorf("ask those before it for their versions: %w", err)
	}
	var failed error
	if err := guarded(func() { failed = p.chooseVersion() }); err != nil {
		return fmt.Errorf("ask for its versions: %w", err)
	}
	return failed
}

// askBefore ends the examination if a plugin before the one under test cannot be executed,
// which every case needs. What it answers does not matter.
func (p *probe) askBefore() {
	for _, plugin := range p.net.plugins[:p.net.index] {
		r := p.versionRequest("1.1.0")
		r.plugin = plugin.text("type")
		p.do(r)
	}
}

// find looks for an executable in directories.
func find(plugin string, dirs []string) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, plugin)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no executable %q in %s", plugin, strings.Join(dirs, ", "))
}

// delegates lists the types that the configuration has the plugin call.
func (x *exam) delegates() []string {
	var types []string
	for _, object := range delegations(x.net.plugin(), x.target.Profile) {
		types = append(types, object.text("type"))
	}
	return types
}

// judge runs one case.
func (x *exam) judge(ctx context.Context, c kase) Outcome {
	began := time.Now()
	o := Outcome{CaseInfo: c.CaseInfo}
	if o.Verdict, o.Reason = Skipped, x.lacks(c); o.Reason == "" {
		var hint string
		o.Verdict, o.Seen, o.Reason, hint = x.try(ctx, c)
		if hint != "" {
			o.Fix = hint + " Else: " + o.Fix
		}
	}
	if o.Verdict == Broken && c.Strength != Must && !x.o.Strict {
		o.Verdict = Warned
	}
	o.Took = time.Since(began)
	return o
}

func (x *exam) lacks(c kase) string {
	if !x.ends.IsZero() && time.Now().After(x.ends) {
		return fmt.Sprintf("the budget of %s is used up", x.o.Budget)
	}
	for _, lacking := range c.needs {
		if reason := lacking(x); reason != "" {
			return reason
		}
	}
	return ""
}

// try runs a case with a node of its own. The hint is what may be wrong other than the
// plugin.
func (x *exam) try(ctx context.Context, c kase) (verdict Verdict, seen, reason, hint string) {
	p, err := x.probe(ctx, fmt.Sprintf("%03d", x.count.Add(1)))
	if err != nil {
		return FailedToRun, "", err.Error(), ""
	}
	defer p.close()
	p.id = c.ID()
	defer func() {
		switch end := recover().(type) {
		case nil:
		case ending:
			verdict, reason = end.verdict, end.reason
		default:
			panic(end)
		}
		if len(p.faults) > 0 {
			verdict, seen, reason, hint = Broken, strings.Join(p.faults, "\n"), "", p.hint
		}
		if ctx.Err() != nil && verdict == Broken {
			verdict, seen, reason = FailedToRun, "", context.Cause(ctx).Error()
		}
	}()
	c.run(p)
	return Kept, "", "", ""
}

// ending is how a case ends before its last line. As an error it waits for the goroutine
// of the case.
type ending struct {
	verdict Verdict
	reason  string
}

func (e ending) Error() string { return e.reason }
