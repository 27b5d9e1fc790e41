package cnitest

import (
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func delegationCases() []kase {
	cases := append(delegationCalls(), delegationForwards()...)
	cases = append(cases, delegationErrors()...)
	for i := range cases {
		cases[i].needs = append([]need{aDelegate}, cases[i].needs...)
		if cases[i].profiles == nil {
			cases[i].profiles = []Profile{ProfileInterface, ProfileMeta}
		}
	}
	return inGroup("delegation", cases...)
}

func delegationCalls() []kase {
	own := []Profile{ProfileInterface}
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "search-path", Rows: []int{156, 160}, Strength: Must,
				About: "The delegate is found in any directory of CNI_PATH.",
				Fix:   "look for the delegate's executable in each directory of CNI_PATH, in order",
			},
			run: delegationPath,
		},
		{
			CaseInfo: CaseInfo{
				Name: "environment", Rows: []int{157, 161}, Strength: Must,
				About: "The delegate gets all the environment that the plugin got.",
				Fix:   "start the delegate with the plugin's whole environment, with CNI_COMMAND changed at most",
			},
			profiles: own,
			run:      delegationEnvironment,
		},
		{
			CaseInfo: CaseInfo{
				Name: "configuration", Rows: []int{158, 161}, Strength: Must,
				About: "The delegate gets the complete configuration, and not only the ipam part.",
				Fix:   "pass standard input on to the delegate as it came, unknown keys and numbers included",
			},
			profiles: own,
			run:      delegationConfiguration,
		},
		{
			CaseInfo: CaseInfo{
				Name: "result", Rows: []int{154}, Strength: Must,
				About: "The addresses that the IPAM delegate gave are on the interface and in the result.",
				Fix:   "set the addresses of the delegate's result on the interface, and put them into the plugin's own result",
			},
			profiles: []Profile{ProfileInterface},
			run:      delegationResult,
		},
		{
			CaseInfo: CaseInfo{
				Name: "standard-error", Rows: []int{162}, Strength: Should,
				About: "What the delegate writes to standard error reaches that of the plugin.",
				Fix:   "connect the delegate's standard error to the plugin's own",
			},
			needs: []need{aProcess},
			run:   delegationStderr,
		},
		{
			CaseInfo: CaseInfo{
				Name: "type", Rows: []int{21}, Strength: Must,
				About: "An ipam.type with a slash is refused.",
				Fix:   "refuse a type that contains a slash or backslash, so that it cannot lead out of CNI_PATH",
			},
			profiles: own,
			run:      delegationType,
		},
	}
}

func delegationForwards() []kase {
	forward := func(name string, row int, strength Strength, command cni.Command, needs ...need) kase {
		return kase{
			CaseInfo: CaseInfo{
				Name: name, Rows: []int{row}, Strength: strength,
				About: string(command) + " is also called of the delegate.",
				Fix:   "call " + string(command) + " of each delegate that ADD calls, with the same environment and configuration",
			},
			needs: needs,
			run:   func(p *probe) { delegationForward(p, command) },
		}
	}
	return []kase{
		forward("del", 163, Must, cni.CommandDel),
		forward("check", 163, Must, cni.CommandCheck, checks),
		forward("gc", 99, Must, cni.CommandGC, newCommands),
		forward("status", 87, Must, cni.CommandStatus, newCommands),
		{
			CaseInfo: CaseInfo{
				Name: "del-no-namespace", Rows: []int{56}, Strength: Should,
				About: "DEL is called of the delegate also when CNI_NETNS is absent.",
				Fix:   "call DEL of the delegate before, or without, looking into the namespace: the address has to be given back in any case",
			},
			run: delegationDelGone,
		},
	}
}

