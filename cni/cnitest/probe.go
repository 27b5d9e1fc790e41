package cnitest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
)

// probe is what a case works with: a network namespace that plays the node, a fresh
// directory, and the plugin.
type probe struct {
	*exam
	id     string          // of the case
	ctx    context.Context //nolint:containedctx // a probe lives as long as one case
	node   *Namespace
	home   string   // the directory of this case
	path   []string // CNI_PATH
	config document // of the plugin, as written; the placeholder is replaced when a request is made
	random *rand.Rand
	faults []string
	hint   string  // the first part of the fix, before that of the case
	mounts *mounts // nil: those of this process

	attachments []*attachment
	foreruns    int
	open        []*Namespace
}

func (x *exam) probe(ctx context.Context, name string) (*probe, error) {
	p := &probe{
		exam: x, ctx: ctx, home: filepath.Join(x.dir, name), path: x.target.Path,
		config: x.net.plugin().clone(),
		random: rand.New(rand.NewPCG(x.seed, 0)),
	}
	if err := os.MkdirAll(p.stateDir(), 0o755); err != nil {
		return nil, err
	}
	var err error
	if p.node, err = NewNamespace(); err != nil {
		return nil, err
	}
	if err := addUplink(p.node); err != nil {
		p.close()
		return nil, err
	}
	if m, err := newMounts(p.node, func() error { return nil }); err == nil {
		p.mounts = m
	}
	return p, nil
}

// close gives everything back. What the plugin left in the namespaces goes with them:
// processes too, which would keep them, and go on when the examination is over.
func (p *probe) close() {
	for _, n := range append(p.open, p.node) {
		p.endIn(n)
		_ = n.Close()
	}
	if p.mounts != nil {
		p.mounts.close()
	}
	if err := removeTree(p.home); err != nil {
		p.note("a directory of a case is left: %v", err)
	}
}

// endIn ends the processes that a plugin left in a namespace.
func (p *probe) endIn(n *Namespace) {
	if _, err := n.EndProcesses(0); err != nil && !errors.Is(err, os.ErrClosed) {
		p.note("a process that a plugin left could not be ended: %v", err)
	}
}

// stateDir is what replaces the placeholder.
func (p *probe) stateDir() string { return filepath.Join(p.home, "state") }

// dirs are the directories in which the plugin keeps state.
func (p *probe) dirs() []string { return append([]string{p.stateDir()}, p.target.Dirs...) }

// fault notes that the rule of the case is broken, and goes on.
func (p *probe) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// broken notes that the rule of the case is broken, and ends the case.
func (p *probe) broken(format string, args ...any) {
	p.fault(format, args...)
	panic(ending{})
}

// skip ends the case because it does not apply, or because something that other cases
// look at does not work.
func (p *probe) skip(format string, args ...any) {
	panic(ending{Skipped, fmt.Sprintf(format, args...)})
}

// can ends the case if the kit failed, or as the error says.
func (p *probe) can(err error) {
	var end ending
	if errors.As(err, &end) {
		panic(end)
	}
	if err != nil {
		panic(ending{FailedToRun, err.Error()})
	}
}

// attachment is one interface of one container.
type attachment struct {
	id, ifname string
	version    string
	ns         *Namespace
	netns      string // CNI_NETNS, a link to the namespace
	prepared   bool   // the plugins before the one under test have run
	previous   document
	result     document    // of the last ADD that succeeded
	parsed     *cni.Result // the same
	args       cni.Args

	early     State    // a look from before the plugins before the one under test ran
	unread    error    // why parsed is nil after an ADD that succeeded
	mentioned []string // files that name the container because of them
}

func (a *attachment) String() string { return a.id[:12] + "/" + a.ifname }

// container makes a fresh namespace and an attachment to be.
func (p *probe) container() *attachment {
	ns, err := netns.New()
	p.can(err)
	n := &Namespace{name: fmt.Sprintf("container-%d", len(p.attachments)), ns: ns}
	p.open = append(p.open, n)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", p.home, len(p.attachments)))
	a := &attachment{
		id: fmt.Sprintf("%x", sum), ifname: firstIfName, version: p.version, ns: n,
		netns: filepath.Join(p.home, n.name), args: p.target.Args,
	}
	p.can(os.Symlink(n.Path(), a.netns))
	p.attachments = append(p.attachments, a)
	return a
}

