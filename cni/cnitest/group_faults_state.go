package cnitest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func stateFaults() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "state-read-only", Rows: []int{38, 39, 49, 53}, Strength: Should,
				About: "With its directories read-only, the plugin fails clearly or does without them: ADD leaves nothing, and DEL does not claim to have removed what is still there.",
				Fix:   "report file system errors (code 5), take back what ADD did before, and let DEL fail as long as a record cannot be removed, so that the runtime tries again",
			},
			needs: []need{aProcess, files},
			run:   stateReadOnly,
		},
		{
			CaseInfo: CaseInfo{
				Name: "state-read-only-status", Rows: []int{79}, Strength: Should,
				About: "STATUS fails when ADD cannot succeed because the plugin's directories are read-only.",
				Fix:   "have STATUS try what ADD needs: whether its directory can be written to",
			},
			needs: []need{aProcess, files, newCommands},
			run:   stateReadOnlyStatus,
		},
		{
			CaseInfo: CaseInfo{
				Name: "state-full", Rows: []int{38, 39, 49, 53}, Strength: Should,
				About: "On a full file system ADD fails clearly and leaves nothing, DEL works, and with room again ADD does.",
				Fix:   "remove a file that could not be written to its end; need no room in DEL",
			},
			needs: []need{aProcess, files},
			run:   stateFull,
		},
		{
			CaseInfo: CaseInfo{
				Name: "state-torn", Rows: []int{38, 39, 53, 102}, Strength: Should,
				About: "When a file of one attachment is empty, cut off or garbage, as after a power loss, calls fail clearly or succeed, and other attachments keep what they have.",
				Fix:   "expect that a file has any content: skip what cannot be read, go on with the rest, and give no address away that another file still holds",
			},
			needs: []need{aProcess, files},
			run:   stateTorn,
		},
	}
}

// files: there are directories in which the plugin keeps state.
func files(x *exam) string {
	if len(x.target.Dirs) == 0 && !strings.Contains(string(x.target.Config), Placeholder) {
		return "no directories with the plugin's state are declared, and the configuration has no " + Placeholder
	}
	return ""
}

// existing are the directories that exist.
func (p *probe) existing() []string {
	dirs := slices.DeleteFunc(p.dirs(), func(dir string) bool {
		_, err := os.Stat(dir)
		return err != nil
	})
	return dirs
}

// withMounts has a part of the case run with other mounts; it is skipped where that is
// not allowed.
func (p *probe) withMounts(mount func([]string) error, part func(m *mounts)) {
	dirs := p.existing()
	m, err := newMounts(p.node, func() error { return mount(dirs) })
	if err != nil {
		p.skip("needs the right to mount: %v", err)
	}
	defer m.close()
	usual := p.mounts
	p.mounts = m
	defer func() { p.mounts = usual }()
	part(m)
}

func stateReadOnly(p *probe) {
	old, a := p.attached(), p.container()
	p.prepare(a)
	writes := false
	p.withMounts(readOnly, func(*mounts) { writes = p.callsReadOnly(old, a) })
	if !writes {
		p.needed(p.del(a))
		return
	}
	for _, attachment := range []*attachment{old, a} {
		if got := p.del(attachment); !got.succeeded() {
			p.fault("its directories can be written again, and DEL: %s", got)
		}
		if names := p.recorded(attachment); names != "" {
			p.fault("its directories can be written again; DEL succeeded, and files still name the container: %s", names)
		}
	}
	if got := p.add(p.container()); !got.succeeded() {
		p.fault("its directories can be written again, and ADD: %s", got)
	}
}

// callsReadOnly adds one attachment and deletes another. It reports whether the plugin
// needs to write.
func (p *probe) callsReadOnly(old, a *attachment) bool {
	before := p.look(old, a)
	got := p.add(a)
	if wrong := unclear(got); wrong != "" {
		p.fault("its directories are read-only, and ADD: %s", wrong)
	}
	if got.exit == 0 {
		return false
	}
	if diff := p.settled(before, old, a); diff != "" {
		p.fault("its directories are read-only; ADD fails (%s), and there is (+ was left, - went with it):\n%s", got, excerpt(diff))
	}
	got = p.del(old)
	if wrong := unclear(got); wrong != "" {
		p.fault("its directories are read-only, and DEL: %s", wrong)
	}
	if names := p.recorded(old); got.exit == 0 && names != "" {
		p.fault("its directories are read-only; DEL claims success, and files still name the container: %s", names)
	}
	return true
}

