package cnitest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni"
)

const (
	// defaultKilling is how long one case may go on to kill. The moments come in a random
	// order, so that those that were reached are spread over all.
	defaultKilling = 10 * time.Second
	// timedKills is how many kills there are where they cannot be aimed.
	timedKills = 24
	// tracedTimeout is how much longer a call may take under ptrace.
	tracedTimeout = 3
)

// killedCall is a call that is killed: how its request comes about, and what must hold
// after the kill.
type killedCall struct {
	command cni.Command
	prepare func(q *probe, a *attachment)               // before the call
	after   func(q *probe, a *attachment, w was) string // what is wrong then, "" if nothing
}

// was is what an untroubled life of an attachment on a fresh node leaves, which a killed
// one may leave too: bridges, firewall chains, lock files, directories. By objectKey.
type was struct {
	before  State
	remains map[string]bool
	again   bool // ADD works again after it
}

var (
	killedAdd = killedCall{
		command: cni.CommandAdd,
		prepare: func(*probe, *attachment) {},
		after: func(q *probe, a *attachment, w was) string {
			if wrong := q.cleansUp(a, w); wrong != "" {
				return wrong
			}
			if got := q.add(a); !got.succeeded() && w.again {
				return fmt.Sprintf("another ADD fails after the DEL: %s", got)
			}
			if wrong := q.cleansUp(a, w); wrong != "" {
				return "another ADD, and then " + wrong
			}
			return ""
		},
	}
	killedDel = killedCall{
		command: cni.CommandDel,
		prepare: func(q *probe, a *attachment) { q.needAdd(a) },
		after:   func(q *probe, a *attachment, w was) string { return q.cleansUp(a, w) },
	}
)

// onAnother runs a part of a case on a node, and with directories, of its own. The
// faults that it notes are the case's.
func (p *probe) onAnother(name string, part func(q *probe)) {
	q, err := p.exam.probe(p.ctx, filepath.Base(p.home)+"-"+name)
	p.can(err)
	defer q.close()
	defer func() { p.faults = append(p.faults, q.faults...) }()
	q.id, q.path, q.config, q.random = p.id, p.path, p.config, p.random
	part(q)
}

// killEach kills the call at each moment, each time on a fresh node, and looks at what
// becomes of it.
func (p *probe) killEach(c killedCall) {
	plan := p.rehearse(c)
	p.random.Shuffle(len(plan.moments), func(i, k int) { plan.moments[i], plan.moments[k] = plan.moments[k], plan.moments[i] })
	chosen := plan.moments
	if p.o.Kills > 0 {
		chosen = chosen[:min(p.o.Kills, len(chosen))]
	}
	var wrong []finding
	deadline, tried := time.Now().Add(p.killing), 0
	for _, m := range chosen {
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			break
		}
		tried++
		p.onAnother(fmt.Sprint(tried), func(q *probe) {
			if f := q.killAt(c, plan, m); f.what != "" {
				wrong = append(wrong, f)
			}
		})
	}
	if tried < len(chosen) {
		p.note("%s was killed at %d of %d moments, chosen by the seed: the time for it was over", c.command, tried, len(plan.moments))
	}
	p.report(wrong, tried)
}

// killPlan says when a call can be killed.
type killPlan struct {
	aimed   bool
	changes int
	moments []killMoment
	was     was
}

// killMoment is a point in a call, or a time since its start.
type killMoment struct {
	moment
	delay time.Duration
}

// finding is what came of one kill.
type finding struct {
	order int
	when  string
	what  string
	like  string // what, as far as it is the same each time
}

// rehearse makes the call without killing it, to learn at what moments it can be killed
// and what remains of an attachment in any case.
func (p *probe) rehearse(c killedCall) (plan killPlan) {
	p.onAnother("rehearsal", func(q *probe) {
		a := q.container()
		q.request(cni.CommandAdd, a) // runs the plugins before
		before := q.look(a)
		c.prepare(q, a)
		done, err := q.trace(q.request(c.command, a), moment{})
		if errors.Is(err, errors.ErrUnsupported) {
			p.note("ptrace is refused here (%v): plugins were killed at times chosen by the seed, not at each change that they make", err)
			plan.moments = q.times(c, a)
		} else if errors.Is(err, context.DeadlineExceeded) && p.ctx.Err() == nil {
			p.skip("needs %s to work under ptrace, and it gave no answer within %s", c.command, tracedTimeout*p.o.Timeout)
		} else {
			p.can(err)
			if done.exit != 0 {
				p.skip("needs %s to work under ptrace, and it failed: exit status %d, stdout %s", c.command, done.exit, shortened(string(done.stdout)))
			}
			plan.aimed, plan.changes = true, len(done.changes)
			plan.moments = moments(len(done.changes))
		}

		if c.command == cni.CommandAdd && done != nil {
			q.keep(a, reply{stdout: done.stdout})
		}
		q.del(a)
		plan.was.remains = q.remains(a, before)
		plan.was.again = q.add(a).succeeded()
	})
	return plan
}

// remains lists what there is that was not before, when the kernel has done its part.
func (p *probe) remains(a *attachment, before State) map[string]bool {
	now := p.look(a)
	p.await(func() string {
		time.Sleep(20 * time.Millisecond)
		last := now
		now = p.look(a)
		return last.Diff(now)
	})
	remains := map[string]bool{}
	for line := range strings.Lines(before.Diff(now)) {
		remains[p.objectKey(line)] = true
	}
	return remains
}

