package fromskel_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/netns"
)

// A testCase is a call, described by what it is made of. A choice that is not there is
// the ordinary one: "valid" for a variable, "1.1.0", "plain" and "succeed".
type testCase struct {
	command string
	choices map[string]string // by variable, and "version", "stdin", "do"
}

func valueOf(env []string, variable string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, variable+"="); ok {
			return value
		}
	}
	return ""
}

func (c testCase) is(what string, choices ...string) bool {
	return slices.Contains(choices, c.choices[what])
}

// String names the case.
func (c testCase) String() string { return strings.TrimSpace(c.command + " " + c.example()) }

// example describes the case without its command.
func (c testCase) example() string {
	var pieces []string
	for _, what := range []string{containerID, ifName, netNS, searchPath, arguments, override, "version", "stdin", "do"} {
		if choice, ok := c.choices[what]; ok {
			pieces = append(pieces, strings.TrimPrefix(what+" "+choice, "do "))
		}
	}
	return strings.Join(pieces, ", ")
}

// exits reports whether the case ends the process that it runs in.
func (c testCase) exits() bool { return c.is("do", exits()...) }

// world is where the cases are called: what their paths lead to.
type world struct {
	namespace, file string
}

func newWorld(t *testing.T) world {
	t.Helper()
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { ns.Close() })
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	return world{ns.Path(), file}
}

// variables are the choices for each variable, with their values; absent has none.
func (w world) variables() map[string]map[string]string {
	return map[string]map[string]string{
		containerID: {"": "c1", "empty": "", "invalid": "a/b"},
		ifName:      {"": "eth0", "empty": "", "invalid": "a/b", "reserved": "all"},
		netNS:       {"": w.namespace, "empty": "", "missing": "/nowhere", "a file": w.file, "the host's": "/proc/self/ns/net"},
		searchPath:  {"": "/nowhere", "empty": ""},
		arguments:   {"": "A=1;B=2", "unparsable": "A", "with a trailing semicolon": "A=1;", "with = in a value": "A=1=2"},
		override:    {"set": "1"},
	}
}

func (w world) call(c testCase) call {
	env := []string{"CNI_COMMAND=" + c.command}
	switch c.command {
	case "":
		env = nil
	case "(empty)":
		env = []string{"CNI_COMMAND="}
	}
	for variable, values := range w.variables() {
		if value, ok := values[c.choices[variable]]; ok {
			env = append(env, variable+"="+value)
		}
	}
	slices.Sort(env)
	if c.is("stdin", "unreadable") {
		return call{env: env, dir: filepath.Dir(w.file)}
	}
	return call{env: env, stdin: stdinOf(c)}
}

// versions are the choices for cniVersion beside those that exist.
func versions() []string {
	return append(cni.SupportedVersions()[:6:6], "1.0.5", "9.9.9", "not semver", "empty", "absent", "a number")
}

// stdins are the choices for standard input, with %s for cniVersion and %s for the
// behaviour, as members.
func stdins() map[string]string {
	network := `{%s"name":"lan","type":"subject","cni.dev/valid-attachments":[]%s`
	return map[string]string{
		"":                             network + `}`,
		"empty":                        ``,
		"unreadable":                   ``,
		"not JSON":                     `{%s`,
		"null":                         `null`,
		"a list":                       `[]`,
		"two documents":                network + `}{}`,
		"with text behind":             network + `} text`,
		"without a name":               `{%s"type":"subject"%s}`,
		"with an empty name":           `{%s"type":"subject","name":""%s}`,
		"with a bad name":              `{%s"type":"subject","name":"../lan"%s}`,
		"with a number for a name":     `{%s"type":"subject","name":1%s}`,
		"with a number for a type":     `{%s"type":1,"name":"lan"%s}`,
		"without a type":               `{%s"name":"lan","cni.dev/valid-attachments":[]%s}`,
		"without attachments":          `{%s"name":"lan"%s}`,
		"with null for attachments":    `{%s"name":"lan","cni.dev/valid-attachments":null%s}`,
		"with two nulls":               `{%s"name":"lan","cni.dev/valid-attachments":null,"cni.dev/attachments":null%s}`,
		"with bad attachments":         `{%s"name":"lan","cni.dev/valid-attachments":[{"containerID":1}]%s}`,
		"with attachments":             `{%s"name":"lan","cni.dev/valid-attachments":[{"containerID":"a","ifname":"b"}]%s}`,
		"with unknown members":         network + `,"x":{"y":9007199254740993}}`,
		"with a list for do":           `{%s"name":"lan","type":"subject","cni.dev/valid-attachments":[],"do":[]}`,
		"with null for prevResult":     network + `,"prevResult":null}`,
		"with a list for prevResult":   network + `,"prevResult":[]}`,
		"with an empty prevResult":     network + `,"prevResult":{}}`,
		"with a bad prevResult":        network + `,"prevResult":{"cniVersion":"1.0.0","ips":[null]}}`,
		"with a 0.2.0 prevResult":      network + `,"prevResult":{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8"}}}`,
		"with a 1.0.0 prevResult":      network + `,"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/8"}]}}`,
		"with a prevResult of 9.9.9":   network + `,"prevResult":{"cniVersion":"9.9.9","ips":[{"address":"10.0.0.1/8"}]}}`,
		"with a prevResult without it": network + `,"prevResult":{"dns":{}}}`,
	}
}

