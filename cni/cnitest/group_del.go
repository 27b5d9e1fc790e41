package cnitest

import (
	"strings"
)

func delCases() []kase {
	return inGroup("del", append(delPlain(), delWithout()...)...)
}

func delPlain() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "succeeds", Rows: []int{38, 49}, Strength: Must,
				About: "DEL of an attachment exits with 0 and prints nothing.",
				Fix:   "exit with 0, and print nothing on standard output, when everything is removed",
			},
			run: delSucceeds,
		},
		{
			CaseInfo: CaseInfo{
				Name: "leaves-nothing", Rows: []int{49}, Strength: Should,
				About: "DEL removes all that its ADD made, and nothing else.",
				Fix:   "undo each step of ADD in DEL: interfaces, addresses, routes, rules, firewall rules and files; keep away from what other attachments use",
			},
			run: delLeavesNothing,
		},
		{
			CaseInfo: CaseInfo{
				Name: "repeated", Rows: []int{57}, Strength: Must,
				About: "A second DEL of an attachment succeeds.",
				Fix:   "treat what is gone already as removed: an interface, file or rule that is not found is no error of DEL",
			},
			run: delRepeated,
		},
		{
			CaseInfo: CaseInfo{
				Name: "never-added", Rows: []int{53, 57}, Strength: Must,
				About: "DEL of an attachment that never was succeeds.",
				Fix:   "treat an attachment without any state as removed: a runtime sends DEL also when it is not sure that there was an ADD",
			},
			run: delNeverAdded,
		},
		{
			CaseInfo: CaseInfo{
				Name: "one-of-two", Rows: []int{49, 117}, Strength: Must,
				About: "DEL of one interface of a container leaves the other alone.",
				Fix:   "key what belongs to an attachment by CNI_CONTAINERID and CNI_IFNAME together, never by the container alone",
			},
			run: delOneOfTwo,
		},
	}
}

func delWithout() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "no-namespace", Rows: []int{53, 59}, Strength: Must,
				About: "DEL without CNI_NETNS succeeds, when the namespace is gone with all in it.",
				Fix:   "do not demand CNI_NETNS in DEL: an empty or absent one says that the namespace, and what was in it, is gone",
			},
			run: delNoNamespace,
		},
		{
			CaseInfo: CaseInfo{
				Name: "no-namespace-leaves-nothing", Rows: []int{54, 56}, Strength: Should,
				About: "DEL without CNI_NETNS removes what the ADD made outside of the namespace.",
				Fix:   "find what is on the host, such as firewall rules, routes and reserved addresses, by container ID and interface name or by prevResult, not by looking into the namespace",
			},
			run: delNoNamespaceLeavesNothing,
		},
		{
			CaseInfo: CaseInfo{
				Name: "masquerade", Rows: []int{20, 56}, Strength: Should,
				About: "DEL without CNI_NETNS removes the rules that ipMasq added.",
				Fix:   "name or comment masquerade rules so that DEL finds them by container ID and interface name, or take the addresses from prevResult, and tear them down before or without looking into the namespace",
			},
			profiles: []Profile{ProfileInterface},
			run:      delMasquerade,
		},
		{
			CaseInfo: CaseInfo{
				Name: "no-previous-result", Rows: []int{52, 53}, Strength: Should,
				About: "DEL without prevResult succeeds.",
				Fix:   "take prevResult as a help in DEL that may be missing: after an ADD that failed there is none",
			},
			run: delNoPreviousResult,
		},
		{
			CaseInfo: CaseInfo{
				Name: "optional-variables", Rows: []int{59}, Strength: Must,
				About: "DEL works when CNI_ARGS and CNI_PATH are absent.",
				Fix:   "do not demand CNI_ARGS or CNI_PATH; look at CNI_PATH when a delegate has to be found, and not before",
			},
			run: delOptional,
		},
	}
}

func delSucceeds(p *probe) {
	a := p.attached()
	got := p.expected(p.del(a))
	switch {
	case !got.succeeded():
		p.fault("DEL: %s", got)
	case len(strings.TrimSpace(string(got.stdout))) > 0:
		p.fault("DEL prints: %s", got)
	}
}

// usual is a look at a node on which the plugin works for somebody else already, so that
// what all attachments share is there.
func (p *probe) usual(a *attachment) (bystander *attachment, before State) {
	bystander = p.attached()
	p.prepare(a)
	return bystander, p.look(bystander, a)
}

func delLeavesNothing(p *probe) {
	for _, left := range p.oneLife() {
		p.fault("after ADD and DEL: %s", left)
	}
}