// moments lists all that a call with n changes has.
func moments(n int) (all []killMoment) {
	for number := range n {
		all = append(all, killMoment{moment: moment{number: number + 1}})
	}
	if n > 0 {
		all = append(all, killMoment{moment: moment{number: n, after: true}})
	}
	return all
}

// times are random ones in the course of the call, which is made to see how long it takes.
func (p *probe) times(c killedCall, a *attachment) (all []killMoment) {
	took := p.do(p.request(c.command, a)).took
	for range timedKills {
		all = append(all, killMoment{delay: time.Duration(p.random.Int64N(int64(took) + 1))})
	}
	return all
}

// killAt makes the call, kills it, and looks at what comes of it.
func (p *probe) killAt(c killedCall, plan killPlan, m killMoment) finding {
	a := p.container()
	p.request(cni.CommandAdd, a) // runs the plugins before
	w := plan.was
	w.before = p.look(a)
	c.prepare(p, a)
	f := p.kill(p.request(c.command, a), plan, m)
	f.what = c.after(p, a, w)
	return f
}

// kill makes a call that ends at the moment, and says when that was.
func (p *probe) kill(r *request, plan killPlan, m killMoment) finding {
	if !plan.aimed {
		ctx, cancel := context.WithTimeout(p.ctx, m.delay)
		defer cancel()
		var got reply
		p.can(p.execute(ctx, r, &got))
		return finding{order: int(m.delay), when: fmt.Sprintf("killed %s after its start", m.delay.Round(10*time.Microsecond))}
	}
	done, err := p.trace(r, m.moment)
	p.can(err)
	if !done.killed {
		return finding{order: m.number, when: "killed at its end"}
	}
	side := "before"
	if m.after {
		side = "after"
	}
	last := done.changes[len(done.changes)-1]
	what := strings.ReplaceAll(last.String(), p.stateDir(), Placeholder)
	return finding{order: m.number, when: fmt.Sprintf("killed %s %s (change %d of %d)", side, what, m.number, max(plan.changes, m.number))}
}

// trace makes a call under ptrace.
func (p *probe) trace(r *request, at moment) (*traced, error) {
	ctx, cancel := context.WithTimeout(p.ctx, tracedTimeout*p.o.Timeout)
	defer cancel()
	if err := p.worthwhile(reply{plugin: r.plugin, command: r.env["CNI_COMMAND"]}); err != nil {
		return nil, err
	}
	path, err := p.executable(r)
	if err != nil {
		return nil, err
	}
	return traceOn(ctx, p.inNode, command{path: path, env: p.environ(r), stdin: r.input()}, at)
}

// cleansUp has DEL, and GC if that is not enough, remove the attachment, and says what
// is wrong then, "" if nothing.
func (p *probe) cleansUp(a *attachment, w was) string {
	if got := p.del(a); !got.succeeded() {
		return fmt.Sprintf("DEL fails: %s", got)
	}
	a.result, a.parsed = nil, nil
	by := "DEL"
	left := p.await(func() string { return p.left(a, w) })
	if left != "" && p.version >= "1.1.0" {
		by = "DEL and GC"
		p.gc()
		left = p.await(func() string { return p.left(a, w) })
	}
	if left == "" {
		return ""
	}
	return fmt.Sprintf("after %s there is left (+), or is gone (-):\n%s", by, excerpt(left))
}

// left lists what is there that was not before, and does not remain in any case.
func (p *probe) left(a *attachment, w was) string {
	var lines []string
	for line := range strings.Lines(w.before.Diff(p.look(a))) {
		if line = strings.TrimSpace(line); !w.remains[p.objectKey(line)] {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// objectKey identifies what a line of a difference is about on all nodes alike: a link
// or a file by its name whatever it is like, and nothing by a MAC address, nor by the
// address that the container happened to get.
func (p *probe) objectKey(line string) string {
	fields := strings.Fields(strings.ReplaceAll(line, p.stateDir(), Placeholder))
	inContainer := strings.Contains(line, " container-")
	for i, field := range fields {
		if inContainer && isAddress(field) {
			fields[i] = "ADDRESS"
		}
		if i+1 < len(fields) && (field == "link" || field == "file") {
			return strings.Join(fields[:i+2], " ")
		}
		if strings.Count(field, ":") == 5 && len(field) == 17 {
			fields[i] = "MAC"
		}
	}
	return strings.Join(fields, " ")
}

// isAddress reports whether a word is an IP address, or one with the length of a prefix.
func isAddress(word string) bool {
	address, _, _ := strings.Cut(word, "/")
	_, err := netip.ParseAddr(address)
	return err == nil
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// report notes what was found, in the order in which a call passes the moments; what is
// the same at several is told once.
func (p *probe) report(wrong []finding, tried int) {
	const most = 4
	slices.SortFunc(wrong, func(a, b finding) int { return a.order - b.order })
	var told []finding
	times := map[string]int{}
	random := regexp.MustCompile("veth[0-9a-z]+|[0-9a-f]{8,}") // in names that are made up anew each time
	for i := range wrong {
		wrong[i].like = random.ReplaceAllString(wrong[i].what, "")
		if times[wrong[i].like]++; times[wrong[i].like] == 1 {
			told = append(told, wrong[i])
		}
	}
	for i, f := range told {
		if i == most {
			p.fault("and more; %d of %d kills were not cleaned up after", len(wrong), tried)
			return
		}
		if n := times[f.like]; n > 1 {
			f.when += ", and likewise at " + plural(n-1, "more moment")
		}
		p.fault("%s: %s", f.when, f.what)
	}
}
