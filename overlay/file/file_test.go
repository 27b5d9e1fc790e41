package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
)

func sample() []overlay.Node {
	return []overlay.Node{
		{Name: "a", UID: "ua", Created: time.Date(2025, 3, 1, 12, 0, 0, 5, time.UTC), PodCIDRs: []string{"10.1.1.0/24", "fd00::/64"},
			Addresses: []string{"192.0.2.1"}},
		{Name: "b", UID: "ub", PodCIDRs: []string{"any text"}},
	}
}

func TestDocument(t *testing.T) {
	t.Run("what is written is read", func(t *testing.T) {
		data, err := encode(sample())
		require.NoError(t, err)
		nodes, bad, err := parse(data)
		require.NoError(t, err)
		require.Empty(t, bad)
		require.Equal(t, sample(), nodes)
	})
	t.Run("an empty network is written as one", func(t *testing.T) {
		data, err := encode(nil)
		require.NoError(t, err)
		require.Equal(t, "{\n  \"version\": 1,\n  \"nodes\": []\n}\n", string(data))
		nodes, _, err := parse(data)
		require.NoError(t, err)
		require.Empty(t, nodes)
	})
	t.Run("every truncation is refused", func(t *testing.T) {
		data, err := encode(sample())
		require.NoError(t, err)
		for i := range len(strings.TrimSpace(string(data))) {
			_, _, err := parse(data[:i])
			require.Error(t, err, "the first %d bytes", i)
		}
	})
	for name, tc := range map[string]struct{ data, want string }{
		"another version is refused":    {`{"version":2,"nodes":[]}`, "version: 2 is not known; write 1, or use a release that reads it"},
		"version of another type":       {`{"version":"1","nodes":[]}`, "version: want a number, not a string"},
		"version that is no integer":    {`{"version":1.5,"nodes":[]}`, "version: 1.5 is not known; write 1"},
		"no version is refused":         {`{"nodes":[]}`, `"version" is missing; write 1`},
		"an empty object is refused":    {`{}`, `"version" is missing; write 1`},
		"no nodes are refused":          {`{"version":1}`, `"nodes" is missing; an empty network has an empty list`},
		"null nodes are refused":        {`{"version":1,"nodes":null}`, `"nodes" is missing`},
		"nodes of another type":         {`{"version":1,"nodes":{}}`, "nodes: want a list of objects, not an object"},
		"something behind the document": {`{"version":1,"nodes":[]}{}`, "line 1, column 25: invalid character '{' after top-level value; replace the file as a whole, by rename"},
		"another document":              {`[]`, `want an object with "version" and "nodes", not a list`},
		"another document that is null": {`null`, `want an object with "version" and "nodes", not null`},
		"an empty file says that it is": {``, "the file is empty; replace the file as a whole, by rename"},
		"white space alone is empty":    {" \n\n", "the file is empty"},
		"truncated": {"{\n  \"version\": 1,\n  \"nodes\": [\n    {\"name\"\n",
			"line 4, column 12: unexpected end of JSON input; replace the file as a whole, by rename"},
		"a comma too many":       {"{\n  \"version\": 1,\n}", "line 3, column 1: invalid character '}'"},
		"a line end in a string": {"{\n  \"version\n", "line 2, column 11: invalid character '\\n' in string literal"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := parse([]byte(tc.data))
			require.ErrorContains(t, err, tc.want)
		})
	}
	for name, tc := range map[string]struct{ entry, want string }{
		"a string for a list":   {`{"name":"b","podCIDRs":"10.1.0.0/24"}`, `node "b" (entry 2): podCIDRs: want a list of strings, not a string`},
		"a number in a list":    {`{"name":"b","addresses":["192.0.2.1",7]}`, `node "b" (entry 2): addresses[1]: want a string, not a number`},
		"null in a list":        {`{"name":"b","addresses":[null]}`, `addresses[0]: want a string, not null`},
		"an object for a list":  {`{"name":"b","addresses":{}}`, `addresses: want a list of strings, not an object`},
		"a number for a string": {`{"name":"b","uid":7}`, `uid: want a string, not a number`},
		"a name that is none":   {`{"name":true}`, `entry 2: name: want a string, not a boolean`},
		"no time":               {`{"name":"b","created":"today"}`, `created: write RFC 3339, such as 2025-03-01T12:00:00Z, not "today"`},
		"a number for a time":   {`{"name":"b","created":1740830400}`, `created: write RFC 3339, such as 2025-03-01T12:00:00Z, not 1740830400`},
		"no object":             {`7`, `entry 2: want an object, not a number`},
		"null":                  {`null`, `entry 2: want an object, not null`},
		"all that is wrong":     {`{"name":"b","uid":7,"addresses":7}`, `addresses: want a list of strings, not a number; uid: want a string, not a number`},
	} {
		t.Run("entry/"+name+" is named, the others are read", func(t *testing.T) {
			nodes, bad, err := parse([]byte(`{"version":1,"nodes":[{"name":"a"},` + tc.entry + `,{"name":"d"}]}`))
			require.NoError(t, err)
			require.Len(t, nodes, 2)
			require.Len(t, bad, 1)
			require.ErrorContains(t, bad[0], tc.want)
		})
	}
	t.Run("entry/unknown keys are named, the node is read", func(t *testing.T) {
		nodes, bad, err := parse([]byte(`{"version":1,"nodes":[{"name":"a","uid":"u","adresses":["192.0.2.1"],"x":1,"podcidrs":[]}]}`))
		require.NoError(t, err)
		require.Equal(t, []overlay.Node{{Name: "a", UID: "u"}}, nodes)
		require.Len(t, bad, 1)
		require.EqualError(t, bad[0], `node "a" (entry 1): key "adresses" is not known, nor "podcidrs", "x"; `+
			`use name, uid, created, podCIDRs, addresses; the node is used without`)
		require.True(t, bad[0].Used)
	})
	t.Run("null is as good as nothing", func(t *testing.T) {
		nodes, bad, err := parse([]byte(`{"version":1,"nodes":[{"name":"a","uid":null,"created":null,"podCIDRs":null,"addresses":null}]}`))
		require.NoError(t, err)
		require.Empty(t, bad)
		require.Equal(t, []overlay.Node{{Name: "a"}}, nodes)
	})
}

