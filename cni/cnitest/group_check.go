package cnitest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/nft"
	"github.com/cnikit/cnikit/internal/nl"
)

func checkCases() []kase {
	cases := inGroup("check", append(checkWhole(), checkBroken()...)...)
	for i := range cases {
		cases[i].needs = append([]need{checks}, cases[i].needs...)
	}
	return cases
}

func checkWhole() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "after-add", Rows: []int{66}, Strength: Must,
				About: "CHECK succeeds right after the ADD.",
				Fix:   "have ADD finish what CHECK misses, such as an interface that is not switched on; where CHECK is wrong, compare with prevResult only what ADD has finished, and wait a reasonable time for what converges later",
			},
			run: checkAfterAdd,
		},
		{
			CaseInfo: CaseInfo{
				Name: "silent", Rows: []int{77}, Strength: Must,
				About: "CHECK that succeeds prints nothing on standard output.",
				Fix:   "print nothing on standard output for CHECK: there is no result; logs go to standard error",
			},
			run: checkSilent,
		},
		{
			CaseInfo: CaseInfo{
				Name: "without-addresses", Rows: []int{61, 66}, Strength: Must,
				About: "CHECK succeeds for a network without IPAM, also when other attachments come and go.",
				Fix:   "call the IPAM plugin in CHECK, and compare addresses, only if the configuration has ipam.type; do not compare the MAC address of a bridge, which follows its ports unless it is set",
			},
			profiles: []Profile{ProfileInterface},
			needs:    []need{aDelegate},
			run:      checkWithoutAddresses,
		},
		{
			CaseInfo: CaseInfo{
				Name: "changed-by-others", Rows: []int{62}, Strength: Must,
				About: "CHECK tolerates what a later plugin changed: another MAC address, another route, another interface in prevResult.",
				Fix:   "look in CHECK for what the plugin itself made, and let everything else be; do not compare the MAC address",
			},
			profiles: []Profile{ProfileInterface, ProfileChained, ProfileMeta},
			run:      checkChangedByOthers,
		},
	}
}

func checkBroken() []kase {
	attaching := []Profile{ProfileInterface, ProfileMeta}
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "interface-gone", Rows: []int{63}, Strength: Should,
				About: "CHECK fails when the interface in the container is gone.",
				Fix:   "look for each interface of prevResult that the plugin made, in its sandbox, and fail if it is not there",
			},
			profiles: attaching,
			run:      checkInterfaceGone,
		},
		{
			CaseInfo: CaseInfo{
				Name: "interface-down", Rows: []int{63}, Strength: Should,
				About: "CHECK fails when the interface in the container is down.",
				Fix:   "look whether the interface is up, and fail if it is not: no packet passes",
			},
			profiles: attaching,
			run:      checkInterfaceDown,
		},
		{
			CaseInfo: CaseInfo{
				Name: "address-gone", Rows: []int{63}, Strength: Should,
				About: "CHECK fails when an address of prevResult is gone from the interface.",
				Fix:   "compare the addresses of prevResult.ips with those on the interface, and fail if one is missing",
			},
			profiles: attaching,
			run:      checkAddressGone,
		},
		{
			CaseInfo: CaseInfo{
				Name: "route-gone", Rows: []int{63}, Strength: Should,
				About: "CHECK fails when a route of prevResult is gone.",
				Fix:   "compare prevResult.routes with the routes in the container, and fail if one is missing",
			},
			profiles: attaching,
			run:      checkRouteGone,
		},
		{
			CaseInfo: CaseInfo{
				Name: "expectation", Rows: []int{61}, Strength: Must,
				About: "CHECK takes what it expects from prevResult.",
				Fix:   "compare the interface with the addresses in prevResult.ips, not with what the plugin remembers or finds",
			},
			profiles: attaching,
			run:      checkExpectation,
		},
		{
			CaseInfo: CaseInfo{
				Name: "rules-gone", Rows: []int{64}, Strength: Should,
				About: "CHECK fails when the firewall rules that the ADD made are gone from the node.",
				Fix:   "look in CHECK for the rules and chains of this container, as ADD made them, and fail if one is missing: a firewall that was restarted has lost them",
			},
			profiles: []Profile{ProfileInterface, ProfileChained, ProfileMeta},
			run:      checkRulesGone,
		},
		{
			CaseInfo: CaseInfo{
				Name: "reservation-gone", Rows: []int{64}, Strength: Should,
				About: "CHECK fails when the reservation of the address is gone.",
				Fix:   "look in CHECK for the reservation of this container ID and interface name, and fail if there is none",
			},
			profiles: []Profile{ProfileIPAM},
			run:      checkReservationGone,
		},
	}
}

