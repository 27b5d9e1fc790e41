package fromskel_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

var update = flag.Bool("update", false, "write the differences into docs/compatibility.md")

const (
	document      = "../../docs/compatibility.md"
	documentBegin = "<!-- differences: begin (written by go test ./cni/fromskel -update) -->\n"
	documentEnd   = "<!-- differences: end -->"
)

// A difference is what the three sides do in cases that belong to one class.
type difference struct {
	class                class
	skel, adapted, typed string
	cases                []testCase // the simplest first
}

// Every way in which plugins differ from those of skel is listed, with its reason, in
// docs/compatibility.md; and nothing is listed that is no difference.
func TestAgainstSkel(t *testing.T) {
	testenv.NetAdmin(t)
	w := newWorld(t)
	cases := w.allCases()
	found := w.compare(t, cases)
	text := render(t, found, len(cases))
	t.Run("executed", func(t *testing.T) { w.testProcesses(t, found) })
	listed, replace := testenv.Section(t, document, documentBegin, documentEnd)
	if *update {
		replace(text)
		return
	}
	assert.Equal(t, listed, text, "%s lists other differences: go test ./cni/fromskel -update", document)
}

// compare calls every case on all sides and sorts what differs.
func (w world) compare(t *testing.T, cases []testCase) []*difference {
	b, dir := newBench(t), executables(t)
	found := map[string]*difference{}
	for _, c := range cases {
		x := w.call(c)
		run := func(s side) outcome {
			if c.exits() {
				return execute(t, dir, s, x)
			}
			return b.call(t, s, x)
		}
		skel, adapted := run(sideSkel), run(sideAdapted)
		typed := adapted
		expressible := !adapted.ran || !isAboutPrinting(c)
		if expressible {
			typed = run(sideTyped)
		}
		for _, ours := range []outcome{adapted, typed} {
			if fault := ours.fault(x.stdin); fault != "" && !c.exits() {
				t.Errorf("%s: %s", c, fault)
			}
			if exists := slices.Contains(cni.SupportedVersions(), configured(x.stdin, "0.1.0")); exists && skel.code == ours.code && skel.words != ours.words {
				t.Errorf("%s: the words are %q, skel's are %q", c, ours.words, skel.words)
			}
		}
		if skel.same(adapted) && skel.same(typed) {
			continue
		}
		k, ok := explain(c, skel, adapted, typed)
		if !ok {
			t.Errorf("a difference of no class: %s\n%s %+v\n%s %+v\n%s %+v", c, sideSkel, skel, sideAdapted, adapted, sideTyped, typed)
			continue
		}
		d := &difference{class: k, skel: skel.text(x.stdin), adapted: adapted.text(x.stdin), typed: typed.text(x.stdin)}
		if !expressible {
			d.typed = "—"
		}
		key := k.title + d.skel + d.adapted + d.typed
		if found[key] == nil {
			found[key] = d
		}
		found[key].cases = append(found[key].cases, c)
	}
	return slices.Collect(maps.Values(found))
}

func explain(c testCase, skel, adapted, typed outcome) (class, bool) {
	ours := adapted
	if skel.same(adapted) {
		ours = typed
	}
	for _, k := range classes() {
		if k.explains(c, skel, ours) {
			return k, true
		}
	}
	return class{}, false
}

// same compares what is expressible: skel's errors have no version.
func (o outcome) same(other outcome) bool {
	o.words, other.words = "", ""
	if o.code != "" && other.code != "" {
		o.version, other.version = "", ""
	}
	return o == other
}

// fault is what is wrong with an outcome of ours, whatever skel does.
func (o outcome) fault(stdin string) string {
	switch {
	case o.junk || o.documents > 1:
		return "standard output is not one document"
	case (o.exit == 0) != (o.code == ""):
		return "the exit status contradicts the document"
	case o.code != "" && o.version != configured(stdin, "1.1.0") && o.version != "1.1.0":
		return "the error has the wrong version " + o.version
	}
	return ""
}

// configured is the version of a configuration.
func configured(stdin, fallback string) string {
	var config struct{ CNIVersion string }
	if json.Unmarshal([]byte(stdin), &config) != nil || config.CNIVersion == "" {
		return fallback
	}
	return config.CNIVersion
}

// text is an outcome in words.
func (o outcome) text(stdin string) string {
	text := "nothing"
	switch {
	case o.documents > 1:
		text = fmt.Sprintf("%d documents", o.documents)
	case o.junk:
		text = "no JSON"
	case o.code != "":
		text = "error " + o.code
	case strings.Contains(o.result, "supportedVersions") && o.version == configured(stdin, "1.1.0"):
		text = "versions"
	case strings.Contains(o.result, "supportedVersions"):
		text = "versions, as 1.1.0"
	case o.result != "" && o.version != configured(stdin, "0.1.0"):
		text = "a result of another version"
	case o.result != "":
		text = "a result"
	}
	text = fmt.Sprintf("exit %d: %s", o.exit, text)
	if o.ran {
		text += "; ran"
	}
	return text
}

func render(t *testing.T, found []*difference, cases int) string {
	slices.SortFunc(found, func(a, b *difference) int {
		return cmp.Or(cmp.Compare(len(b.cases), len(a.cases)), strings.Compare(a.cases[0].String(), b.cases[0].String()))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "\nFound among %d calls.\n", cases)
	for _, k := range classes() {
		if !slices.ContainsFunc(found, func(d *difference) bool { return d.class.title == k.title }) {
			t.Errorf("no case is of class %q", k.title)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| commands | calls | for example | skel | fromskel | cni.Plugin |\n|---|---|---|---|---|---|\n", k.title, k.reason)
		for _, d := range found {
			if d.class.title == k.title {
				fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |\n", d.commands(), len(d.cases), cmp.Or(d.cases[0].example(), "nothing else"), d.skel, d.adapted, d.typed)
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

func (d *difference) commands() string {
	var list []string
	for _, command := range commands() {
		if slices.ContainsFunc(d.cases, func(c testCase) bool { return c.command == command }) {
			list = append(list, cmp.Or(command, "none"))
		}
	}
	return strings.Join(list, " ")
}

// testProcesses checks that the bench is like processes: it executes one call of each
// class.
func (w world) testProcesses(t *testing.T, found []*difference) {
	b, dir := newBench(t), executables(t)
	done := map[string]bool{}
	for _, d := range found {
		c := d.cases[0]
		if done[d.class.title] || c.exits() {
			continue
		}
		done[d.class.title] = true
		x := w.call(c)
		for _, s := range sides() {
			assert.Equal(t, b.call(t, s, x), execute(t, dir, s, x), "%s %s", s, c)
		}
	}
}