func FuzzParse(f *testing.F) {
	data, err := encode(sample())
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"version":1,"nodes":[null,{"name":7},{"NAME":"x","name":"y"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes, _, err := parse(data)
		if err != nil {
			return
		}
		again, err := encode(nodes)
		if err != nil {
			return // a time that JSON cannot express
		}
		got, bad, err := parse(again)
		require.NoError(t, err)
		require.Empty(t, bad)
		require.Len(t, got, len(nodes))
		for i := range nodes {
			require.True(t, nodes[i].Equal(got[i]), "%v, %v", nodes[i], got[i])
		}
	})
}

// A recorder is a sink that hands over what it gets.
type recorder struct{ got chan []overlay.Node }

func (r recorder) Replace(nodes []overlay.Node) { r.got <- nodes }
func (recorder) Upsert(overlay.Node)            { panic("not by this source") }
func (recorder) Delete(string)                  { panic("not by this source") }

// A watched is a running source.
type watched struct {
	t      *testing.T
	path   string
	nodes  chan []overlay.Node
	errors chan error
	good   chan struct{}
}

func watch(t *testing.T, path string) *watched {
	t.Helper()
	w := &watched{t: t, path: path, nodes: make(chan []overlay.Node, 100), errors: make(chan error, 100), good: make(chan struct{}, 100)}
	s := New(path, Options{OnError: func(err error) { w.errors <- err }, OnGood: func() { w.good <- struct{}{} }})
	s.armed = time.Hour // so that events are what is tested
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx, recorder{w.nodes}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.Empty(t, w.nodes)
		require.Empty(t, w.errors)
	})
	return w
}

