package chain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// everything is a list whose plugin has stored keys of every kind.
const everything = `{
	"cniVersion": "1.1.0", "name": "pods",
	"plugins": [{
		"type": "p", "cniVersion": "0.1.0", "name": "stored", "CNIVersion": "9.9.9",
		"capabilities": {"portMappings": true, "mac": true, "ips": false},
		"runtimeConfig": {"mac": "stored"}, "prevResult": {"stored": true}, "args": {"cni": {"ips": ["10.0.0.9"]}},
		"cni.dev/attachments": ["stored"], "cni.dev/valid-attachments": ["stored"], "cni.dev/x": 1,
		"PrevResult": {"stored": true}, "RuntimeConfig": {"mac": "stored"}, "CNI.dev/valid-attachments": ["stored"], "CNI.DEV/x": 1,
		"keys of its own": {"number": 9007199254740993, "long": 123456789012345678901234567890, "float": -1.50e+400, "html": "<&>", "nothing": null}
	}]}`

// TestRequests compares what is derived with testdata/requests; -update rewrites it.
func TestRequests(t *testing.T) {
	provided := map[string]any{"portMappings": []any{map[string]any{"hostPort": 8080, "note": "<&>"}}, "mac": "02:00:00:00:00:01", "ips": []string{"10.0.0.2/24"}, "bandwidth": map[string]int{"ingressRate": 1}}
	capabilities, err := encodeCapabilities(provided)
	require.NoError(t, err)
	previous := json.RawMessage(`{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}],"unknown":9007199254740993}`)
	for name, p := range map[string]parameters{
		"add first":                {command: cni.CommandAdd, capabilities: capabilities},
		"add later":                {command: cni.CommandAdd, capabilities: capabilities, previous: previous},
		"add without capabilities": {command: cni.CommandAdd},
		"del":                      {command: cni.CommandDel, capabilities: capabilities, previous: previous},
		"del without result":       {command: cni.CommandDel, capabilities: capabilities},
		"check":                    {command: cni.CommandCheck, capabilities: capabilities, previous: previous},
		"status":                   {command: cni.CommandStatus},
		"gc":                       {command: cni.CommandGC, valid: valid(t, cni.Attachment{ContainerID: "c1", IfName: "eth0"})},
		"gc of all":                {command: cni.CommandGC, valid: valid(t)},
	} {
		t.Run(name, func(t *testing.T) {
			l := parsed(t, everything)
			got, err := l.request(l.Plugins[0], p)
			require.NoError(t, err)
			golden(t, filepath.Join("requests", strings.ReplaceAll(name, " ", "-")+".json"), got)
		})
	}
}

func valid(t *testing.T, attachments ...cni.Attachment) json.RawMessage {
	t.Helper()
	raw, err := encodeValid(attachments)
	require.NoError(t, err)
	return raw
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, got, "", "  "))
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, pretty.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), pretty.String())
}

func TestRequestLastWordIsTheRuntimes(t *testing.T) {
	l := parsed(t, everything)
	got, err := l.request(l.Plugins[0], parameters{command: cni.CommandAdd})
	require.NoError(t, err)
	var decoded struct {
		CNIVersion    string          `json:"cniVersion"`
		Name          string          `json:"name"`
		PrevResult    json.RawMessage `json:"prevResult"`
		RuntimeConfig map[string]any  `json:"runtimeConfig"`
		Valid         json.RawMessage `json:"cni.dev/valid-attachments"`
	}
	require.NoError(t, json.Unmarshal(got, &decoded), "a decoder that ignores case")
	assert.Equal(t, "1.1.0", decoded.CNIVersion)
	assert.Equal(t, "pods", decoded.Name)
	assert.Nil(t, decoded.PrevResult)
	assert.Empty(t, decoded.RuntimeConfig)
	assert.Nil(t, decoded.Valid)
}

