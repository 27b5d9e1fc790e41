package cnitest

import (
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

func interfaceFaults() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "interface-removed", Rows: []int{49, 53}, Strength: Should,
				About: "DEL succeeds, and removes the rest, when somebody has removed the container's interface.",
				Fix:   "treat an interface that is not found as removed, and go on with what is left: addresses, rules, files",
			},
			profiles: inNamespaces(),
			run:      interfaceRemoved,
		},
		{
			CaseInfo: CaseInfo{
				Name: "interface-renamed", Rows: []int{49, 53}, Strength: Should,
				About: "DEL removes the container's interface also when somebody has renamed it.",
				Fix:   "when CNI_IFNAME is not in the namespace, find the interface by its MAC address or by the host's end of it; else its address goes to another container and is still in use",
			},
			profiles: []Profile{ProfileInterface},
			run:      interfaceRenamed,
		},
		{
			CaseInfo: CaseInfo{
				Name: "host-interfaces-removed", Rows: []int{49, 53}, Strength: Should,
				About: "DEL succeeds, and ADD works again, when somebody has removed the interfaces that ADD made on the host, shared ones too.",
				Fix:   "treat host interfaces that are not found as removed in DEL, and make shared ones again in ADD",
			},
			profiles: attaching(),
			run:      hostInterfacesRemoved,
		},
	}
}

func interfaceRemoved(p *probe) {
	a := p.container()
	bystander, before := p.usualOutside(a)
	p.needAdd(a)
	p.onInterface(a, func(c *nl.Conn, link netlink.Link) error { return c.DelLink(link) })
	if got := p.del(a); !got.succeeded() {
		p.broken("the interface %s was removed, and DEL: %s", a.ifname, got)
	}
	p.nothingLeftByDEL("the interface was removed, and DEL succeeded", before, a, bystander)
}

func interfaceRenamed(p *probe) {
	a := p.container()
	bystander, before := p.usual(a)
	p.needAdd(a)
	p.onInterface(a, func(c *nl.Conn, link netlink.Link) error {
		if err := c.SetDown(link); err != nil { // old kernels rename no interface that is up
			return err
		}
		if err := c.SetName(link, "moved0"); err != nil {
			return err
		}
		return c.SetUp(link)
	})
	if got := p.del(a); !got.succeeded() {
		p.broken("the interface %s was renamed, and DEL: %s", a.ifname, got)
	}
	p.nothingLeftByDEL("the interface was renamed, and DEL succeeded", before, a, bystander, a)
}

func hostInterfacesRemoved(p *probe) {
	a := p.container()
	p.prepare(a)
	before := p.hostLinks()
	p.needAdd(a)
	var removed []string
	for _, name := range p.hostLinks() {
		if slices.Contains(before, name) {
			continue
		}
		p.can(p.node.withConn(func(c *nl.Conn) error {
			link, err := c.Link(name)
			if err != nil {
				return nil // it went with another one
			}
			removed = append(removed, name)
			return c.DelLink(link)
		}))
	}
	if len(removed) == 0 {
		p.skip("ADD makes no interface on the host")
	}
	names := strings.Join(removed, ", ")
	if got := p.del(a); !got.succeeded() {
		p.fault("%s was removed from the host, and DEL: %s", names, got)
	}
	if got := p.add(p.container()); !got.succeeded() {
		p.fault("%s was removed from the host, and another ADD: %s", names, got)
	}
}

// hostLinks are the names of the node's interfaces.
func (p *probe) hostLinks() (names []string) {
	p.can(p.node.withConn(func(c *nl.Conn) error {
		links, err := c.Links()
		for _, link := range links {
			names = append(names, link.Attrs().Name)
		}
		return err
	}))
	return names
}
