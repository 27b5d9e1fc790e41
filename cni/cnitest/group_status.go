package cnitest

import "strings"

func statusCases() []kase {
	cases := inGroup("status", append(statusReady(), statusTrouble()...)...)
	for i := range cases {
		cases[i].needs = append([]need{newCommands}, cases[i].needs...)
	}
	return cases
}

func statusReady() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "ready", Rows: []int{78}, Strength: Must,
				About: "STATUS exits with 0 when the plugin can serve an ADD.",
				Fix:   "answer STATUS with exit status 0 unless something that ADD needs is known to be missing",
			},
			run: statusIsReady,
		},
		{
			CaseInfo: CaseInfo{
				Name: "silent", Rows: []int{78}, Strength: Should,
				About: "STATUS that succeeds prints nothing on standard output.",
				Fix:   "print nothing on standard output for STATUS: there is no result; logs go to standard error",
			},
			run: statusSilent,
		},
		{
			CaseInfo: CaseInfo{
				Name: "environment", Rows: []int{90}, Strength: Must,
				About: "STATUS works without CNI_PATH, and without the variables of an attachment.",
				Fix:   "do not demand CNI_PATH for STATUS; look at it when a delegate has to be found, and not before",
			},
			needs: []need{noDelegate},
			run:   statusEnvironment,
		},
	}
}

func statusTrouble() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "delegate-missing", Rows: []int{79, 87}, Strength: Must,
				About: "STATUS fails when a delegate that ADD needs is not to be found.",
				Fix:   "call STATUS of each delegate that ADD calls, and answer with its error, code 50, when one is missing",
			},
			needs: []need{aDelegate},
			run:   statusDelegateMissing,
		},
		{
			CaseInfo: CaseInfo{
				Name: "exhausted", Rows: []int{81, 87}, Strength: Should,
				About: "STATUS fails when there is no address left for another ADD.",
				Fix:   "count in STATUS, or look for, a free address in every range, and answer with code 50 when there is none; a plugin that delegates passes that on",
			},
			needs: []need{ranged},
			run:   statusExhausted,
		},
		{
			CaseInfo: CaseInfo{
				Name: "code", Rows: []int{82, 83}, Strength: Should,
				About: "STATUS that fails answers with code 50 or 51.",
				Fix:   "answer with code 50 (no ADD can be served), or 51 (and containers that are attached may suffer); other codes do not tell a runtime that the plugin is not ready",
			},
			run: statusCode,
		},
		{
			CaseInfo: CaseInfo{
				Name: "not-binding", Rows: []int{84, 85}, Strength: Must,
				About: "ADD and DEL are served although STATUS failed before.",
				Fix:   "keep no state in STATUS; decide in each ADD anew whether it can be served",
			},
			needs: []need{ranged},
			run:   statusNotBinding,
		},
	}
}

func statusIsReady(p *probe) {
	p.attached()
	if got := p.expected(p.status()); !got.succeeded() {
		p.broken("ADD succeeds, and STATUS: %s", got)
	}
}

func statusSilent(p *probe) {
	got := p.status()
	p.needed(got)
	if out := strings.TrimSpace(string(got.stdout)); out != "" {
		p.broken("STATUS: %s", got)
	}
}

func statusEnvironment(p *probe) {
	p.needed(p.status())
	r := p.request("STATUS", nil)
	r.env = map[string]string{"CNI_COMMAND": "STATUS"}
	if got := p.do(r); !got.succeeded() {
		p.broken("STATUS with CNI_COMMAND alone: %s", got)
	}
}

func statusDelegateMissing(p *probe) {
	p.needed(p.status())
	p.nowhere()
	if got := p.status(); got.exit == 0 {
		p.broken("CNI_PATH has no plugin %q, so that ADD fails, and STATUS: %s", p.delegates()[0], got)
	}
}

func statusExhausted(p *probe) {
	p.exhaust()
	if got := p.status(); got.exit == 0 {
		p.broken("the only address of %s is taken, so that ADD fails, and STATUS: %s", smallSubnet, got)
	}
}

func statusCode(p *probe) {
	got := reply{}
	if ranged(p.exam) == "" {
		p.exhaust()
		got = p.status()
	}
	if got.exit == 0 && len(p.delegates()) > 0 {
		p.nowhere()
		got = p.status()
	}
	if got.exit == 0 {
		p.skip("needs a STATUS that fails, and none could be provoked")
	}
	if code, _, ok := got.failure(); !ok || code != 50 && code != 51 {
		p.broken("STATUS: %s", got)
	}
}

func statusNotBinding(p *probe) {
	a := p.exhaust()
	if got := p.status(); got.exit == 0 {
		p.skip("needs a STATUS that fails; see status/exhausted")
	}
	if got := p.del(a); !got.succeeded() {
		p.broken("DEL after a STATUS that failed: %s", got)
	}
	if got := p.add(p.container()); !got.succeeded() {
		p.broken("ADD when there is an address again, after a STATUS that failed: %s", got)
	}
}