func delegationErrors() []kase {
	failing := func(name string, row int, command cni.Command, needs ...need) kase {
		return kase{
			CaseInfo: CaseInfo{
				Name: name, Rows: []int{row}, Strength: Should,
				About: "The error of the delegate's " + string(command) + " is returned.",
				Fix:   "fail " + string(command) + " when the delegate does, and keep its message in the error",
			},
			needs: needs,
			run:   func(p *probe) { delegationFailing(p, command) },
		}
	}
	return []kase{
		failing("add-error", 164, cni.CommandAdd),
		failing("del-error", 164, cni.CommandDel),
		failing("check-error", 67, cni.CommandCheck, checks),
		failing("gc-error", 164, cni.CommandGC, newCommands),
		failing("status-error", 88, cni.CommandStatus, newCommands),
		{
			CaseInfo: CaseInfo{
				Name: "add-error-del", Rows: []int{165}, Strength: Should,
				About: "When the delegate's ADD fails, its DEL is called before the failure is returned.",
				Fix:   "call DEL of the delegate when its ADD failed: it may have reserved something before",
			},
			run: delegationAddErrorDel,
		},
		{
			CaseInfo: CaseInfo{
				Name: "undo", Rows: []int{165}, Strength: Should,
				About: "When ADD fails after the delegate's ADD succeeded, the delegate's DEL is called.",
				Fix:   "call DEL of the delegate on every path on which ADD fails after it was called",
			},
			profiles: []Profile{ProfileInterface},
			run:      delegationUndo,
		},
	}
}

func delegationPath(p *probe) {
	s := p.script(nil)
	got := p.add(p.container())
	if len(p.calls(s, cni.CommandAdd)) == 0 {
		p.broken("the second directory of CNI_PATH has the delegate %s, and ADD does not call it: %s", delegateType, got)
	}
}

func delegationEnvironment(p *probe) {
	s := p.delegated(nil)
	a := p.container()
	r := p.request(cni.CommandAdd, a)
	r.env["CNI_ARGS"] = "IgnoreUnknown=1;CNITEST=ab"
	r.env["CNITEST_OTHER"] = "is passed on"
	p.needed(p.do(r))
	for _, call := range p.calls(s, cni.CommandAdd) {
		for _, entry := range p.environ(r) {
			key, want, _ := strings.Cut(entry, "=")
			if value, ok := call.Getenv(key); !ok || value != want {
				p.fault("the plugin got %s=%q, the delegate %q", key, want, value)
			}
		}
	}
}

func delegationConfiguration(p *probe) {
	s := p.delegated(nil)
	a := p.container()
	r := p.request(cni.CommandAdd, a)
	r.config["cnitest.example/unknown"] = map[string]any{"deep": []any{"a", true, nil}}
	p.needed(p.do(r))
	for _, call := range p.calls(s, cni.CommandAdd) {
		got, err := parseDocument(call.Stdin)
		if err != nil {
			p.broken("standard input of the delegate is no JSON object: %s", shortened(string(call.Stdin)))
		}
		for _, key := range r.config.keys() {
			want, have := document{key: r.config[key]}.encode(), document{key: got[key]}.encode()
			if string(want) != string(have) {
				p.fault("the plugin got %s, the delegate %s", want, have)
			}
		}
	}
}

func delegationResult(p *probe) {
	p.delegated(nil)
	a := p.attached()
	if !strings.Contains(a.parsed.String(), delegateAddress) {
		p.fault("the delegate gave %s, and the result is %s", delegateAddress, a.parsed)
	}
	addrs := p.inventory(a.ns).addrs[a.ifname]
	if !strings.Contains(join(addrs), delegateAddress) {
		p.fault("the delegate gave %s, and %s has %v", delegateAddress, a.ifname, addrs)
	}
}

func join[T interface{ String() string }](list []T) string {
	texts := make([]string, len(list))
	for i, entry := range list {
		texts[i] = entry.String()
	}
	return strings.Join(texts, " ")
}

func delegationStderr(p *probe) {
	well := Reply{Stdout: delegateResult(p.version, delegateAddress, delegateGateway, nil), Stderr: delegateWords}
	p.delegated(map[cni.Command]Reply{cni.CommandAdd: well})
	if got := p.add(p.container()); !strings.Contains(string(got.stderr), strings.TrimSpace(delegateWords)) {
		p.fault("the delegate succeeds and writes %q to standard error, and the plugin %q", delegateWords, shortened(string(got.stderr)))
	}
	p.script(map[cni.Command]Reply{cni.CommandAdd: p.trouble()})
	if got := p.add(p.container()); !strings.Contains(string(got.stderr), strings.TrimSpace(delegateWords)) {
		p.fault("the delegate fails and writes %q to standard error, and the plugin %q", delegateWords, shortened(string(got.stderr)))
	}
}

