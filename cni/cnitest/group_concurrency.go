package cnitest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cnikit/cnikit/cni"
)

// crowd is how many containers are served at once.
const crowd = 12

func concurrencyCases() []kase {
	return inGroup(
		"concurrency",
		kase{
			CaseInfo: CaseInfo{
				Name: "add", Rows: []int{109, 110}, Strength: Must,
				About: "ADDs for different containers at once, the first on a node, all succeed, and no address is given twice.",
				Fix:   "lock what attachments share, files and address ranges, across processes; take EEXIST for a bridge, chain or directory that another call made meanwhile as success",
			},
			run: concurrencyAdd,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "del", Rows: []int{109, 110}, Strength: Must,
				About: "DELs for different containers at once all succeed, and nothing is left.",
				Fix:   "lock what attachments share; take what another call removed meanwhile as removed",
			},
			run: concurrencyDel,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "storm", Rows: []int{109, 110}, Strength: Must,
				About: "ADD, CHECK and DEL for many containers at once succeed, and nothing is left.",
				Fix:   "lock what attachments share while it is read and changed; let CHECK and DEL of one container not depend on what another one's ADD does meanwhile",
			},
			run: runStorm,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "del-of-one", Rows: []int{53, 57}, Strength: Should,
				About: "DELs of one attachment at once all succeed, and nothing is left.",
				Fix:   "take as removed what was there a moment ago and is gone when it is to be removed",
			},
			run: concurrencyDelOfOne,
		},
	)
}

// runAtOnce makes the calls at once and waits for all.
func (p *probe) runAtOnce(requests []*request) []reply {
	replies := make([]reply, len(requests))
	errs := make([]error, len(requests))
	var wait sync.WaitGroup
	for i, r := range requests {
		wait.Go(func() { replies[i], errs[i] = p.call(r) })
	}
	wait.Wait()
	for _, err := range errs {
		p.can(err)
	}
	return replies
}

// crowded makes containers and the requests to add them.
func (p *probe) crowded() ([]*attachment, []*request) {
	var all []*attachment
	var requests []*request
	for range crowd {
		a := p.container()
		all, requests = append(all, a), append(requests, p.request(cni.CommandAdd, a))
	}
	return all, requests
}

// each derives the same command for all.
func (p *probe) each(command cni.Command, all []*attachment) []*request {
	var requests []*request
	for _, a := range all {
		requests = append(requests, p.request(command, a))
	}
	return requests
}

// allSucceeded notes those that did not.
func (p *probe) allSucceeded(what string, replies []reply) {
	failed, first := 0, ""
	for _, got := range replies {
		if !got.succeeded() {
			failed++
			if first == "" {
				first = got.String()
			}
		}
	}
	if failed > 0 {
		p.fault("%d of %d %s at once fail, the first: %s", failed, len(replies), what, first)
	}
}

func concurrencyAdd(p *probe) {
	unique := ranged(p.exam) == "" // a configuration may name one address for all
	all, requests := p.crowded()
	replies := p.runAtOnce(requests)
	if slices.ContainsFunc(replies, func(r reply) bool { return !r.succeeded() }) {
		p.onAnother("single", func(q *probe) { q.attached() })
	}
	p.allSucceeded("ADDs", replies)
	owners := map[string]*attachment{}
	for i, a := range all {
		p.keep(a, replies[i])
		if a.parsed == nil || !unique {
			continue
		}
		for _, ip := range a.parsed.IPs {
			if owner := owners[ip.Address.String()]; owner != nil {
				p.fault("%s was given to %s and to %s", ip.Address, owner, a)
			}
			owners[ip.Address.String()] = a
		}
	}
}

func concurrencyDel(p *probe) {
	bystander := p.attached()
	all, requests := p.crowded()
	before := p.look(bystander)
	for i, r := range requests {
		got := p.do(r)
		p.needed(got)
		p.keep(all[i], got)
	}
	p.allSucceeded("DELs", p.runAtOnce(p.each(cni.CommandDel, all)))
	p.nothingLeftByDEL(fmt.Sprintf("after %d ADDs and DELs", crowd), before, all[0], bystander)
}

func runStorm(p *probe) {
	bystander := p.attached()
	checking := checks(p.exam) == "" && p.check(bystander).succeeded()
	p.can(p.worthwhile(reply{plugin: p.target.Plugin, command: string(cni.CommandDel)}))
	all, requests := p.crowded()
	before := p.look(bystander)
	errs := make([]string, crowd)
	var wait sync.WaitGroup
	for i, a := range all {
		wait.Go(func() { errs[i] = p.runLife(a, requests[i], checking) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != "" {
			p.fault("%d containers at once: %s", crowd, err)
			break
		}
	}
	p.nothingLeftByDEL(fmt.Sprintf("after ADD and DEL of %d containers at once", crowd), before, all[0], bystander)
}

// runLife takes one container through its life, as one of many goroutines. It says what
// failed.
func (p *probe) runLife(a *attachment, add *request, checking bool) string {
	got, err := p.call(add)
	if err != nil || !got.succeeded() {
		return trouble("ADD", got, err)
	}
	p.keep(a, got)
	commands := []cni.Command{cni.CommandCheck, cni.CommandDel}
	if !checking {
		commands = commands[1:]
	}
	for _, command := range commands {
		if got, err := p.call(p.request(command, a)); err != nil || !got.succeeded() {
			return trouble(string(command), got, err)
		}
	}
	return ""
}

func trouble(what string, got reply, err error) string {
	if err != nil {
		return what + ": " + err.Error()
	}
	return what + ": " + got.String()
}

func concurrencyDelOfOne(p *probe) {
	bystander := p.attached()
	a := p.container()
	p.prepare(a)
	before := p.look(bystander)
	p.needAdd(a)
	var requests []*request
	for range 4 {
		requests = append(requests, p.request(cni.CommandDel, a))
	}
	replies := p.runAtOnce(requests)
	if slices.ContainsFunc(replies, func(r reply) bool { return !r.succeeded() }) {
		p.needRepeatedDEL()
	}
	p.allSucceeded("DELs of one attachment", replies)
	p.nothingLeftByDEL("after DELs of one attachment at once", before, a, bystander)
}