// oneLife adds and deletes a container, and says what is left of it.
func (p *probe) oneLife() []string {
	a := p.container()
	bystander, before := p.usual(a)
	p.needAdd(a)
	p.needed(p.del(a))
	return p.leftovers(before, a, bystander, a)
}

func delRepeated(p *probe) {
	a := p.attached()
	p.needed(p.del(a))
	if got := p.del(a); !got.succeeded() {
		p.broken("the second DEL: %s", got)
	}
}

// needRepeatedDEL skips a case that found that a DEL fails which is not the first, for a
// plugin of which every second DEL does. What else the case found counts.
func (p *probe) needRepeatedDEL() {
	p.onAnother("repeated", func(q *probe) {
		a := q.attached()
		q.needed(q.del(a))
		if got := q.del(a); !got.succeeded() {
			q.skip("needs a second DEL of an attachment to work; see del/repeated")
		}
	})
}

func delNeverAdded(p *probe) {
	a := p.container()
	r := p.request("DEL", a)
	delete(r.config, "prevResult")
	if got := p.do(r); !got.succeeded() {
		p.broken("DEL without an ADD before: %s", got)
	}
}

func delOneOfTwo(p *probe) {
	delete(p.config.object("ipam"), "routes") // a container has one default route
	delete(p.config, "isDefaultGateway")
	first := p.attached()
	before := p.look(first)
	second := p.second(first)
	if got := p.add(second); !got.succeeded() {
		p.skip("needs a second interface in the same container, and its ADD failed: %s", got)
	}
	if got := p.del(second); !got.succeeded() {
		p.broken("DEL of the second interface, while the first is there: %s", got)
	}
	if gone := p.await(func() string { return p.gone(before, first) }); gone != "" {
		p.broken("DEL of the second interface of a container takes away from the first:\n%s", excerpt(gone))
	}
}

// delGone is a DEL after the namespace went.
func (p *probe) delGone(a *attachment) reply {
	r := p.request("DEL", a)
	delete(r.env, "CNI_NETNS")
	p.vanish(a)
	return p.do(r)
}

func delNoNamespace(p *probe) {
	a := p.attached()
	if got := p.delGone(a); !got.succeeded() {
		p.broken("DEL without CNI_NETNS: %s", got)
	}
}

func delNoNamespaceLeavesNothing(p *probe) {
	delete(p.config, "ipMasq") // has a case of its own
	a := p.container()
	bystander, before := p.usualOutside(a)
	p.needAdd(a)
	p.needed(p.delGone(a))
	p.nothingLeft("after ADD and a DEL without namespace", before, a, bystander)
}

// usualOutside is usual without the container of a, which is about to vanish, and with it
// some of what the plugins before the one under test made.
func (p *probe) usualOutside(a *attachment) (bystander *attachment, before State) {
	bystander = p.attached()
	a.early = p.look(bystander)
	p.prepare(a)
	return bystander, p.look(bystander)
}

func delMasquerade(p *probe) {
	p.config["ipMasq"] = true
	a := p.container()
	bystander, before := p.usualOutside(a)
	if got := p.add(a); !got.succeeded() {
		p.skip("the plugin does not attach with ipMasq: %s", got)
	}
	if !strings.Contains(before.Diff(p.look(bystander)), "+ node: nft ") {
		p.skip("ADD with ipMasq adds no rule that nf_tables shows")
	}
	p.needed(p.delGone(a))
	left := p.await(func() string {
		now := p.look(bystander)
		return onlyRules(common(before.Diff(now), a.early.Diff(now)))
	})
	if left != "" {
		p.broken("after ADD with ipMasq and a DEL without namespace, these are left:\n%s", excerpt(left))
	}
}

// onlyRules is what a difference says about nftables.
func onlyRules(diff string) string {
	var lines []string
	for line := range strings.Lines(diff) {
		if strings.Contains(line, ": nft ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

func delNoPreviousResult(p *probe) {
	a := p.attached()
	r := p.request("DEL", a)
	delete(r.config, "prevResult")
	if got := p.do(r); !got.succeeded() {
		p.broken("DEL without prevResult: %s", got)
	}
}

func delOptional(p *probe) {
	variables := []string{"CNI_ARGS", "CNI_PATH"}
	if len(p.delegates()) > 0 {
		p.alone()
	}
	for _, variable := range variables {
		a := p.attached()
		r := p.request("DEL", a)
		delete(r.env, variable)
		if got := p.do(r); !got.succeeded() {
			p.fault("DEL without %s: %s", variable, got)
		}
	}
}