// recorded lists the files that name a container, but for those of plugins before this
// one.
func (p *probe) recorded(a *attachment) string {
	files := slices.DeleteFunc(p.mentions(a), func(file string) bool { return slices.Contains(a.mentioned, file) })
	return strings.Join(files, ", ")
}

func stateReadOnlyStatus(p *probe) {
	p.attached()
	a := p.container()
	p.prepare(a)
	p.withMounts(readOnly, func(*mounts) {
		if p.add(a).exit == 0 {
			p.skip("ADD succeeds although its directories are read-only")
		}
		r := p.request(cni.CommandStatus, nil)
		r.config["cniVersion"] = "1.1.0"
		if got := p.do(r); got.exit == 0 {
			p.broken("its directories are read-only, ADD fails, and STATUS: %s", got)
		}
	})
}

// filler is the file that takes all the room.
const filler = "cnitest-filler"

// fill takes all the room of the directories.
func fill(dirs []string) error {
	for _, dir := range dirs {
		f, err := os.Create(filepath.Join(dir, filler))
		if err != nil {
			return err
		}
		block := make([]byte, 4096)
		for err == nil {
			_, err = f.Write(block)
		}
		if closed := f.Close(); closed != nil {
			return closed
		}
		if !noRoom(err) {
			return err
		}
	}
	return nil
}

// stateFull has everything happen on a small file system of the case's own.
func stateFull(p *probe) {
	p.withMounts(small, func(m *mounts) {
		dirs := p.existing()
		p.attached() // what is shared exists then
		a := p.container()
		p.prepare(a)
		p.can(m.do(p.node, func() error { return fill(dirs) }))
		p.addWhenFull(m, dirs, a)
		p.can(m.do(p.node, func() error { return empty(dirs) }))
		if got := p.add(a); !got.succeeded() {
			p.fault("the file system has room again, and ADD: %s", got)
		}
		if got := p.del(a); !got.succeeded() {
			p.fault("the file system has room again, and DEL: %s", got)
		}
	})
}

// addWhenFull expects an ADD that fails and leaves nothing, before DEL on the network and
// after it in the directories.
func (p *probe) addWhenFull(m *mounts, dirs []string, a *attachment) {
	before, network := p.names(m, dirs), p.network(a)
	got := p.add(a)
	if wrong := unclear(got); wrong != "" {
		p.fault("the file system is full, and ADD: %s", wrong)
	}
	if got.exit == 0 {
		p.needed(p.del(a))
		p.skip("ADD succeeds although the file system is full")
	}
	if diff := p.await(func() string { return network.Diff(p.network(a)) }); diff != "" {
		p.fault("the file system is full; ADD fails (%s), and there is (+ was left, - went with it):\n%s", got, excerpt(diff))
	}
	deleted := "DEL succeeded"
	if got := p.del(a); !got.succeeded() {
		deleted = "DEL failed, too"
		p.fault("the file system is full, ADD failed, and DEL: %s", got)
	}
	if diff := before.Diff(p.names(m, dirs)); diff != "" {
		p.fault("the file system is full; ADD failed, %s, and there is (+ was left, - went with it):\n%s",
			deleted, excerpt(strings.ReplaceAll(diff, p.stateDir(), Placeholder)))
	}
}

// empty gives the room back.
func empty(dirs []string) error {
	for _, dir := range dirs {
		if err := os.Remove(filepath.Join(dir, filler)); err != nil {
			return err
		}
	}
	return nil
}

// names lists what is in the directories as the plugin sees them.
func (p *probe) names(m *mounts, dirs []string) (names State) {
	p.can(m.do(p.node, func() (err error) {
		names, err = fileState(dirs)
		return err
	}))
	for i := range names {
		names[i] = strings.Join(strings.Fields(names[i])[:2], " ")
	}
	return names
}

// network is what the node and a container hold, without files.
func (p *probe) network(a *attachment) (s State) {
	for _, line := range p.look(a) {
		if !strings.Contains(line, ": file ") {
			s = append(s, line)
		}
	}
	return s
}

