package cnitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/nl"
)

func previousFaults() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "previous-empty", Rows: []int{52, 53}, Strength: Should,
				About: "DEL with an empty prevResult succeeds and leaves nothing.",
				Fix:   "take prevResult as a help in DEL: find what is yours by container ID and interface name",
			},
			run: previousEmpty,
		},
		{
			CaseInfo: CaseInfo{
				Name: "previous-other-version", Rows: []int{53}, Strength: Should,
				About: "DEL with a prevResult of another version than the configuration's succeeds and leaves nothing.",
				Fix:   "decode prevResult by its own cniVersion and convert it; after an upgrade a runtime has results of the old version",
			},
			run: previousOtherVersion,
		},
		{
			CaseInfo: CaseInfo{
				Name: "previous-foreign", Rows: []int{49, 62}, Strength: Should,
				About: "DEL leaves interfaces alone that plugins after this one made and appended to prevResult.",
				Fix:   "remove CNI_IFNAME and what ADD of this plugin made, and not whatever is in prevResult",
			},
			profiles: inNamespaces(),
			run:      previousForeign,
		},
		{
			CaseInfo: CaseInfo{
				Name: "previous-nonsense", Rows: []int{38, 39, 53}, Strength: Should,
				About: "DEL and CHECK with a prevResult that makes no sense succeed or say what is wrong; the plugin does not crash.",
				Fix:   "check what is taken out of prevResult, such as the range of an index, and decode it in DEL as far as it goes",
			},
			run: previousNonsense,
		},
	}
}

// delWith attaches a container, sends DEL with another prevResult, and expects that
// nothing is left.
func (p *probe) delWith(what string, previous func(a *attachment) any) {
	a := p.container()
	bystander, before := p.usual(a)
	p.needAdd(a)
	r := p.request(cni.CommandDel, a)
	r.config["prevResult"] = previous(a)
	if got := p.do(r); !got.succeeded() {
		p.fault("prevResult %s, and DEL: %s", what, got)
		p.del(a)
		return
	}
	p.nothingLeftByDEL("prevResult "+what+", and DEL succeeded", before, a, bystander, a)
}

func previousEmpty(p *probe) {
	p.delWith("is an empty object", func(*attachment) any { return map[string]any{} })
	p.delWith("has a version only", func(a *attachment) any { return map[string]any{"cniVersion": a.version} })
}

func previousOtherVersion(p *probe) {
	for _, version := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		if version == p.version {
			continue
		}
		p.delWith("is of version "+version, func(a *attachment) any {
			encoded, err := a.parsed.Encode(version)
			p.can(err)
			doc, err := parseDocument(encoded)
			p.can(err)
			return map[string]any(doc)
		})
	}
}

func previousForeign(p *probe) {
	a := p.attached()
	for _, n := range []*Namespace{p.node, a.ns} {
		p.can(n.withConn(func(c *nl.Conn) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = "foreign0"
			return c.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: "foreign1"})
		}))
	}
	before := p.look(a)
	r := p.request(cni.CommandDel, a)
	previous := r.config.object("prevResult")
	next := len(previous.list("interfaces"))
	previous["interfaces"] = append(previous.list("interfaces"),
		map[string]any{"name": "foreign0"}, map[string]any{"name": "foreign0", "sandbox": a.netns})
	ip := map[string]any{"address": "203.0.113.7/24", "interface": json.Number(fmt.Sprint(next + 1))}
	if a.version < "1.0.0" {
		ip["version"] = "4"
	}
	previous["ips"] = append(previous.list("ips"), ip)
	previous["routes"] = append(previous.list("routes"), map[string]any{"dst": "203.0.113.128/25"})
	got := p.do(r)
	if !got.succeeded() {
		p.fault("prevResult has what plugins after this one made, and DEL: %s", got)
	}
	if gone := with(p.gone(before, a), "foreign0"); gone != "" {
		p.fault("prevResult has an interface that a plugin after this one made; DEL (%s) takes it away:\n%s", got, excerpt(gone))
	}
}

// nonsense is what a prevResult may look like that was kept or made badly.
func nonsense() map[string]string {
	return map[string]string{
		"is a string":                        `"result"`,
		"is a list":                          `[]`,
		"has lists of null":                  `{"interfaces": [null], "ips": [null], "routes": [null], "dns": null}`,
		"has an index without interface":     `{"interfaces": [], "ips": [{"address": "192.0.2.1/24", "interface": 7}]}`,
		"has a negative index":               `{"interfaces": [{"name": "eth0"}], "ips": [{"address": "192.0.2.1/24", "interface": -1}]}`,
		"has values that are no addresses":   `{"interfaces": [{"name": "eth0", "mac": "none"}], "ips": [{"address": "none", "gateway": "none"}]}`,
		"has values of other types":          `{"interfaces": {}, "ips": "none", "routes": 5, "dns": []}`,
		"is of a version that there is none": `{"cniVersion": "9.9.9", "interfaces": [], "ips": []}`,
	}
}

func previousNonsense(p *probe) {
	a := p.attached()
	all := nonsense()
	for _, what := range slices.Sorted(maps.Keys(all)) {
		previous := map[string]any{}
		p.can(json.Unmarshal([]byte(`{"v": `+all[what]+`}`), &previous))
		for _, command := range []cni.Command{cni.CommandCheck, cni.CommandDel} {
			if command == cni.CommandCheck && a.version < "0.4.0" {
				continue
			}
			r := p.request(command, a)
			r.config["prevResult"] = plain(previous["v"])
			if wrong := unclear(p.do(r)); wrong != "" {
				p.fault("prevResult %s, and %s: %s", what, command, wrong)
			}
		}
	}
	if got := p.del(a); !got.succeeded() {
		p.needRepeatedDEL()
		p.fault("DEL with the right prevResult, after some that made no sense: %s", got)
	}
}