func checkAfterAdd(p *probe) {
	a := p.attached()
	if got := p.expected(p.check(a)); !got.succeeded() {
		p.broken("CHECK after ADD: %s", got)
	}
}

// checked is an attachment for which CHECK works.
func (p *probe) checked() *attachment {
	a := p.attached()
	p.needed(p.check(a))
	return a
}

func checkSilent(p *probe) {
	got := p.check(p.attached())
	p.needed(got)
	if strings.TrimSpace(string(got.stdout)) != "" {
		p.broken("CHECK: %s", got)
	}
}

func checkWithoutAddresses(p *probe) {
	p.alone()
	var attached []*attachment
	checkAll := func(when string) {
		for i, a := range attached {
			if got := p.check(a); !got.succeeded() {
				p.broken("without ipam, %s, CHECK of attachment %d that is there: %s", when, i+1, got)
			}
		}
	}
	for range 3 {
		attached = append(attached, p.attached())
		checkAll("after another ADD")
	}
	for len(attached) > 1 {
		p.needed(p.del(attached[0]))
		attached = attached[1:]
		checkAll("after a DEL of another attachment")
	}
}

func checkChangedByOthers(p *probe) {
	a := p.checked()
	p.inside(a, func(c *nl.Conn) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "later0"
		attrs.Flags = net.FlagUp
		return c.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: "later1"})
	})
	r := p.request("CHECK", a)
	interfaces := append(r.config.list("prevResult", "interfaces"), map[string]any{"name": "later0", "sandbox": a.netns})
	r.config.object("prevResult")["interfaces"] = interfaces
	if got := p.do(r); !got.succeeded() {
		p.fault("CHECK with another interface in prevResult: %s", got)
	}
	p.onInterface(a, func(c *nl.Conn, link netlink.Link) error {
		err := c.AddRoute(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(otherNetwork), Scope: linkScope})
		if errors.Is(err, nl.ErrExists) {
			return fmt.Errorf("the kit adds a route to %s in place of a later plugin, and ADD has added one, too: "+
				"use another prefix in the plugin's configuration (%w)", otherNetwork, err)
		}
		return err
	})
	if got := p.check(a); !got.succeeded() {
		p.fault("CHECK with another route in the container: %s", got)
	}
	p.onInterface(a, func(c *nl.Conn, link netlink.Link) error {
		return c.SetMAC(link, net.HardwareAddr{2, 0, 0, 0, 0, 0x77})
	})
	if got := p.check(a); !got.succeeded() {
		p.fault("CHECK with another MAC address on %s: %s", a.ifname, got)
	}
}

// linkScope is RT_SCOPE_LINK: the destination is on the link.
const linkScope = 253

// onInterface changes the container's interface. The case is skipped if ADD made none, or
// none that works.
func (p *probe) onInterface(a *attachment, change func(*nl.Conn, netlink.Link) error) {
	err := a.ns.withConn(func(c *nl.Conn) error {
		link, err := c.Link(a.ifname)
		if err != nil {
			return err
		}
		return change(c, link)
	})
	if errors.Is(err, nl.ErrNotFound) || errors.Is(err, syscall.ENETDOWN) {
		p.skip("needs %s in the container, and up; see add/creates-interface: %v", a.ifname, err)
	}
	p.can(err)
}