func TestRequestDoesNotChangeTheList(t *testing.T) {
	l := parsed(t, everything)
	before, err := l.MarshalJSON()
	require.NoError(t, err)
	for range 2 {
		_, err = l.request(l.Plugins[0], parameters{command: cni.CommandGC, valid: valid(t)})
		require.NoError(t, err)
	}
	after, err := l.MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

func TestNames(t *testing.T) {
	l := conflist(t, "1.1.0", "a")
	for name, test := range map[string]struct {
		change func(*Attachment)
		want   string
	}{
		"container/empty":       {func(a *Attachment) { a.ContainerID = "" }, `containerID="": is empty`},
		"container/path":        {func(a *Attachment) { a.ContainerID = "../../victim" }, `containerID="../../victim": has a character`},
		"container/dots":        {func(a *Attachment) { a.ContainerID = ".." }, `containerID="..": has a character`},
		"container/line break":  {func(a *Attachment) { a.ContainerID = "a\n" }, "has a character"},
		"interface/empty":       {func(a *Attachment) { a.IfName = "" }, `ifName="": is empty`},
		"interface/path":        {func(a *Attachment) { a.IfName = "a/b" }, `ifName="a/b": has a slash`},
		"interface/dots":        {func(a *Attachment) { a.IfName = ".." }, `ifName="..": means a directory`},
		"interface/dot":         {func(a *Attachment) { a.IfName = "." }, `ifName=".": means a directory`},
		"interface/colon":       {func(a *Attachment) { a.IfName = "a:1" }, `ifName="a:1": has a slash, a colon`},
		"interface/long":        {func(a *Attachment) { a.IfName = "sixteen-bytes-xx" }, "is longer than 15 bytes"},
		"interface/no UTF-8":    {func(a *Attachment) { a.IfName = "\xff" }, "is not UTF-8"},
		"namespace/no UTF-8":    {func(a *Attachment) { a.NetNS = "/run/\xff" }, "is not UTF-8"},
		"args/no UTF-8":         {func(a *Attachment) { a.Args = cni.Args{{Key: "K", Value: "\xff"}} }, "args: an argument is not UTF-8"},
		"namespace/zero byte":   {func(a *Attachment) { a.NetNS = "/run/\x00" }, "has a zero byte"},
		"args/semicolon":        {func(a *Attachment) { a.Args = cni.Args{{Key: "K", Value: "a;IP=1.2.3.4"}} }, "hand such a value over as a capability"},
		"args/key":              {func(a *Attachment) { a.Args = cni.Args{{Key: "K=", Value: "a"}} }, "args: "},
		"capabilities/encoding": {func(a *Attachment) { a.Capabilities = map[string]any{"x": func() {}} }, `capabilities.x="func()": cannot be encoded`},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, false, map[string]script{"a": nil})
			a := pod()
			test.change(&a)
			_, err := k.Add(t.Context(), l, a)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, k.Del(t.Context(), l, a), test.want)
			require.ErrorContains(t, k.Check(t.Context(), l, a), test.want)
			assert.Empty(t, k.seen(), "nothing may run")
			assert.NoDirExists(t, k.CacheDir, "no path may be made")
		})
	}
	for name, want := range map[string]string{"eth%d": "has a '%'", "all": "stands for many interfaces", "default": "stands for many interfaces"} {
		t.Run("add/cannot make "+name, func(t *testing.T) {
			k := newKit(t, false, map[string]script{"a": nil})
			a := pod()
			a.IfName = name
			_, err := k.Add(t.Context(), l, a)
			require.ErrorContains(t, err, `ifName="`+name+`": `+want)
			assert.Empty(t, k.seen(), "nothing may run")
			require.NoError(t, k.Del(t.Context(), l, a), "cleaning up must not be refused")
			require.NoError(t, k.GC(t.Context(), l, []cni.Attachment{{ContainerID: "c", IfName: name}}))
			assert.Equal(t, []string{"DEL a", "GC a"}, k.order())
		})
	}
	t.Run("add/needs a namespace", func(t *testing.T) {
		_, err := newKit(t, false, nil).Add(t.Context(), l, Attachment{ContainerID: "c", IfName: "eth0"})
		require.ErrorContains(t, err, `netNS="": is empty`)
	})
	t.Run("gc/valid attachments", func(t *testing.T) {
		k := newKit(t, false, map[string]script{"a": nil})
		require.ErrorContains(t, k.GC(t.Context(), l, []cni.Attachment{{ContainerID: "", IfName: "eth0"}}), `valid[0].containerID="": is empty`)
		require.ErrorContains(t, k.GC(t.Context(), l, []cni.Attachment{{ContainerID: "c", IfName: ""}}), `valid[0]: ifName="": is empty`)
		assert.Empty(t, k.seen())
	})
	t.Run("list/changed or made by hand", func(t *testing.T) {
		k := newKit(t, false, map[string]script{"a": nil})
		changed := *l
		changed.Name = "../x"
		for name, bad := range map[string]*List{"nil": nil, "zero": {}, "name": &changed} {
			_, err := k.Add(t.Context(), bad, pod())
			require.Error(t, err, name)
			require.Error(t, k.Del(t.Context(), bad, pod()), name)
			require.Error(t, k.Check(t.Context(), bad, pod()), name)
			require.Error(t, k.Status(t.Context(), bad), name)
			require.Error(t, k.GC(t.Context(), bad, nil), name)
		}
		assert.Empty(t, k.seen())
	})
}