// second is another interface of the same container.
func (p *probe) second(of *attachment) *attachment {
	a := *of
	a.ifname, a.prepared, a.previous, a.result, a.parsed = "eth1", false, nil, nil, nil
	p.attachments = append(p.attachments, &a)
	return &a
}

// vanish makes the namespace of the container go away, as a reboot or the end of its
// last process does. The kernel takes its time; what was connected to it on the node is
// gone when vanish returns.
func (p *probe) vanish(a *attachment) {
	var ends []int // the node's ends of veth pairs
	err := a.ns.withConn(func(c *nl.Conn) error {
		links, err := c.Links()
		for _, link := range links {
			if link.Type() == "veth" {
				ends = append(ends, link.Attrs().ParentIndex)
			}
		}
		return err
	})
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	p.can(err)
	p.endIn(a.ns)
	if err := a.ns.Close(); !errors.Is(err, os.ErrClosed) {
		p.can(err)
	}
	p.can(os.Remove(a.netns))
	p.can(p.node.withConn(func(c *nl.Conn) error {
		there := func(index int) bool { _, err := c.LinkByIndex(index); return err == nil }
		for deadline := time.Now().Add(vanishing); slices.ContainsFunc(ends, there); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				return fmt.Errorf("the namespace of a container is not gone after %s; see what holds it, a mount or a process", vanishing)
			}
		}
		return nil
	}))
}

// vanishing is how long the kernel may take to remove a namespace. One thread of it
// removes those of the whole machine.
const vanishing = 30 * time.Second

// add runs ADD, after the plugins before the one under test.
func (p *probe) add(a *attachment) reply {
	r := p.do(p.request(cni.CommandAdd, a))
	p.keep(a, r)
	return r
}

// keep makes a result that of the attachment, if it is one.
func (p *probe) keep(a *attachment, r reply) {
	if !r.succeeded() {
		return
	}
	doc, err := parseDocument(r.stdout)
	if err == nil {
		a.parsed, err = cni.ParseResult(r.stdout, a.version)
	}
	if a.unread = err; err == nil {
		a.result = doc
	}
}

// attached is a fresh container that the plugin attached; the case is skipped when that
// fails.
func (p *probe) attached() *attachment {
	a := p.container()
	p.needAdd(a)
	return a
}

// expected takes note of whether a call got an answer that must get one.
func (p *probe) expected(r reply) reply {
	if p.ctx.Err() == nil {
		p.hangs.saw(r)
	}
	return r
}

// needAdd runs ADD for a case that looks at something else.
func (p *probe) needAdd(a *attachment) {
	got := p.add(a)
	p.wanting(got)
	p.needed(got)
	if a.parsed == nil {
		p.skip("needs an ADD with a result that can be read; see protocol/result and results: %v", a.unread)
	}
}

// answered skips the case when there is no answer to a call that the case does not look
// at: that is neither success nor failure. A plugin that suddenly hangs was not examined in
// full.
func (p *probe) answered(r reply) reply {
	p.expected(r)
	if r.late && p.hangs.hanging(r.what()) {
		panic(p.hung(r))
	}
	if r.late {
		p.skip("needs %s to work, and it failed: %s", r.what(), r)
	}
	return r
}

// needed skips the case when a call failed that the case does not look at.
func (p *probe) needed(r reply) {
	if !p.answered(r).succeeded() {
		p.skip("needs %s to work, and it failed: %s", r.what(), r)
	}
}

func (p *probe) del(a *attachment) reply   { return p.do(p.request(cni.CommandDel, a)) }
func (p *probe) check(a *attachment) reply { return p.do(p.request(cni.CommandCheck, a)) }
func (p *probe) status() reply             { return p.do(p.request(cni.CommandStatus, nil)) }

// gc runs GC with the list of valid attachments.
func (p *probe) gc(valid ...*attachment) reply { return p.do(p.gcRequest(valid...)) }

// file makes a file outside the plugin's directories and returns its path.
func (p *probe) file(name, content string) string {
	path := filepath.Join(p.home, name)
	p.can(os.WriteFile(path, []byte(content), 0o600))
	return path
}

// directory makes a directory outside the plugin's own and returns its path.
func (p *probe) directory(name string) string {
	path := filepath.Join(p.home, name)
	p.can(os.MkdirAll(path, 0o755))
	return path
}

// inside calls fn with a route-netlink connection in a container.
func (p *probe) inside(a *attachment, fn func(*nl.Conn) error) { p.can(a.ns.withConn(fn)) }