func receive[T any](t *testing.T, c chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// requireNames checks the names of the nodes that come next.
func (w *watched) requireNames(names string) {
	w.t.Helper()
	var got []string
	for _, n := range receive(w.t, w.nodes) {
		got = append(got, n.Name)
	}
	require.Equal(w.t, names, strings.Join(got, " "))
}

func (w *watched) requireError(text string) {
	w.t.Helper()
	require.ErrorContains(w.t, receive(w.t, w.errors), text)
}

// nodes returns nodes of these names.
func nodes(names ...string) []overlay.Node {
	ns := []overlay.Node{}
	for _, n := range names {
		ns = append(ns, overlay.Node{Name: n, UID: "u" + n})
	}
	return ns
}

func TestSource(t *testing.T) {
	start := func(t *testing.T, names ...string) *watched {
		path := filepath.Join(t.TempDir(), "topology.json")
		require.NoError(t, Write(path, nodes(names...)))
		w := watch(t, path)
		w.requireNames(strings.Join(names, " "))
		return w
	}
	t.Run("start/delivers the file", func(t *testing.T) { start(t, "a", "b") })
	t.Run("write/delivers the new file, once", func(t *testing.T) {
		w := start(t, "a")
		for _, names := range []string{"a b", "b", ""} {
			require.NoError(t, Write(w.path, nodes(strings.Fields(names)...)))
			w.requireNames(names)
		}
	})
	t.Run("write/of the same content is no change", func(t *testing.T) {
		w := start(t, "a")
		require.NoError(t, Write(w.path, nodes("a")))
		require.NoError(t, Write(w.path, nodes("b")))
		w.requireNames("b")
	})
	t.Run("in place/a file written in two halves is delivered when it is whole", func(t *testing.T) {
		w := start(t, "a")
		data, err := encode(nodes("a", "b"))
		require.NoError(t, err)
		f, err := os.Create(w.path)
		require.NoError(t, err)
		w.requireError("the file is empty")
		_, err = f.Write(data[:20])
		require.NoError(t, err)
		w.requireError("line 3, column 2: unexpected end of JSON input; replace the file as a whole, by rename; what was read before stays")
		_, err = f.Write(data[20:])
		require.NoError(t, err)
		require.NoError(t, f.Close())
		w.requireNames("a b")
	})
	t.Run("bad/changes nothing, until it is good again", func(t *testing.T) {
		w := start(t, "a")
		require.NoError(t, replace(w.path, []byte(`{"version":9,"nodes":[]}`)))
		w.requireError("version: 9 is not known")
		require.NoError(t, Write(w.path, nodes("a", "b")))
		w.requireNames("a b")
	})
	t.Run("removed/changes nothing, until it is there again", func(t *testing.T) {
		w := start(t, "a")
		require.NoError(t, os.Remove(w.path))
		w.requireError("no such file")
		require.NoError(t, Write(w.path, nodes("b")))
		w.requireNames("b")
	})
	t.Run("missing at the start/is waited for", func(t *testing.T) {
		w := watch(t, filepath.Join(t.TempDir(), "topology.json"))
		err := receive(t, w.errors)
		require.ErrorContains(t, err, "no such file")
		require.ErrorContains(t, err, "create it; nothing was read before")
		require.NoError(t, Write(w.path, nodes("a")))
		w.requireNames("a")
	})
	t.Run("directory missing at the start/is waited for", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		w := watch(t, filepath.Join(dir, "topology.json"))
		w.requireError("create it")
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, Write(w.path, nodes("a")))
		w.requireSoon("a")
	})
	t.Run("directory/recreated, or replaced by another one", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "dir")
		require.NoError(t, os.Mkdir(dir, 0o755))
		path := filepath.Join(dir, "topology.json")
		require.NoError(t, Write(path, nodes("a")))
		w := watch(t, path)
		w.requireNames("a")

		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, Write(path, nodes("b")))
		w.requireSoon("b")

		require.NoError(t, os.Rename(dir, dir+".old"))
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, Write(path, nodes("c")))
		w.requireSoon("c")
		require.NoError(t, Write(path, nodes("d")))
		w.requireNames("d")
	})
	t.Run("link/switched as in a mounted ConfigMap", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"one", "two"} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
			require.NoError(t, Write(filepath.Join(dir, name, "topology.json"), nodes(name)))
		}
		require.NoError(t, os.Symlink("one", filepath.Join(dir, "..data")))
		require.NoError(t, os.Symlink("..data/topology.json", filepath.Join(dir, "topology.json")))
		w := watch(t, filepath.Join(dir, "topology.json"))
		w.requireNames("one")
		require.NoError(t, os.Symlink("two", filepath.Join(dir, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
		w.requireNames("two")
	})
	t.Run("bad/the end of it is told", func(t *testing.T) {
		w := start(t, "a")
		good, err := os.ReadFile(w.path)
		require.NoError(t, err)
		require.NoError(t, replace(w.path, []byte(`{}`)))
		w.requireError(`"version" is missing; write 1; what was read before stays`)
		require.NoError(t, replace(w.path, good))
		receive(t, w.good)
	})
	t.Run("unknown key/is told, with the node", func(t *testing.T) {
		w := start(t, "a")
		require.NoError(t, replace(w.path, []byte(`{"version":1,"nodes":[{"name":"b","adresses":[]}]}`)))
		w.requireError(`key "adresses" is not known`)
		w.requireNames("b")
	})
	t.Run("bad entry/is named, keeps its last good state, and costs the others nothing", func(t *testing.T) {
		w := start(t, "a", "b")
		require.NoError(t, replace(w.path, []byte(`{"version":1,"nodes":[{"name":"a","uid":7},{"name":"b"},{"name":"c"},{"name":"d","uid":7}]}`)))
		got := receive(t, w.nodes)
		require.Equal(t, append([]overlay.Node{{Name: "b"}, {Name: "c"}}, nodes("a")...), got)
		err := receive(t, w.errors)
		require.ErrorContains(t, err, `node "a" (entry 1): uid: want a string, not a number; the node stays as it was last read`)
		require.ErrorContains(t, err, `node "d" (entry 4): uid: want a string, not a number; the node is left out`)
		var entry *EntryError
		require.True(t, errors.As(err, &entry))
		require.Equal(t, "a", entry.Node)
	})
}

