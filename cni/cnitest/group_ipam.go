package cnitest

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func ipamCases() []kase {
	cases := []kase{
		{
			CaseInfo: CaseInfo{
				Name: "distinct", Rows: []int{155}, Strength: Must,
				About: "Each attachment gets an address of its own, in the configured range.",
				Fix:   "record which attachment has an address before it is returned, and look there for the next one",
			},
			needs: []need{ranged},
			run:   ipamDistinct,
		},
		{
			CaseInfo: CaseInfo{
				Name: "second-add", Rows: []int{44, 155}, Strength: Must,
				About: "A second ADD that fails does not free what the first ADD of the attachment was given.",
				Fix:   "release after a failure only the addresses that this very call reserved, not all that the container ID and interface name have",
			},
			needs: []need{ranged},
			run:   ipamSecondAdd,
		},
		{
			CaseInfo: CaseInfo{
				Name: "failure-leaves-nothing", Rows: []int{155}, Strength: Should,
				About: "An ADD that fails for one range keeps no address of another.",
				Fix:   "release the addresses that were reserved already when there is none left in a later range",
			},
			needs: []need{ranged},
			run:   ipamFailureLeavesNothing,
		},
		{
			CaseInfo: CaseInfo{
				Name: "del-frees", Rows: []int{54}, Strength: Should,
				About: "DEL without CNI_NETNS frees the address.",
				Fix:   "release by container ID and interface name; the namespace is not needed for it",
			},
			needs: []need{ranged},
			run:   ipamDelFrees,
		},
		{
			CaseInfo: CaseInfo{
				Name: "del-own", Rows: []int{117}, Strength: Must,
				About: "DEL of one interface of a container does not free the address of another.",
				Fix:   "key reservations by container ID and interface name together",
			},
			needs: []need{ranged},
			run:   ipamDelOwn,
		},
		{
			CaseInfo: CaseInfo{
				Name: "hands-off", Rows: []int{154}, Strength: Should,
				About: "An IPAM plugin changes nothing in the container and no interface of the node.",
				Fix:   "return addresses and routes only; the plugin that delegates sets them",
			},
			run: ipamHandsOff,
		},
	}
	for i := range cases {
		cases[i].profiles = []Profile{ProfileIPAM}
	}
	return inGroup("ipam", cases...)
}

// firstRange has five addresses beside the gateway's.
const firstRange = "10.89.1.0/29"

func ipamDistinct(p *probe) {
	p.ranges(firstRange)
	owners := map[string]*attachment{}
	for range 4 {
		a := p.attached()
		for _, ip := range a.parsed.IPs {
			if owner := owners[ip.Address.String()]; owner != nil {
				p.fault("%s was given to %s and to %s", ip.Address, owner, a)
			}
			if !netip.MustParsePrefix(firstRange).Contains(ip.Address.Addr()) {
				p.fault("%s is not in %s", ip.Address, firstRange)
			}
			owners[ip.Address.String()] = a
		}
	}
}

// taken lists the addresses of an attachment.
func taken(a *attachment) map[netip.Addr]bool {
	addrs := map[netip.Addr]bool{}
	for _, ip := range a.parsed.IPs {
		addrs[ip.Address.Addr()] = true
	}
	return addrs
}

// givenAway adds containers until there are no addresses left, and tells an address that
// somebody has already; "" if there was none.
func (p *probe) givenAway(has map[netip.Addr]bool) string {
	for range 8 {
		a := p.container()
		if got := p.add(a); !got.succeeded() || a.parsed == nil {
			break
		}
		for _, ip := range a.parsed.IPs {
			if has[ip.Address.Addr()] {
				return ip.Address.String()
			}
		}
	}
	return ""
}

func ipamSecondAdd(p *probe) {
	for i, ask := range []struct {
		how    string
		change func(r *request, address string)
	}{
		{"no request for ", func(*request, string) {}},
		{"CNI_ARGS=IP=", func(r *request, address string) { r.env["CNI_ARGS"] = "IgnoreUnknown=1;IP=" + address }},
		{"runtimeConfig.ips ", func(r *request, address string) {
			r.config["runtimeConfig"] = map[string]any{"ips": []any{address + "/29"}}
		}},
		{"args.cni.ips ", func(r *request, address string) {
			r.config["args"] = map[string]any{"cni": map[string]any{"ips": []any{address}}}
		}},
	} {
		p.ranges(fmt.Sprintf("10.89.%d.0/29", 10+2*i), fmt.Sprintf("10.89.%d.0/29", 11+2*i))
		a := p.attached()
		has := taken(a)
		address := fmt.Sprintf("10.89.%d.6", 10+2*i) // the last of the first range
		r := p.request(cni.CommandAdd, a)
		ask.change(r, address)
		got := p.do(r)
		if given := p.givenAway(has); given != "" {
			p.broken("after a second ADD of the attachment (with %s%s: %s), %s is given to another container while the first one has it", ask.how, address, got, given)
		}
	}
}

func ipamFailureLeavesNothing(p *probe) {
	p.ranges(smallSubnet)
	p.attached()
	p.ranges(firstRange, smallSubnet)
	a := p.container()
	got := p.add(a)
	if got.exit == 0 {
		p.skip("needs an ADD that fails for want of an address in one of two ranges: %s", got)
	}
	if left := p.mentions(a); len(left) > 0 {
		p.broken("there is no address left in %s, and ADD fails; files still name the container: %s", smallSubnet, strings.Join(left, ", "))
	}
	p.ranges(firstRange)
	for given := range 5 { // .2 to .6
		if got := p.add(p.container()); !got.succeeded() {
			p.broken("there is no address left in %s, and ADD fails; then %s, which has 5 addresses, gives %d: %s", smallSubnet, firstRange, given, got)
		}
	}
}

func ipamDelFrees(p *probe) {
	a := p.exhaust()
	p.needed(p.delGone(a))
	if got := p.add(p.container()); !got.succeeded() {
		p.broken("after a DEL without namespace of who had the only address of %s, ADD: %s", smallSubnet, got)
	}
}

func ipamDelOwn(p *probe) {
	p.ranges(firstRange)
	a := p.attached()
	second := p.second(a)
	p.needAdd(second)
	p.needed(p.del(second))
	if address := p.givenAway(taken(a)); address != "" {
		p.broken("after DEL of %s, %s of %s, which is still there, is given to another container", second, address, a)
	}
}

func ipamHandsOff(p *probe) {
	a := p.container()
	before := p.look(a)
	p.needAdd(a)
	var changes []string
	for line := range strings.Lines(before.Diff(p.look(a))) {
		if !strings.Contains(line, ": file ") {
			changes = append(changes, strings.TrimSpace(line))
		}
	}
	if len(changes) > 0 {
		p.broken("ADD changes:\n%s", excerpt(strings.Join(changes, "\n")))
	}
}
