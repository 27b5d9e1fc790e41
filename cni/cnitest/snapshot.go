package cnitest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// settling is how long the kernel may take to remove what a plugin deleted, and to
// finish what it added.
const settling = 1000 * time.Millisecond

// look is all that the node holds, the plugin's files, and what the containers hold.
// What the kernel derives by itself, and when it likes, is left out.
func (p *probe) look(containers ...*attachment) State {
	state, err := p.node.State(p.dirs()...)
	p.can(err)
	var all State
	for _, line := range state {
		all = p.keepLine(all, "node: ", line)
	}
	for _, a := range containers {
		state, err := a.ns.State()
		p.can(err)
		for _, line := range state {
			all = p.keepLine(all, a.ns.name+": ", line)
		}
	}
	slices.Sort(all)
	return all
}

// keepLine appends a line unless the kernel made what it shows.
func (p *probe) keepLine(all State, where, line string) State {
	fields := strings.Fields(line)
	switch {
	case strings.Contains(line, " table 255"), // follows from addresses
		line == "addr 127.0.0.1/8 dev lo scope 254", line == "addr ::1/128 dev lo scope 254", // come with the first "up"
		len(fields) > 1 && fields[0] == "addr" && strings.HasPrefix(fields[1], "fe80:"),
		len(fields) > 2 && fields[0] == "route" && (strings.HasPrefix(fields[2], "fe80:") || strings.HasPrefix(fields[2], "ff00:")):
		return all
	case isIptablesTable(fields):
		return all
	case fields[0] == "file" && len(fields) > 3: // what is in it may change; that it is there counts
		line = strings.Join(fields[:3], " ")
		line = strings.ReplaceAll(line, p.stateDir(), Placeholder)
	case fields[0] == "link" && len(fields) > 6 && fields[2] == "bridge": // its MTU and MAC follow the ports
		line = strings.Join(append(fields[:3:3], fields[7:]...), " ")
	case fields[0] == "nft": // handles count up
		line = withoutHandle(line)
	}
	return append(all, where+line)
}

// isIptablesTable reports whether a line is a table that iptables makes as soon as it looks
// for something, and never removes. What a plugin has in it has lines of its own.
func isIptablesTable(fields []string) bool {
	return len(fields) == 4 && fields[0] == "nft" && fields[1] == "table" &&
		slices.Contains([]string{"ip", "ip6"}, fields[2]) &&
		slices.Contains([]string{"filter", "nat", "mangle", "raw", "security"}, fields[3])
}

// withoutHandle leaves out the number that the kernel gave a rule.
func withoutHandle(line string) string {
	before, after, found := strings.Cut(line, " handle ")
	if !found {
		return line
	}
	_, after, _ = strings.Cut(after, " ")
	return strings.TrimSpace(before + " " + after)
}

// settled compares with a look from before: "" if nothing came and nothing went. It
// gives the kernel time.
func (p *probe) settled(before State, containers ...*attachment) string {
	return p.await(func() string { return before.Diff(p.look(containers...)) })
}

// await repeats a question until the answer is "", for as long as the kernel may take.
func (p *probe) await(ask func() string) string {
	for deadline := time.Now().Add(settling); ; time.Sleep(10 * time.Millisecond) {
		answer := ask()
		if answer == "" || time.Now().After(deadline) || p.ctx.Err() != nil {
			return answer
		}
	}
}

// mentions lists the files of the plugin that name a container, in their name or
// in what is in them.
func (p *probe) mentions(a *attachment) []string {
	var found []string
	for _, dir := range p.dirs() {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return ignoreAbsent(err)
			}
			var content []byte
			if entry.Type().IsRegular() { // to read a FIFO may take for ever
				content, err = os.ReadFile(path)
			}
			if strings.Contains(path, a.id) || bytes.Contains(content, []byte(a.id)) {
				found = append(found, strings.ReplaceAll(path, p.stateDir(), Placeholder))
			}
			return ignoreAbsent(err)
		})
		p.can(err)
	}
	return found
}

// nothingLeft notes what is left of an attachment since a look from before.
func (p *probe) nothingLeft(what string, before State, a *attachment, containers ...*attachment) {
	for _, left := range p.leftovers(before, a, containers...) {
		p.fault("%s: %s", what, left)
	}
}

// nothingLeftByDEL is nothingLeft for a case in which there is something special about
// DEL. It is skipped for a plugin that leaves something when there is not.
func (p *probe) nothingLeftByDEL(what string, before State, a *attachment, containers ...*attachment) {
	left := p.leftovers(before, a, containers...)
	if len(left) == 0 {
		return
	}
	p.onAnother("usual", func(q *probe) {
		if len(q.oneLife()) > 0 {
			q.skip("needs a DEL that leaves nothing when nothing is the matter; see del/leaves-nothing")
		}
	})
	for _, text := range left {
		p.fault("%s: %s", what, text)
	}
}

// leftovers says what is left of an attachment since a look from before. What the plugins
// before the one under test made for it may be there or have gone.
func (p *probe) leftovers(before State, a *attachment, containers ...*attachment) (left []string) {
	diff := p.await(func() string {
		now := p.look(containers...)
		diff := before.Diff(now)
		if a.early != nil && diff != "" {
			diff = common(diff, a.early.Diff(now))
		}
		return diff
	})
	if diff != "" {
		left = append(left, "what is there differs from before (+ was left, - went with it):\n"+excerpt(diff))
	}
	files := slices.DeleteFunc(p.mentions(a), func(file string) bool { return slices.Contains(a.mentioned, file) })
	if len(files) > 0 {
		left = append(left, "files still name the container: "+strings.Join(files, ", "))
	}
	return left
}

// common are the lines that two differences share.
func common(a, b string) string {
	others := strings.Split(b, "\n")
	lines := slices.DeleteFunc(strings.Split(a, "\n"), func(line string) bool { return !slices.Contains(others, line) })
	return strings.Join(lines, "\n")
}

// excerpt moves lines to the right, and shortens a long list.
func excerpt(lines string) string {
	const limit = 12
	all := strings.Split(lines, "\n")
	rest := ""
	if len(all) > limit {
		all, rest = all[:limit], "\n  …"
	}
	return "  " + strings.Join(all, "\n  ") + rest
}