func delegationType(p *probe) {
	p.script(nil)
	p.config.object("ipam")["type"] = "../delegates/" + delegateType
	if got := p.add(p.container()); got.exit == 0 {
		p.broken("ADD with ipam.type %q: %s", p.config.text("ipam", "type"), got)
	}
}

// forwarded makes the call of a command, with an attachment that is there.
func (p *probe) forwarded(command cni.Command, a *attachment) reply {
	switch command {
	case cni.CommandGC:
		return p.gc(a)
	case cni.CommandStatus:
		return p.status()
	}
	return p.do(p.request(command, a))
}

func delegationForward(p *probe, command cni.Command) {
	s := p.delegated(nil)
	a := p.attached()
	got := p.forwarded(command, a)
	calls := p.calls(s, command)
	if len(calls) == 0 {
		p.broken("%s: %s; %s", command, got, p.record(s))
	}
	if command == cni.CommandGC && !strings.Contains(string(calls[0].Stdin), a.id) {
		p.broken("GC of the delegate has no list with the valid attachment %s: %s", a, shortened(string(calls[0].Stdin)))
	}
}

func delegationDelGone(p *probe) {
	s := p.delegated(nil)
	got := p.delGone(p.attached())
	if len(p.calls(s, cni.CommandDel)) == 0 {
		p.broken("DEL without CNI_NETNS: %s; %s", got, p.record(s))
	}
}

func delegationFailing(p *probe, command cni.Command) {
	s := p.delegated(map[cni.Command]Reply{command: p.trouble()})
	a := p.container()
	var got reply
	if command == cni.CommandAdd {
		got = p.add(a)
	} else {
		p.needAdd(a)
		got = p.forwarded(command, a)
	}
	if len(p.calls(s, command)) == 0 {
		p.skip("the delegate's %s is not called; see delegation/%s", command, strings.ToLower(string(command)))
	}
	switch {
	case got.exit == 0:
		p.broken("the delegate's %s fails with %q, and the plugin's: %s", command, delegateTrouble, got)
	case !strings.Contains(got.complaint(), delegateTrouble):
		p.broken("the delegate's %s fails with %q, and the error does not say so: %s", command, delegateTrouble, got)
	}
}

func delegationAddErrorDel(p *probe) {
	s := p.delegated(map[cni.Command]Reply{cni.CommandAdd: p.trouble()})
	if got := p.add(p.container()); got.exit == 0 {
		p.skip("needs an ADD that fails with its delegate; see delegation/add-error")
	}
	if len(p.calls(s, cni.CommandDel)) == 0 {
		p.broken("the delegate's ADD failed; %s", p.record(s))
	}
}

// unsettable are routes that cannot be set all: the gateways are on no network of the
// container, and there are two for one destination.
func unsettable() []any {
	return []any{
		map[string]any{"dst": "203.0.113.0/24", "gw": "192.0.2.99"},
		map[string]any{"dst": "203.0.113.0/24", "gw": "192.0.2.98"},
	}
}

// lateFailure has ADD fail late: the delegate gives an address with routes that
// cannot be set.
func (p *probe) lateFailure() map[cni.Command]Reply {
	return map[cni.Command]Reply{cni.CommandAdd: {Stdout: delegateResult(p.version, "198.18.0.6/24", delegateGateway, unsettable())}}
}

func delegationUndo(p *probe) {
	p.delegated(nil)
	s := p.script(p.lateFailure())
	got := p.add(p.container())
	if got.exit == 0 || len(p.calls(s, cni.CommandAdd)) == 0 {
		p.skip("needs an ADD that fails after its delegate; with two routes to 203.0.113.0/24 through gateways on no network of the container: %s", got)
	}
	if len(p.calls(s, cni.CommandDel)) == 0 {
		p.broken("the delegate gave an address, then ADD failed (%s); %s", got, p.record(s))
	}
}
