package plugin_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
)

var update = flag.Bool("update", false, "write the differences into docs/host-local.md")

const (
	document      = "../../docs/host-local.md"
	documentBegin = "<!-- differences: begin (written by go test ./ipam/plugin -update) -->\n"
	documentEnd   = "<!-- differences: end -->"
)

// TestDifferences runs every command of the table with every configuration, each on a
// directory of its own with the same files, with host-local and with ours, and compares
// success, result, and the files afterwards. A difference must be known, and is written
// into the document with its reason.
func TestDifferences(t *testing.T) {
	ours, theirs := executables(t)
	var (
		mu    sync.Mutex
		found = map[*difference][]observed{}
		calls int
		group sync.WaitGroup
		slots = make(chan struct{}, 4)
	)
	for _, c := range setups {
		for _, command := range invocations {
			if strings.Contains(c.more, "runtimeConfig") && strings.Contains(command.more, "runtimeConfig") {
				continue // a document has it once
			}
			calls++
			number := calls
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				o := observed{number: number, setup: c, call: command, theirs: c.run(t, theirs, command), ours: c.run(t, ours, command)}
				if o.theirs.String() == o.ours.String() {
					return
				}
				d := classify(o)
				if d == nil {
					t.Errorf("%s: unknown difference\ntheirs: %v (%s)\nours:   %v (%s)", o.where(), o.theirs, o.theirs.detail, o.ours, o.ours.detail)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				found[d] = append(found[d], o)
			})
		}
	}
	group.Wait()
	for i := range differences {
		assert.NotEmpty(t, found[&differences[i]], "no call differs in this any more, remove it: %s", differences[i].title)
	}
	if !t.Failed() {
		compareDocument(t, describe(found, calls))
	}
}

// setup is a configuration and the directory that it meets.
type setup struct {
	name    string
	ipam    string            // members of the ipam object
	more    string            // members of the document
	version string            // of the protocol; default 1.1.0
	files   map[string]string // in the network's directory; default held
}

// held is what most calls find: container a has an address of each family.
var held = map[string]string{
	"10.1.0.2": "a\r\neth0", "fd00::2": "a\r\neth0", "last_reserved_ip.0": "10.1.0.2", "last_reserved_ip.1": "fd00::2", "lock": "",
}

// call is one command.
type call struct {
	name    string
	command cni.Command
	id      string
	args    string
	netns   string // default: one that exists
	more    string // members of the document
	// vague says that host-local does as much of it as a map's order has it, so that
	// what a failure leaves is not compared.
	vague bool
}

// outcome is what a command did, as text.
type outcome struct {
	answer string // the result, "ok" or "error"
	files  string // that it changed, added or removed
	detail string // the error, which is not compared
}

func (o outcome) String() string {
	text := o.answer
	if o.files != "" {
		text += "; " + o.files
	}
	return text
}

// observed is a call that differs.
type observed struct {
	number int // of the call
	setup
	call
	theirs, ours outcome
}

func (o observed) where() string { return o.call.name + ", " + o.setup.name }

// run executes a command in a directory of its own.
func (s setup) run(t *testing.T, e executable, c call) outcome {
	e.dataDir = filepath.Join(t.TempDir(), "networks")
	dir := filepath.Join(e.dataDir, "net")
	files := s.files
	if files == nil {
		files = held
	}
	s.lay(t, dir, files)
	cwd, err := os.Getwd()
	assert.NoError(t, err)
	members := []string{
		fmt.Sprintf(`"cniVersion":%q,"name":"net","type":"bridge"`, cmp.Or(s.version, "1.1.0")),
		fmt.Sprintf(`"ipam":{"type":"host-local","dataDir":%q%s}`, e.dataDir, prefixed(strings.ReplaceAll(s.ipam, "{{cwd}}", cwd))),
	}
	for _, more := range []string{s.more, c.more} {
		if more != "" {
			members = append(members, more)
		}
	}
	out, err := cni.Exec{}.Execute(t.Context(), e.name, cni.Invocation{
		Command: c.command, ContainerID: c.id, NetNS: cmp.Or(c.netns, e.netns), IfName: "eth0", Args: c.args, Path: []string{e.path},
		Config: []byte("{" + strings.Join(members, ",") + "}"),
	})
	o := outcome{answer: "ok", files: changes(t, dir, files)}
	var failure *cni.Error
	switch {
	case errors.As(err, &failure):
		o.answer, o.detail = "error", fmt.Sprintf("code %d: %s", failure.Code, failure.Msg)
		if c.vague {
			o.files = ""
		}
	case err != nil:
		t.Errorf("%s, %s: %v", c.name, s.name, err)
	case c.command == cni.CommandAdd:
		o.answer = summary(t, out)
	}
	return o
}

func prefixed(members string) string {
	if members == "" {
		return ""
	}
	return "," + members
}

// lay writes files that are old enough to be no half-written leases; a name that ends in
// a slash is a directory.
func (s setup) lay(t *testing.T, dir string, files map[string]string) {
	if len(files) == 0 {
		return
	}
	assert.NoError(t, os.MkdirAll(dir, 0o755))
	old := time.Now().Add(-time.Hour)
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			assert.NoError(t, os.Mkdir(path, 0o755))
			continue
		}
		assert.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		assert.NoError(t, os.Chtimes(path, old, old))
	}
}

// changes tells how a directory differs from what was laid there.
func changes(t *testing.T, dir string, before map[string]string) string {
	after := map[string]string{}
	entries, err := os.ReadDir(dir)
	if !os.IsNotExist(err) {
		assert.NoError(t, err)
	}
	for _, e := range entries {
		if e.IsDir() {
			after[e.Name()+"/"] = ""
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		assert.NoError(t, err)
		after[e.Name()] = string(data)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			list = append(list, "removes "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		content, was := before[name]
		switch {
		case was && content == after[name]:
		case strings.HasPrefix(name, "last_reserved_ip."):
			list = append(list, "notes "+after[name]+" as the last of set "+strings.TrimPrefix(name, "last_reserved_ip."))
		case after[name] == "":
			list = append(list, "creates "+name)
		default:
			list = append(list, fmt.Sprintf("gives %s to %s", name, strings.ReplaceAll(after[name], "\r\n", "/")))
		}
	}
	return strings.Join(list, ", ")
}

// summary renders all of a result: what it lacks is left out.
func summary(t *testing.T, out []byte) string {
	var r map[string]any
	assert.NoError(t, json.Unmarshal(out, &r), "%s", out)
	delete(r, "cniVersion")
	if dns, ok := r["dns"].(map[string]any); ok && len(dns) == 0 {
		delete(r, "dns")
	}
	var compact bytes.Buffer
	encoder := json.NewEncoder(&compact)
	encoder.SetEscapeHTML(false)
	assert.NoError(t, encoder.Encode(r))
	return strings.TrimSpace(compact.String())
}
