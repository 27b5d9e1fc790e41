package cnitest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func chainingCases() []kase {
	return inGroup(
		"chaining",
		kase{
			CaseInfo: CaseInfo{
				Name: "keeps-previous", Rows: []int{42, 174, 175}, Strength: Must,
				About: "A chained plugin's result has everything that prevResult has.",
				Fix:   "start from prevResult, change in it what the plugin changed, and print it; with nothing to change, print it as it is",
			},
			profiles: []Profile{ProfileChained},
			run:      chainingKeeps,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "behind-another", Rows: []int{42, 174}, Strength: Should,
				About: "A plugin that makes an interface adds it to the prevResult that another plugin left.",
				Fix:   "append interfaces, addresses and routes to those of prevResult, and count indexes of interfaces from there",
			},
			profiles: []Profile{ProfileInterface},
			run:      chainingBehind,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "check", Rows: []int{61, 62, 66}, Strength: Must,
				About: "CHECK of a chained plugin succeeds with the final result of the chain as prevResult.",
				Fix:   "expect in prevResult the result of the whole chain, which plugins behind this one may have added to",
			},
			profiles: []Profile{ProfileChained},
			needs:    []need{checks},
			run:      chainingCheck,
		},
	)
}

// lacking lists what a result lost of the one before it.
func lacking(before, after *cni.Result) (lost []string) {
	index := func(r *cni.Result, i *int) string {
		if i == nil {
			return ""
		}
		return r.Interfaces[*i].Name + " in " + r.Interfaces[*i].Sandbox
	}
	describe := func(r *cni.Result) map[string]bool {
		has := map[string]bool{}
		for _, iface := range r.Interfaces {
			has["interface "+iface.Name+" in "+iface.Sandbox] = true
		}
		for _, ip := range r.IPs {
			has[fmt.Sprintf("address %s on %s", ip.Address, index(r, ip.Interface))] = true
		}
		for _, route := range r.Routes {
			has["route to "+route.Dst.String()] = true
		}
		for _, server := range r.DNS.Nameservers {
			has["dns.nameservers "+server] = true
		}
		return has
	}
	has := describe(after)
	for what := range describe(before) {
		if !has[what] {
			lost = append(lost, what)
		}
	}
	slices.Sort(lost)
	return lost
}

// previousOf is the prevResult that an attachment starts with.
func (p *probe) previousOf(a *attachment) *cni.Result {
	if a.previous == nil {
		p.skip("there is no plugin before this one in the list")
	}
	r, err := cni.ParseResult(a.previous.encode(), a.version)
	if err != nil {
		p.skip("the result of the plugin before cannot be read: %v", err)
	}
	return r
}

func chainingKeeps(p *probe) {
	a := p.attached()
	if lost := lacking(p.previousOf(a), a.parsed); len(lost) > 0 {
		p.broken("prevResult has %s, the result has not: %s", strings.Join(lost, ", "), a.parsed)
	}
}

func chainingBehind(p *probe) {
	if p.version < "0.3.0" {
		p.skip("chaining is there since version 0.3.0")
	}
	delete(p.config.object("ipam"), "routes") // the plugin before has the default route
	delete(p.config, "isDefaultGateway")
	a := p.container()
	before := *a
	before.ifname = "net0"
	p.can(p.forerun(&before))
	a.previous = before.previous
	delete(a.previous, "routes")
	got := p.add(a)
	if !got.succeeded() || a.parsed == nil {
		p.attached() // skips the case if ADD works without prevResult no better
		p.broken("ADD with the prevResult of a plugin that made net0: %s", got)
	}
	if lost := lacking(p.previousOf(a), a.parsed); len(lost) > 0 {
		p.broken("prevResult has %s, the result has not: %s", strings.Join(lost, ", "), a.parsed)
	}
}

func chainingCheck(p *probe) {
	a := p.attached()
	p.needed(p.check(a))
	r := p.request(cni.CommandCheck, a)
	previous := r.config.object("prevResult")
	previous["interfaces"] = append(previous.list("interfaces"), map[string]any{"name": "later0"})
	previous["dns"] = map[string]any{"nameservers": []any{"192.0.2.54"}}
	if got := p.do(r); !got.succeeded() {
		p.broken("CHECK with an interface of a later plugin in prevResult: %s", got)
	}
}