func stdinOf(c testCase) string {
	version, members := `"cniVersion":"1.1.0",`, ""
	switch choice := c.choices["version"]; choice {
	case "":
	case "absent":
		version = ""
	case "empty":
		version = `"cniVersion":"",`
	case "a number":
		version = `"cniVersion":1,`
	default:
		version = `"cniVersion":"` + choice + `",`
	}
	if do := c.choices["do"]; do != "" {
		members = `,"do":"` + do + `"`
	}
	text := stdins()[c.choices["stdin"]]
	switch strings.Count(text, "%s") {
	case 1:
		return fmt.Sprintf(text, version)
	case 2:
		return fmt.Sprintf(text, version, members)
	}
	return text
}

func commands() []string {
	return []string{"ADD", "DEL", "CHECK", "STATUS", "GC", "VERSION", "UPDATE", "add", "(empty)", ""}
}

// allCases crosses everything that can matter together.
func (w world) allCases() []testCase {
	environment := map[string][]string{}
	for variable, values := range w.variables() {
		environment[variable] = append(choices(values), "absent")
	}
	environment[override] = []string{"", "set"}
	full := maps.Clone(environment)
	delete(full, override)
	stdins, versions := choices(stdins()), append(versions(), "")
	var all []testCase
	for _, command := range commands() {
		if slices.Contains(commands()[:6], command) {
			all = append(all, cross(command, full)...)
		}
		for variable, choices := range environment {
			all = append(all, cross(command, map[string][]string{variable: choices, override: environment[override], netNS: environment[netNS]})...)
		}
		all = append(all, cross(command, map[string][]string{"version": versions, "stdin": stdins, "do": {"", "parse prevResult"}})...)
		all = append(all, cross(command, map[string][]string{"version": cni.SupportedVersions()[:6], "do": behaviours()})...)
		all = append(all, cross(command, map[string][]string{"do": behaviours()})...)
		all = append(all, cross(command, map[string][]string{"do": {"load arguments"}, arguments: environment[arguments]})...)
	}
	all = append(all, cross("ADD", map[string][]string{"do": exits()})...)
	all = append(all, cross("DEL", map[string][]string{"do": exits()})...)
	return unique(all)
}

func choices(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }

// cross makes a case of each combination of choices, the ordinary ones left out.
func cross(command string, dimensions map[string][]string) []testCase {
	all := []testCase{{command, nil}}
	for _, what := range slices.Sorted(maps.Keys(dimensions)) {
		var more []testCase
		for _, c := range all {
			for _, choice := range dimensions[what] {
				next := testCase{command, maps.Clone(c.choices)}
				if next.choices == nil {
					next.choices = map[string]string{}
				}
				if choice != "" {
					next.choices[what] = choice
				}
				more = append(more, next)
			}
		}
		all = more
	}
	return all
}

// unique removes what was crossed more than once. The simplest cases come first.
func unique(all []testCase) []testCase {
	slices.SortFunc(all, func(a, b testCase) int {
		return cmp.Or(cmp.Compare(len(a.choices), len(b.choices)),
			cmp.Compare(slices.Index(commands(), a.command), slices.Index(commands(), b.command)),
			cmp.Compare(a.String(), b.String()))
	})
	return slices.CompactFunc(all, func(a, b testCase) bool { return a.String() == b.String() })
}
