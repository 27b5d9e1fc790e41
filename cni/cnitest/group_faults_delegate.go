package cnitest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni"
)

func delegateFaults() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "delegate-missing", Rows: []int{38, 39, 160}, Strength: Should,
				About: "ADD without the executable of its delegate fails with an error that names it, and leaves nothing.",
				Fix:   "report which delegate was not found in which directories, and take back what was done before it was looked for",
			},
			needs: []need{aDelegate, aProcess},
			run:   delegateMissing,
		},
		{
			CaseInfo: CaseInfo{
				Name: "delegate-slow", Rows: []int{154}, Strength: Should,
				About: "ADD waits for a delegate that takes two seconds.",
				Fix:   "leave it to the runtime how long ADD may take, or give delegates more time",
			},
			needs: []need{aDelegate, aProcess},
			run:   delegateSlow,
		},
		{
			CaseInfo: CaseInfo{
				Name: "delegate-noisy", Rows: []int{29, 30, 38}, Strength: Must,
				About: "What a delegate prints on standard output beside its result does not come out of the plugin.",
				Fix:   "capture standard output of delegates, also in DEL, and print nothing on it but the plugin's own result or error",
			},
			needs: []need{aDelegate, aProcess},
			run:   delegateNoisy,
		},
		{
			CaseInfo: CaseInfo{
				Name: "delegate-fails-late", Rows: []int{165}, Strength: Should,
				About: "When the delegate fails after it has reserved an address, ADD fails, and leaves nothing.",
				Fix:   "call the delegate's DEL when its ADD fails, before the failure is returned, and take back the rest",
			},
			needs: []need{aDelegate, aProcess},
			run:   func(p *probe) { p.delegateEnds("reserves an address and then fails", "exit 1") },
		},
		{
			CaseInfo: CaseInfo{
				Name: "delegate-killed", Rows: []int{165}, Strength: Should,
				About: "When the delegate is killed after it has reserved an address, ADD fails, and leaves nothing.",
				Fix:   "take a delegate that a signal ends for one that failed: call its DEL, and take back the rest",
			},
			needs: []need{aDelegate, aProcess},
			run:   func(p *probe) { p.delegateEnds("reserves an address and is then killed", "kill -KILL $$") },
		},
		{
			CaseInfo: CaseInfo{
				Name: "delegate-hangs", Rows: []int{49, 53, 112}, Strength: Should,
				About: "When the delegate hangs after it has reserved an address, and the runtime kills both, DEL leaves nothing.",
				Fix:   "have DEL find what is left by container ID and interface name; make sure that a delegate ends with the plugin (PR_SET_PDEATHSIG)",
			},
			needs: []need{aDelegate, aProcess},
			run:   delegateHangs,
		},
	}
}

// wrapped puts a script in the place of the first delegate, under its name; ADD runs the
// real one and then the lines. All other commands are the real one's. The case is skipped
// if the plugin does not run it.
func (p *probe) wrapped(after string) {
	delegate := p.delegates()[0]
	executable, err := find(delegate, p.target.Path)
	if err != nil {
		p.skip("needs the delegate as an executable: %v", err)
	}
	if strings.Contains(executable+p.home, "'") {
		p.skip("needs paths without a quote, not %s and %s", executable, p.home)
	}
	dir, mark := p.directory("wrapped"), filepath.Join(p.home, "wrapped-ran")
	wrap := func(after string) {
		text := "#!/bin/sh\n[ \"$CNI_COMMAND\" = ADD ] || exec '" + executable + "'\n" +
			": >'" + mark + "'\nout=$('" + executable + "') || { echo \"$out\"; exit 1; }\n" + after + "\n"
		p.can(os.WriteFile(filepath.Join(dir, delegate), []byte(text), 0o755)) //nolint:gosec // an executable
	}
	wrap(`echo "$out"`)
	p.path = append([]string{dir}, p.target.Path...)
	p.needed(p.del(p.attached()))
	if _, err := os.Stat(mark); err != nil {
		p.skip("needs a plugin that runs %s where CNI_PATH has it; this one does not", delegate)
	}
	wrap(after)
}

// runUntil runs ADD and ends it when a file appears. It is late if it was ended.
func (p *probe) runUntil(a *attachment, file string) (got reply) {
	ctx, cancel := context.WithTimeout(p.ctx, p.o.Timeout)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			if _, err := os.Stat(file); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	p.can(p.execute(ctx, p.request(cni.CommandAdd, a), &got))
	got.late = ctx.Err() != nil
	cancel()
	<-watched
	return got
}

func delegateMissing(p *probe) {
	bystander := p.attached()
	p.nowhere()
	a := p.container()
	before := p.look(bystander, a)
	got := p.add(a)
	if wrong := unclear(got); wrong != "" {
		p.fault("the delegate is missing, and ADD: %s", wrong)
	} else if name := p.delegates()[0]; !strings.Contains(got.complaint(), name) {
		p.fault("the delegate is missing, and the error of ADD does not name %s: %s", name, got)
	}
	p.path = p.target.Path
	p.nothingLeft("the delegate is missing, and ADD failed", before, a, bystander, a)
}

func delegateSlow(p *probe) {
	p.delegated(nil)
	p.script(map[cni.Command]Reply{cni.CommandAdd: {
		Stdout: delegateResult(p.version, delegateAddress, delegateGateway, nil), Delay: 2 * time.Second,
	}})
	got := p.add(p.container())
	shows := p.target.Profile != ProfileChained // what a chained plugin does with it is its own affair
	if !got.succeeded() || shows && !strings.Contains(string(got.stdout), strings.SplitN(delegateAddress, "/", 2)[0]) {
		p.broken("the delegate takes two seconds, and ADD: %s", got)
	}
}

func delegateNoisy(p *probe) {
	const noise = "this is a log line"
	p.delegated(nil)
	result := delegateResult(p.version, delegateAddress, delegateGateway, nil)
	p.script(map[cni.Command]Reply{
		cni.CommandAdd: {Stdout: noise + "\n" + result},
		cni.CommandDel: {Stdout: noise + "\n"},
	})
	a := p.container()
	got := p.add(a)
	if got.document() == nil || got.exit != 0 && unclear(got) != "" {
		p.fault("the delegate prints a line before its result, and ADD: %s", got)
	}
	if got := p.del(a); len(got.stdout) > 0 && got.document() == nil {
		p.fault("the delegate prints a line in DEL, and DEL: %s", got)
	}
}

// delegateEnds has the real delegate work, and then end badly.
func (p *probe) delegateEnds(what, how string) {
	bystander := p.attached()
	p.wrapped(how)
	a := p.container()
	before := p.look(bystander, a)
	got := p.add(a)
	if got.exit == 0 {
		p.broken("the delegate %s, and ADD: %s", what, got)
	}
	if wrong := unclear(got); wrong != "" {
		p.fault("the delegate %s, and ADD: %s", what, wrong)
	}
	p.nothingLeft("the delegate "+what+", and ADD failed", before, a, bystander, a)
}

func delegateHangs(p *probe) {
	bystander := p.attached()
	hanging := filepath.Join(p.home, "hanging")
	p.wrapped(": >'" + hanging + "'; exec sleep 30")
	a := p.container()
	before := p.look(bystander, a)
	if got := p.runUntil(a, hanging); !got.late {
		p.skip("needs a plugin that waits for its delegate: %s", got)
	}
	p.path = p.target.Path
	if got := p.del(a); !got.succeeded() {
		p.broken("the delegate hung, both were killed, and DEL: %s", got)
	}
	p.nothingLeftByDEL("the delegate hung, both were killed, and DEL succeeded", before, a, bystander, a)
}