// mustNotice notes unless CHECK fails.
func (p *probe) mustNotice(a *attachment, what string) {
	if got := p.check(a); got.exit == 0 {
		p.broken("%s, and CHECK: %s", what, got)
	}
}

// own is an address on the container's interface, from the result.
func (a *attachment) own() (cni.IP, bool) {
	for _, ip := range a.parsed.IPs {
		if ip.Interface == nil || a.parsed.Interfaces[*ip.Interface].Sandbox == a.netns {
			return ip, true
		}
	}
	return cni.IP{}, false
}

func checkInterfaceGone(p *probe) {
	a := p.checked()
	p.onInterface(a, func(c *nl.Conn, link netlink.Link) error { return c.DelLink(link) })
	p.mustNotice(a, a.ifname+" is deleted from the container")
}

func checkInterfaceDown(p *probe) {
	a := p.checked()
	p.onInterface(a, func(c *nl.Conn, link netlink.Link) error { return c.SetDown(link) })
	p.mustNotice(a, a.ifname+" in the container is down")
}

func checkAddressGone(p *probe) {
	a := p.checked()
	ip, ok := a.own()
	if !ok {
		p.skip("the result has no address")
	}
	p.onInterface(a, func(c *nl.Conn, link netlink.Link) error {
		return c.DelAddr(link, &netlink.Addr{IPNet: ipNet(ip.Address)})
	})
	p.mustNotice(a, "the address "+ip.Address.String()+" is deleted from "+a.ifname)
}

func checkRouteGone(p *probe) {
	a := p.checked()
	if len(a.parsed.Routes) == 0 {
		p.skip("the result has no route")
	}
	dst := a.parsed.Routes[0].Dst
	deleted := false
	p.inside(a, func(c *nl.Conn) error {
		family := inet
		if dst.Addr().Is6() {
			family = inet6
		}
		list, err := c.Routes(&netlink.Route{}, 0, family)
		for _, route := range list {
			if err == nil && (route.Dst == nil && dst.Bits() == 0 || route.Dst != nil && route.Dst.String() == dst.String()) {
				err, deleted = c.DelRoute(&route), true
			}
		}
		return err
	})
	if !deleted {
		p.skip("the route to %s of the result is not there; see results/routes", dst)
	}
	p.mustNotice(a, "the route to "+dst.String()+" is deleted from the container")
}

func checkExpectation(p *probe) {
	a := p.checked()
	if _, ok := a.own(); !ok {
		p.skip("the result has no address")
	}
	r := p.request("CHECK", a)
	for _, entry := range r.config.list("prevResult", "ips") {
		if ip, ok := entry.(map[string]any); ok && strings.Contains(document(ip).text("address"), ".") {
			ip["address"] = "203.0.113.7/24"
		}
	}
	if got := p.do(r); got.exit == 0 {
		p.broken("prevResult says that %s has 203.0.113.7/24, which it has not, and CHECK: %s", a.ifname, got)
	}
}

func checkRulesGone(p *probe) {
	a := p.container()
	p.prepare(a)
	before := p.look()
	p.needAdd(a)
	p.needed(p.check(a))
	if !strings.Contains(before.Diff(p.look()), "+ node: nft rule ") {
		p.skip("ADD adds no rule that nf_tables shows")
	}
	p.can(nft.Flush(p.node.ns))
	p.mustNotice(a, "all rules are deleted from the node's nf_tables")
}

func checkReservationGone(p *probe) {
	a := p.checked()
	removed := 0
	for _, path := range p.mentions(a) {
		p.can(os.Remove(strings.ReplaceAll(path, Placeholder, p.stateDir())))
		removed++
	}
	if removed == 0 {
		p.skip("no file in the declared directories names the container")
	}
	p.mustNotice(a, "the files that name the container are deleted")
}
