package cnitest

import "strings"

func gcCases() []kase {
	cases := inGroup("gc", append(gcCalls(), gcStale()...)...)
	for i := range cases {
		cases[i].needs = append([]need{newCommands}, cases[i].needs...)
	}
	return cases
}

func gcCalls() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "succeeds", Rows: []int{97, 103}, Strength: Should,
				About: "GC, with CNI_COMMAND and CNI_PATH alone, succeeds when there is nothing to remove.",
				Fix:   "exit with 0 in GC also when the plugin keeps no state, has none yet, or finds nothing stale; do not demand the variables of an attachment",
			},
			run: gcSucceeds,
		},
		{
			CaseInfo: CaseInfo{
				Name: "silent", Rows: []int{104}, Strength: Must,
				About: "GC that succeeds prints nothing on standard output.",
				Fix:   "print nothing on standard output for GC: there is no result; logs go to standard error",
			},
			run: gcSilent,
		},
	}
}

func gcStale() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "keeps-valid", Rows: []int{102}, Strength: Must,
				About: "GC touches nothing that belongs to a listed attachment.",
				Fix:   "compare container ID and interface name with the list under both of its keys, cni.dev/valid-attachments and cni.dev/attachments, before anything is removed",
			},
			run: gcKeepsValid,
		},
		{
			CaseInfo: CaseInfo{
				Name: "tag-key", Rows: []int{101, 102}, Strength: Should,
				About: `GC takes the list also from the key "cni.dev/attachments" alone, as the text of version 1.1.0 names it.`,
				Fix:   `read "cni.dev/attachments" as well as "cni.dev/valid-attachments", and join them: to miss a list is to take every attachment for stale`,
			},
			run: gcTagKey,
		},
		{
			CaseInfo: CaseInfo{
				Name: "removes-stale", Rows: []int{95, 96}, Strength: Should,
				About: "GC removes what is on the host of attachments that are not listed and whose namespace is gone.",
				Fix:   "go through what the plugin keeps by attachment in GC (reserved addresses, interfaces, rules, files), and remove what is not in the list",
			},
			run: gcRemovesStale,
		},
		{
			CaseInfo: CaseInfo{
				Name: "frees-addresses", Rows: []int{95, 99}, Strength: Should,
				About: "After GC, the addresses of attachments that are not listed can be given out again.",
				Fix:   "release the reservations of attachments that are not in the list; a plugin that delegates IPAM calls GC of the delegate, with the same configuration",
			},
			needs: []need{ranged},
			run:   gcFreesAddresses,
		},
		{
			CaseInfo: CaseInfo{
				Name: "empty-list", Rows: []int{102}, Strength: Should,
				About: "GC with an empty list takes all attachments for stale.",
				Fix:   "take [] for a list without entries, not for a list that is missing",
			},
			needs: []need{ranged},
			run:   gcEmptyList,
		},
	}
}

func gcSucceeds(p *probe) {
	if got := p.expected(p.gc()); !got.succeeded() {
		p.fault("GC on a fresh node: %s", got)
	}
	a := p.attached()
	if got := p.gc(a); !got.succeeded() {
		p.fault("GC with the only attachment in the list: %s", got)
	}
}

func gcSilent(p *probe) {
	p.attached() // is stale
	got := p.gc(p.attached())
	p.needed(got)
	if strings.TrimSpace(string(got.stdout)) != "" {
		p.broken("GC: %s", got)
	}
}

func gcKeepsValid(p *probe) {
	a, b := p.attached(), p.attached()
	before := p.look(a, b)
	if got := p.gc(a, b); !got.succeeded() {
		p.skip("needs GC to work; see gc/succeeds: %s", got)
	}
	if diff := p.settled(before, a, b); diff != "" {
		p.broken("GC with all attachments in the list changes (- removes):\n%s", excerpt(diff))
	}
	p.needed(p.gc(b)) // a is stale, b must not notice
	if diff := p.settledInside(before, b); diff != "" {
		p.broken("GC with one of two attachments in the list takes from the listed one:\n%s", excerpt(diff))
	}
	if got := p.check(b); b.version >= "0.4.0" && !got.succeeded() && p.check(p.attached()).succeeded() {
		p.broken("after GC with one of two attachments in the list, CHECK of the listed one: %s", got)
	}
}

// settledInside compares what the container holds.
func (p *probe) settledInside(before State, a *attachment) string {
	return p.await(func() string {
		var diff []string
		for line := range strings.Lines(before.Diff(p.look(a))) {
			if strings.Contains(line, " "+a.ns.name+": ") {
				diff = append(diff, strings.TrimSpace(line))
			}
		}
		return strings.Join(diff, "\n")
	})
}

func gcTagKey(p *probe) {
	a := p.attached()
	before := p.look(a)
	r := p.gcRequest(a)
	delete(r.config, "cni.dev/valid-attachments")
	if got := p.do(r); !got.succeeded() {
		p.broken(`GC with "cni.dev/attachments" alone: %s`, got)
	}
	if diff := p.settled(before, a); diff != "" {
		p.broken("GC with \"cni.dev/attachments\" alone, which lists the only attachment, removes:\n%s", excerpt(diff))
	}
}

func gcRemovesStale(p *probe) {
	a := p.container()
	bystander, before := p.usualOutside(a)
	p.needAdd(a)
	p.vanish(a)
	p.needed(p.gc(bystander))
	p.nothingLeft("after ADD, the end of the namespace, and GC", before, a, bystander)
}

func gcFreesAddresses(p *probe) {
	a := p.exhaust()
	p.vanish(a)
	p.needed(p.gc(p.container())) // somebody else's is in the list
	if got := p.add(p.container()); !got.succeeded() {
		p.broken("an attachment had the only address of %s; its namespace is gone, GC does not list it and succeeds; the next ADD: %s", smallSubnet, got)
	}
}

func gcEmptyList(p *probe) {
	a := p.exhaust()
	p.vanish(a)
	p.needed(p.gc())
	if got := p.add(p.container()); got.succeeded() {
		return
	}
	p.needed(p.gc(p.container()))
	if got := p.add(p.container()); !got.succeeded() {
		p.skip("needs a GC that frees addresses; see gc/frees-addresses")
	}
	p.broken(`GC with "cni.dev/valid-attachments": [] frees nothing, with another attachment in the list it does`)
}