func TestReports(t *testing.T) {
	var told []string
	s := New(filepath.Join(t.TempDir(), "topology.json"), Options{OnError: func(err error) { told = append(told, err.Error()) }})
	sink := recorder{make(chan []overlay.Node, 10)}
	r := &run{Source: s, sink: sink}
	look := r.look
	put := func(content string) {
		require.NoError(t, replace(s.path, []byte(content)))
		look()
		look()
	}
	look()
	look()
	require.Len(t, told, 1, "an error that lasts is told once")
	put(`{"version":1,"nodes":[]}`)
	put(`{"version":1,"nodes":[7]}`)
	require.Len(t, told, 2)
	require.NotEmpty(t, r.reported, "an entry stays bad as long as the file stays the same")
	put(`{"version":1,"nodes":[]}`)
	put(`{"version":1,"nodes":[7]}`)
	require.Len(t, told, 3, "an error that comes back is told again")
	require.Len(t, sink.got, 4, "what did not change is not delivered")
}

func TestArmFollowsThePath(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	path := filepath.Join(above, "dir", "topology.json")
	watcher, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, watcher.Close()) })
	r := &run{Source: New(path, Options{}), watcher: watcher}
	for _, name := range []string{"one", "two", "three"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, r.arm())
		require.NoError(t, r.arm(), "a second time changes nothing")
		mark := filepath.Join(filepath.Dir(path), name)
		require.NoError(t, os.WriteFile(mark, nil, 0o644))
		for receive(t, watcher.Events).Name != mark {
		}
		require.NoError(t, os.RemoveAll(above+".old"))
		require.NoError(t, os.Rename(above, above+".old")) // no event of the directory itself tells of it
	}
}

// requireSoon is requireNames when the state in between may or may not be seen.
func (w *watched) requireSoon(names string) {
	w.t.Helper()
	w.requireNames(names)
	for {
		select {
		case err := <-w.errors:
			w.t.Log(err)
		default:
			return
		}
	}
}

func TestWrite(t *testing.T) {
	t.Run("readable by all, nothing left beside it", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "topology.json")
		require.NoError(t, Write(path, sample()))
		require.NoError(t, Write(path, sample()))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o644), info.Mode())
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
	t.Run("an error leaves the old file and nothing else", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "topology.json")
		require.NoError(t, os.Mkdir(path, 0o755)) // a directory cannot be renamed over
		require.Error(t, Write(path, sample()))
		require.ErrorIs(t, Write(filepath.Join(dir, "missing", "f"), sample()), os.ErrNotExist)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
	t.Run("a path without a directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		require.NoError(t, Write("topology.json", sample()))
		w := watch(t, "topology.json")
		w.requireNames("a b")
	})
}
