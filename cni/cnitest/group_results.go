package cnitest

import (
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func resultsCases() []kase {
	var cases []kase
	for _, v := range cni.SupportedVersions() {
		cases = append(cases, kase{
			CaseInfo: CaseInfo{
				Name: v, Rows: []int{166, 170, 172}, Strength: Must,
				About: "ADD in version " + v + " prints a result in the form of that version, and DEL takes it back.",
				Fix:   resultFix(v),
			},
			needs: []need{served(v)},
			run:   func(p *probe) { resultsVersion(p, v) },
		})
	}
	return inGroup("results", append(cases, resultsContent()...)...)
}

// resultFix says what the form of a version is.
func resultFix(v string) string {
	switch {
	case v < "0.3.0":
		return `print cniVersion "` + v + `" and an object ip4 or ip6 with ip, gateway and routes; interfaces, ips and routes at the top came with 0.3.0`
	case v < "1.0.0":
		return `print cniVersion "` + v + `", interfaces, ips with version ("4" or "6"), address and interface, and routes with dst`
	}
	return `print cniVersion "` + v + `", interfaces, ips with address (and without version), gateway and interface, and routes with dst`
}

func resultsContent() []kase {
	attaching := []Profile{ProfileInterface, ProfileMeta}
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "newer-keys", Rows: []int{166}, Strength: Should,
				About: "A result has no keys that came with a later version than its own.",
				Fix:   "leave out of results before 1.1.0: mtu, socketPath and pciID of interfaces; mtu, advmss, priority, table and scope of routes",
			},
			run: resultsNewerKeys,
		},
		{
			CaseInfo: CaseInfo{
				Name: "interfaces", Rows: []int{167}, Strength: Must,
				About: "The result lists every interface that the ADD made, in the container and on the host, with its MAC address.",
				Fix:   "make what the result lists, and list all that was made, the host's end of a veth pair too, with the names and MAC addresses that the kernel shows when ADD is done",
			},
			profiles: attaching,
			needs:    []need{listsInterfaces},
			run:      resultsInterfaces,
		},
		{
			CaseInfo: CaseInfo{
				Name: "sandbox", Rows: []int{168}, Strength: Should,
				About: "The sandbox of an interface in the container is CNI_NETNS as it was given, that of one on the host is empty.",
				Fix:   "copy CNI_NETNS, unchanged, into sandbox of the interfaces in the container, and leave it out for those on the host",
			},
			profiles: attaching,
			needs:    []need{listsInterfaces},
			run:      resultsSandbox,
		},
		{
			CaseInfo: CaseInfo{
				Name: "addresses", Rows: []int{154, 170}, Strength: Must,
				About: "The addresses in the result are those on the interfaces.",
				Fix:   "list in ips what was set on the interface, with its prefix length, and point interface at the entry of that interface",
			},
			profiles: attaching,
			run:      resultsAddresses,
		},
		{
			CaseInfo: CaseInfo{
				Name: "routes", Rows: []int{154, 172}, Strength: Must,
				About: "The routes in the result are in the container's routing table.",
				Fix:   "set the routes that the result lists, also those that IPAM gave, or leave out what was not set",
			},
			profiles: attaching,
			run:      resultsRoutes,
		},
		{
			CaseInfo: CaseInfo{
				Name: "abbreviated", Rows: []int{159, 177}, Strength: Must,
				About: "The result of an IPAM plugin has addresses, no interfaces, and no index of an interface.",
				Fix:   "leave interfaces, and ips[].interface, out: the plugin that delegates fills them in",
			},
			profiles: []Profile{ProfileIPAM},
			run:      resultsAbbreviated,
		},
		{
			CaseInfo: CaseInfo{
				Name: "dns", Rows: []int{19, 22, 173}, Strength: Should,
				About: "A plugin that puts the configuration's dns into its result keeps its lists in order.",
				Fix:   "copy dns.nameservers, domain, search and options as they are, in their order, addresses of both families",
			},
			run: resultsDNS,
		},
	}
}

func resultsVersion(p *probe, v string) {
	if v < "0.3.0" && p.target.Profile == ProfileChained {
		p.skip("chaining is there since version 0.3.0")
	}
	a := p.container()
	a.version = v
	got := p.add(a)
	if !got.succeeded() {
		usual := p.container()
		p.needAdd(usual)
		if v < "0.3.0" && len(usual.parsed.IPs) == 0 {
			p.skip("a result without an address cannot be put into version %s", v)
		}
		p.broken("ADD in version %s: %s", v, got)
	}
	if got.document() == nil {
		p.skip("standard output is no single JSON object; see protocol/result")
	}
	for _, fault := range resultFaults(got.document(), v) {
		p.fault("%s", fault)
	}
	if len(p.faults) > 0 {
		p.broken("the result: %s", shortened(string(got.stdout)))
	}
	if got := p.expected(p.del(a)); !got.succeeded() {
		p.fault("DEL in version %s: %s", v, got)
	}
}

func resultsNewerKeys(p *probe) {
	for _, v := range []string{"0.3.1", "0.4.0", "1.0.0"} {
		if version(v)(p.exam) != "" {
			continue
		}
		a := p.container()
		a.version = v
		if got := p.add(a); got.succeeded() {
			if keys := newerKeys(got.document(), v); len(keys) > 0 {
				p.fault("the result in version %s has %s", v, strings.Join(keys, ", "))
			}
		}
	}
}

