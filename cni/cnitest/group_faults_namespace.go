package cnitest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func namespaceFaults() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "no-namespace", Rows: []int{34, 38}, Strength: Must,
				About: "ADD fails when CNI_NETNS leads nowhere, to a plain file or to a directory.",
				Fix:   "open CNI_NETNS, and make sure that it is a network namespace (statfs says NSFS_MAGIC), before anything else is done",
			},
			profiles: attaching(),
			run:      addWithoutNamespace,
		},
		{
			CaseInfo: CaseInfo{
				Name: "no-namespace-leaves-nothing", Rows: []int{34, 165}, Strength: Should,
				About: "ADD that fails because CNI_NETNS is no namespace leaves nothing, no reserved address either.",
				Fix:   "check the namespace before a delegate is called, or call the delegate's DEL on this way out too",
			},
			profiles: attaching(),
			run:      addWithoutNamespaceLeavesNothing,
		},
		{
			CaseInfo: CaseInfo{
				Name: "lost-namespace", Rows: []int{53, 54, 56}, Strength: Should,
				About: "DEL succeeds, and leaves nothing on the host, when CNI_NETNS leads nowhere any more, or to a plain file, which a lost mount uncovers.",
				Fix:   "take a CNI_NETNS that is no namespace in DEL for one that is gone with all in it, and go on with what is on the host",
			},
			run: lostNamespace,
		},
		{
			CaseInfo: CaseInfo{
				Name: "host-namespace", Rows: []int{34, 38}, Strength: Should,
				About: "ADD refuses the host's own network namespace before it changes anything.",
				Fix:   "compare CNI_NETNS with /proc/self/ns/net (device and inode) first of all, and fail if they are the same",
			},
			profiles: attaching(),
			run:      hostNamespace,
		},
		{
			CaseInfo: CaseInfo{
				Name: "host-namespace-del", Rows: []int{49, 53}, Strength: Should,
				About: "DEL leaves the host's interface of that name alone when CNI_NETNS has become the host's own namespace.",
				Fix:   "compare CNI_NETNS with /proc/self/ns/net in DEL too: a path below /proc of a process that is gone can lead to the host",
			},
			profiles: inNamespaces(),
			run:      hostNamespaceDel,
		},
		{
			CaseInfo: CaseInfo{
				Name: "recycled-namespace", Rows: []int{49, 117}, Strength: Should,
				About: "DEL leaves another container alone that CNI_NETNS leads to by now.",
				Fix:   "note the interface's MAC address (or index) at ADD, and compare it in DEL before anything is changed or deleted; take that of prevResult only where it has one",
			},
			profiles: inNamespaces(),
			run:      recycledNamespace,
		},
	}
}

// noNamespace is a value of CNI_NETNS that is no namespace.
type noNamespace struct{ what, path string }

func (p *probe) noNamespaces() []noNamespace {
	lost := filepath.Join(p.home, "lost")
	if _, err := os.Lstat(lost); err != nil {
		p.can(os.Symlink("/proc/0/ns/net", lost))
	}
	return []noNamespace{
		{"leads nowhere", filepath.Join(p.home, "nowhere")},
		{"is a link that leads nowhere", lost},
		{"is a plain file", p.file("plain", "")},
		{"is a directory", p.directory("directory")},
	}
}

func addWithoutNamespace(p *probe) {
	for _, no := range p.noNamespaces() {
		r := p.request("ADD", p.container())
		r.env["CNI_NETNS"] = no.path
		if got := p.do(r); got.exit == 0 || got.late {
			p.fault("CNI_NETNS %s, and ADD: %s", no.what, got)
		}
	}
}

func addWithoutNamespaceLeavesNothing(p *probe) {
	bystander := p.attached()
	for _, no := range p.noNamespaces() {
		a := p.container()
		before := p.look(bystander)
		r := p.request("ADD", a)
		r.env["CNI_NETNS"] = no.path
		if got := p.do(r); got.exit == 0 {
			p.skip("needs an ADD that fails; see no-namespace")
		}
		p.nothingLeft(fmt.Sprintf("CNI_NETNS %s, and ADD failed", no.what), before, a, bystander)
	}
}

// lostNamespace takes a node for each: namespaces go when the kernel likes, with all that
// reaches out of them.
func lostNamespace(p *probe) {
	for i := range p.noNamespaces() {
		p.onAnother(fmt.Sprint("lost-", i), func(q *probe) { q.loseNamespace(q.noNamespaces()[i]) })
	}
}

func (p *probe) loseNamespace(no noNamespace) {
	a := p.container()
	bystander, before := p.usualOutside(a)
	p.needAdd(a)
	r := p.request("DEL", a)
	r.env["CNI_NETNS"] = no.path
	p.vanish(a)
	if got := p.do(r); !got.succeeded() {
		p.fault("CNI_NETNS %s, and DEL: %s", no.what, got)
		return
	}
	p.nothingLeftByDEL(fmt.Sprintf("CNI_NETNS %s, and DEL succeeded", no.what), before, a, bystander)
}

func hostNamespace(p *probe) {
	bystander, a := p.attached(), p.container()
	a.ifname = "pod0" // the host has none of that name
	before := p.look(bystander)
	r := p.request("ADD", a)
	r.env["CNI_NETNS"] = p.node.Path()
	got := p.do(r)
	if got.exit == 0 {
		p.fault("CNI_NETNS is the host's own namespace, and ADD: %s", got)
	}
	p.nothingLeft("ADD with the host's own namespace", before, a, bystander)
}

func hostNamespaceDel(p *probe) {
	a := p.attached() // as eth0, which is the name of the host's uplink too
	before := p.look()
	r := p.request("DEL", a)
	r.env["CNI_NETNS"] = p.node.Path()
	got := p.do(r)
	if changed := p.changed(before, uplink); changed != "" {
		p.broken("CNI_NETNS has become the host's own namespace; DEL (%s) changes the host:\n%s", got, excerpt(changed))
	}
}

func recycledNamespace(p *probe) {
	a, other := p.attached(), p.attached()
	before := p.look(other)
	r := p.request("DEL", a)
	p.vanish(a)
	p.can(os.Symlink(other.ns.Path(), a.netns))
	got := p.do(r)
	if changed := p.changed(before, other.ns.name+":", other); changed != "" {
		p.broken("CNI_NETNS leads to the namespace of another container by now; DEL (%s) changes it:\n%s", got, excerpt(changed))
	}
}

// changed is how the lines that have the word differ from a look from before, if any is
// gone or is another by now. What is only new is not meant.
func (p *probe) changed(before State, word string, containers ...*attachment) string {
	diff := with(before.Diff(p.look(containers...)), word)
	if !strings.Contains("\n"+diff, "\n- ") {
		return ""
	}
	return diff
}

// with keeps the lines that have the word.
func with(lines, word string) string {
	var kept []string
	for line := range strings.Lines(lines) {
		if slices.Contains(strings.Fields(line), word) {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept, "\n")
}