// stateTorn tears each file that an ADD leaves, in each way, on a fresh node each.
func stateTorn(p *probe) {
	ways := []struct {
		what string
		tear func(content []byte) []byte
	}{
		{"empty", func([]byte) []byte { return nil }},
		{"cut off", func(content []byte) []byte { return content[:len(content)/2] }},
		{"garbage", func(content []byte) []byte { return []byte(strings.Repeat("\x00{\xff", 1+len(content)/3)) }},
	}
	torn := 0
	for _, way := range ways {
		for number, more := 0, true; more; number++ {
			p.onAnother(fmt.Sprintf("%s-%d", way.what[:3], number), func(q *probe) {
				more = q.tear(number, way.what, way.tear)
			})
			if more {
				torn++
			}
		}
	}
	if torn == 0 {
		p.skip("ADD leaves no file of its own in %s", strings.Join(p.dirs(), ", "))
	}
}

// tear attaches two containers, tears one file of the second, and makes every call. It
// reports whether there is a file of that number.
func (p *probe) tear(number int, what string, tear func([]byte) []byte) bool {
	const most = 8
	kept, a := p.attached(), p.container()
	p.prepare(a)
	before := p.own()
	p.needAdd(a)
	files := slices.DeleteFunc(p.own(), func(path string) bool { return slices.Contains(before, path) })
	if number >= min(len(files), most) {
		return false
	}
	content, err := os.ReadFile(files[number])
	p.can(err)
	was := sound{files: p.mentions(kept), alone: sharedAddress(kept, a) == "", checks: p.version >= "0.4.0" && p.check(kept).succeeded()}
	p.can(os.WriteFile(files[number], tear(content), 0o600))
	torn := strings.ReplaceAll(files[number], p.stateDir(), Placeholder) + " is " + what
	another := p.callsWith(torn, a, kept)
	p.intact(torn, kept, another, was)
	return true
}

// callsWith makes each call with a torn file of an attachment, none of which may crash,
// and returns another attachment, which was tried.
func (p *probe) callsWith(torn string, a, kept *attachment) (another *attachment) {
	another = p.container()
	var calls []*request
	if p.version >= "0.4.0" {
		calls = append(calls, p.request(cni.CommandCheck, a))
	}
	calls = append(calls, p.request(cni.CommandDel, a))
	if p.version >= "1.1.0" {
		calls = append(calls, p.gcRequest(kept))
	}
	var got reply
	for _, r := range append(calls, p.request(cni.CommandAdd, another)) {
		got = p.do(r)
		if wrong := unclear(got); wrong != "" {
			p.fault("%s, and %s: %s", torn, r.env["CNI_COMMAND"], wrong)
		}
	}
	p.keep(another, got)
	return another
}

// sound is what an attachment has as long as no file is torn.
type sound struct {
	files         []string
	alone, checks bool // its address is its own; CHECK succeeds
}

// intact expects that an attachment has all that it had: its files, and its address alone.
func (p *probe) intact(torn string, kept, another *attachment, was sound) {
	if shared := sharedAddress(kept, another); shared != "" && was.alone {
		p.fault("%s, and ADD gives %s to another container, which an attachment with intact files has", torn, shared)
	}
	if was.checks {
		if got := p.check(kept); !got.succeeded() {
			p.fault("%s, and CHECK of an attachment with intact files: %s", torn, got)
		}
	}
	there := p.mentions(kept)
	if lost := slices.DeleteFunc(was.files, func(path string) bool { return slices.Contains(there, path) }); len(lost) > 0 {
		p.fault("%s, and files of another attachment are gone: %s", torn, strings.Join(lost, ", "))
	}
	if got := p.del(kept); !got.succeeded() {
		p.fault("%s, and DEL of an attachment with intact files: %s", torn, got)
	}
}

// own lists the regular files in the plugin's directories.
func (p *probe) own() (paths []string) {
	state, err := fileState(p.dirs())
	p.can(err)
	for _, line := range state {
		if strings.Contains(line, " bytes sha256 ") {
			paths = append(paths, strings.Fields(line)[1])
		}
	}
	return paths
}

// sharedAddress is an address that both attachments have.
func sharedAddress(a, b *attachment) string {
	if a.parsed == nil || b.parsed == nil {
		return ""
	}
	for _, ip := range a.parsed.IPs {
		for _, other := range b.parsed.IPs {
			if ip.Address.Addr() == other.Address.Addr() {
				return ip.Address.Addr().String()
			}
		}
	}
	return ""
}