// lists finds an interface in the result by name and place.
func (a *attachment) lists(name string, inContainer bool) (cni.Interface, bool) {
	for _, iface := range a.parsed.Interfaces {
		if iface.Name == name && (iface.Sandbox != "") == inContainer {
			return iface, true
		}
	}
	return cni.Interface{}, false
}

func resultsInterfaces(p *probe) {
	p.attached()
	a := p.container()
	p.prepare(a)
	host, inside := p.inventory(p.node), p.inventory(a.ns)
	p.needAdd(a)
	for _, place := range []struct {
		what          string
		in            bool
		before, after inventory
	}{{"on the host", false, host, p.inventory(p.node)}, {"in the container", true, inside, p.inventory(a.ns)}} {
		for _, name := range place.after.newSince(place.before) {
			iface, ok := a.lists(name, place.in)
			attrs := place.after.links[name]
			switch {
			case !ok:
				p.fault("ADD makes %s %s, which the result does not list: %s", linkText(name, attrs), place.what, a.parsed)
			case iface.MAC != "" && !strings.EqualFold(iface.MAC, attrs.HardwareAddr.String()):
				p.fault("the result says that %s %s has MAC address %s, and it has %s", name, place.what, iface.MAC, attrs.HardwareAddr)
			case iface.MAC == "" && len(attrs.HardwareAddr) > 0:
				p.fault("the result lists %s %s without its MAC address %s", name, place.what, attrs.HardwareAddr)
			case iface.MTU != 0 && iface.MTU != attrs.MTU:
				p.fault("the result says that %s %s has MTU %d, and it has %d", name, place.what, iface.MTU, attrs.MTU)
			}
		}
		for _, iface := range a.parsed.Interfaces {
			if (iface.Sandbox != "") == place.in && place.after.links[iface.Name] == nil {
				p.fault("the result lists %s, which is not %s", iface.Name, place.what)
			}
		}
	}
}

func resultsSandbox(p *probe) {
	a := p.attached()
	host, inside := p.inventory(p.node), p.inventory(a.ns)
	for _, iface := range a.parsed.Interfaces {
		switch {
		case iface.Sandbox != "" && iface.Sandbox != a.netns:
			p.fault("the sandbox of %s is %q, and CNI_NETNS was %q", iface.Name, iface.Sandbox, a.netns)
		case iface.Sandbox != "" && inside.links[iface.Name] == nil && host.links[iface.Name] != nil:
			p.fault("%s is on the host, and its sandbox is %q", iface.Name, iface.Sandbox)
		case iface.Sandbox == "" && iface.Name == a.ifname:
			p.fault("%s is in the container, and its sandbox is empty", iface.Name)
		}
	}
	if _, ok := a.lists(a.ifname, true); !ok {
		p.fault("the result does not list %s with a sandbox: %s", a.ifname, a.parsed)
	}
}

func resultsAddresses(p *probe) {
	a := p.attached()
	inside := p.inventory(a.ns)
	listed := map[string]bool{}
	for _, ip := range a.parsed.IPs {
		name := a.ifname
		if ip.Interface != nil {
			iface := a.parsed.Interfaces[*ip.Interface]
			if iface.Sandbox == "" {
				continue // addresses outside of the container may be listed
			}
			name = iface.Name
		}
		listed[name+" "+ip.Address.String()] = true
		if !slices.Contains(inside.addrs[name], ip.Address) {
			p.fault("the result lists %s, which %s does not have; it has %v", ip.Address, name, inside.addrs[name])
		}
	}
	for name, addrs := range inside.addrs {
		for _, addr := range addrs {
			if name != "lo" && !listed[name+" "+addr.String()] {
				p.fault("%s has %s, which the result does not list: %s", name, addr, a.parsed)
			}
		}
	}
}

func resultsRoutes(p *probe) {
	a := p.attached()
	if len(a.parsed.Routes) == 0 {
		p.skip("the result has no route")
	}
	inside := p.inventory(a.ns)
	for _, route := range a.parsed.Routes {
		if !inside.route(route.Dst, route.GW) {
			p.fault("the result lists a route to %s via %s, which is not in the container", route.Dst, route.GW)
		}
	}
}

func resultsAbbreviated(p *probe) {
	a := p.attached()
	if len(a.parsed.IPs) == 0 {
		p.fault("the result has no address: %s", a.parsed)
	}
	if _, there := a.result["interfaces"]; there {
		p.fault("the result has interfaces: %s", a.parsed)
	}
	for i, ip := range a.parsed.IPs {
		if ip.Interface != nil {
			p.fault("ips[%d].interface is %d", i, *ip.Interface)
		}
	}
}

func resultsDNS(p *probe) {
	want := map[string]any{
		"nameservers": []any{"192.0.2.53", "2001:db8::53", "198.51.100.53"},
		"domain":      "example.org", "search": []any{"b.example", "a.example"}, "options": []any{"ndots:2", "edns0"},
	}
	p.config["dns"] = want
	a := p.attached()
	got := a.result.object("dns")
	if len(got.list("nameservers")) == 0 || got.text("domain") != "example.org" {
		p.skip("the plugin does not put the configuration's dns into its result")
	}
	if have := string(got.encode()); have != string(document(want).encode()) {
		p.broken("the configuration has dns %s, the result %s", document(want).encode(), have)
	}
}
