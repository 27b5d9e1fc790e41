package cnitest

import (
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

func addCases() []kase {
	attaching := []Profile{ProfileInterface, ProfileMeta}
	return inGroup(
		"add",
		kase{
			CaseInfo: CaseInfo{
				Name: "creates-interface", Rows: []int{40}, Strength: Should,
				About: "After ADD, CNI_IFNAME is in the container, and up, and the host has the interface that it had.",
				Fix:   "make the interface under the name CNI_IFNAME in the namespace CNI_NETNS, and switch it on; on the host that name may be another interface's",
			},
			profiles: attaching,
			run:      addCreates,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "existing-interface", Rows: []int{43}, Strength: Must,
				About: "ADD fails when the container has an interface of that name already, and leaves it alone.",
				Fix:   "look for CNI_IFNAME in the container first, and fail if it is there; remove in case of a failure only what this ADD made",
			},
			profiles: attaching,
			run:      addExisting,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "repeated", Rows: []int{43, 44}, Strength: Must,
				About: "A second ADD of an attachment does not damage the first one.",
				Fix:   "fail, or answer with the same result, when the attachment is there already; undo only what this very call did",
			},
			run: addRepeated,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "after-del", Rows: []int{44, 49}, Strength: Should,
				About: "An attachment can be made again after its DEL.",
				Fix:   "remove in DEL what would be in the way of another ADD with the same container ID and interface name",
			},
			run: addAfterDel,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "second-interface", Rows: []int{45}, Strength: Should,
				About: "A container can join the same network a second time under another interface name.",
				Fix:   "derive every name and key on the host from container ID and interface name together, not from the container ID alone; take a route in the container that the other interface has for no failure, or set it beside that one",
			},
			profiles: []Profile{ProfileInterface, ProfileIPAM},
			run:      addSecond,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "failure-leaves-nothing", Rows: []int{165}, Strength: Should,
				About: "An ADD that fails takes back what it did.",
				Fix:   "remove interface, addresses and rules on every path on which ADD fails; an address that was released and is still on an interface will be given to somebody else",
			},
			profiles: []Profile{ProfileInterface},
			needs:    []need{aDelegate},
			run:      addFailureLeavesNothing,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "failure-del", Rows: []int{53, 57}, Strength: Must,
				About: "DEL after an ADD that failed succeeds, and nothing is left then.",
				Fix:   "have DEL remove what is there of an attachment that is not complete, without prevResult, and take what is not there for removed",
			},
			profiles: []Profile{ProfileInterface},
			needs:    []need{aDelegate},
			run:      addFailureDel,
		},
	)
}

func addCreates(p *probe) {
	a := p.attached()
	link := p.inventory(a.ns).links[a.ifname]
	if link == nil {
		p.broken("after ADD, the container has no interface %s: %s", a.ifname, a.parsed)
	}
	if link.RawFlags&1 == 0 { // IFF_UP
		p.broken("after ADD, %s is down", a.ifname)
	}
	own := strings.Contains(string(p.config.encode()), strconv.Quote(uplink))
	if !own && p.inventory(p.node).links[uplink] == nil {
		p.broken("ADD takes %s away from the host, whose own interface it is and which the configuration does not name", uplink)
	}
}

func addExisting(p *probe) {
	p.attached()
	a := p.container()
	p.inside(a, func(c *nl.Conn) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = a.ifname
		return c.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: "peer"})
	})
	p.prepare(a)
	before := p.look(a)
	if got := p.add(a); got.exit == 0 {
		p.broken("the container has an interface %s already, and ADD: %s", a.ifname, got)
	}
	if gone := p.gone(before, a); gone != "" {
		p.broken("the container has an interface %s already; ADD fails, and takes away:\n%s", a.ifname, excerpt(gone))
	}
}

// gone is what went away since a look from before.
func (p *probe) gone(before State, containers ...*attachment) string {
	var gone []string
	for line := range strings.Lines(before.Diff(p.look(containers...))) {
		if strings.HasPrefix(line, "- ") {
			gone = append(gone, strings.TrimSpace(line))
		}
	}
	return strings.Join(gone, "\n")
}

func addRepeated(p *probe) {
	a := p.attached()
	before := p.look(a)
	first := *a
	got := p.add(a)
	if gone := p.gone(before, a); gone != "" {
		p.broken("the second ADD (%s) takes from the first attachment:\n%s", got, excerpt(gone))
	}
	if p.version < "0.4.0" {
		return
	}
	if got := p.check(&first); !got.succeeded() && p.check(p.attached()).succeeded() {
		p.broken("after a second ADD, CHECK of the first attachment: %s", got)
	}
}

func addAfterDel(p *probe) {
	a := p.attached()
	p.needed(p.del(a))
	if got := p.add(a); !got.succeeded() {
		p.broken("ADD after ADD and DEL: %s", got)
	}
}

func addSecond(p *probe) {
	delete(p.config.object("ipam"), "routes") // a container has one default route
	delete(p.config, "isDefaultGateway")
	first := p.attached()
	if got := p.add(p.second(first)); !got.succeeded() {
		p.broken("ADD of a second interface to the same container: %s", got)
	}
}

func addFailureLeavesNothing(p *probe) {
	p.delegated(nil)
	bystander := p.attached()
	p.script(p.lateFailure())
	a := p.container()
	before := p.look(bystander, a)
	got := p.add(a)
	if got.exit == 0 {
		p.skip("needs an ADD that fails after its delegate; with two routes to 203.0.113.0/24 through gateways on no network of the container it succeeds")
	}
	if diff := p.settled(before, bystander, a); diff != "" {
		p.broken("ADD fails (%s), and there is (+ was left, - went with it):\n%s", got, excerpt(diff))
	}
}

func addFailureDel(p *probe) {
	p.delegated(nil)
	bystander := p.attached()
	p.script(p.lateFailure())
	a := p.container()
	before := p.look(bystander, a)
	if got := p.add(a); got.exit == 0 {
		p.skip("needs an ADD that fails after its delegate; with two routes to 203.0.113.0/24 through gateways on no network of the container it succeeds")
	}
	if got := p.del(a); !got.succeeded() {
		p.broken("DEL after an ADD that failed: %s", got)
	}
	p.nothingLeft("after an ADD that failed, and DEL", before, a, bystander, a)
}
