package chain

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestParse(t *testing.T) {
	l := parsed(t, `{
		"cniVersion": "1.0.0", "cniVersions": ["0.4.0", "9.9.0", "1.1.0", "2.0.0-rc.1", "1.0.0"],
		"name": "pods.v1", "disableCheck": "True", "disableGC": true, "loadOnlyInlinedPlugins": "false",
		"plugins": [
			{"type": "bridge", "capabilities": {"mac": true, "ips": false}, "big": 123456789012345678901234567890.50},
			{"type": "portmap"}
		]}`)
	assert.Equal(t, "pods.v1", l.Name)
	assert.Equal(t, []string{"1.1.0", "1.0.0", "0.4.0"}, l.CNIVersions)
	assert.Equal(t, "1.1.0", l.Version())
	assert.True(t, l.DisableCheck)
	assert.True(t, l.DisableGC)
	assert.False(t, l.LoadOnlyInlinedPlugins)
	require.Len(t, l.Plugins, 2)
	assert.Equal(t, "bridge", l.Plugins[0].Type)
	assert.Equal(t, map[string]bool{"mac": true, "ips": false}, l.Plugins[0].Capabilities)
	assert.Equal(t, "portmap", l.Plugins[1].Type)
}

func TestParseVersions(t *testing.T) {
	for name, test := range map[string]struct{ keys, want string }{
		"none named means 0.1.0":         {``, "0.1.0"},
		"empty means 0.1.0":              {`"cniVersion":"",`, "0.1.0"},
		"null means absent":              {`"cniVersion":null,"cniVersions":null,`, "0.1.0"},
		"one":                            {`"cniVersion":"0.3.1",`, "0.3.1"},
		"union":                          {`"cniVersion":"1.1.0","cniVersions":["0.3.1","1.0.0"],`, "1.1.0"},
		"the list alone":                 {`"cniVersions":["0.3.1","1.0.0"],`, "1.0.0"},
		"newer ones are left out":        {`"cniVersion":"9.0.0","cniVersions":["1.0.0"],`, "1.0.0"},
		"patch levels that do not exist": {`"cniVersion":"1.0.5","cniVersions":["0.4.0"],`, "0.4.0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := parsed(t, `{`+test.keys+`"name":"n","plugins":[{"type":"p"}]}`)
			assert.Equal(t, test.want, l.Version())
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const plugins = `"plugins":[{"type":"p"}]`
	for name, test := range map[string]struct{ text, want string }{
		"empty":                     {``, "the text is empty"},
		"half a document":           {"{\n \"name\": \"n\",\n \"plu", "line 3, column"},
		"a syntax error":            {"{\n \"name\": \"n\"\n \"plugins\": []}", "line 3, column 2: invalid character '\"'"},
		"two documents":             {`{"name":"n",` + plugins + `} {}`, "invalid character '{' after top-level value"},
		"no object":                 {`["x"]`, `found array ["x"], want an object`},
		"not UTF-8":                 {"{\"name\":\"\xff\"}", "not UTF-8"},
		"a key twice":               {`{"name":"n","name":"m",` + plugins + `}`, `name="m": the key is given twice; keep one`},
		"a plugin's key twice":      {`{"name":"n","plugins":[{"type":"p","a":1,"a":2}]}`, `plugins[0]: a=2: the key is given twice`},
		"no name":                   {`{` + plugins + `}`, `name="": is missing; name the network`},
		"a misspelled name":         {`{"Name":"n",` + plugins + `}`, `name="": is missing; there is a key "Name"; spell it name`},
		"a name that is no string":  {`{"name":5,` + plugins + `}`, `name=5: is of type number; write a string`},
		"a name that is a path":     {`{"name":"../etc",` + plugins + `}`, `name="../etc": has a character`},
		"a name with a slash":       {`{"name":"a/b",` + plugins + `}`, `name="a/b": has a character`},
		"a name with a line break":  {`{"name":"a\n",` + plugins + `}`, `has a character`},
		"a version that is none":    {`{"cniVersion":"1.0","name":"n",` + plugins + `}`, `cniVersion="1.0": is no semantic version; write three numbers`},
		"a version list of numbers": {`{"cniVersions":[1],"name":"n",` + plugins + `}`, `cniVersions[0]=1: is of type number; write a string`},
		"a null version":            {`{"cniVersions":[null],"name":"n",` + plugins + `}`, `cniVersions[0]=null: is of type null`},
		"a version list that is none": {`{"cniVersions":"1.0.0","name":"n",` + plugins + `}`,
			`cniVersions="1.0.0": is of type string; write a list […]`},
		"only unknown versions": {`{"cniVersion":"2.0.0","cniVersions":["3.0.0"],"name":"n",` + plugins + `}`,
			`cniVersion=["3.0.0","2.0.0"]: no such version of the CNI specification is supported; add one of 0.1.0, `},
		"a switch that is none":   {`{"name":"n","disableGC":"on",` + plugins + `}`, `disableGC="on": is of type string; write true or false`},
		"a switch as number":      {`{"name":"n","disableCheck":1,` + plugins + `}`, `disableCheck=1: is of type number; write true or false`},
		"no plugins":              {`{"name":"n"}`, `plugins="": is missing; list the plugins`},
		"misspelled plugins":      {`{"name":"n","Plugins":[]}`, `there is a key "Plugins"; spell it plugins`},
		"inlined only of nothing": {`{"name":"n","loadOnlyInlinedPlugins":true}`, `loadOnlyInlinedPlugins=true: there is no key plugins`},
		"an empty list":           {`{"name":"n","plugins":[]}`, `plugins=[]: is empty; list at least one plugin`},
		"a list that is none":     {`{"name":"n","plugins":{"type":"p"}}`, `plugins={"type":"p"}: is of type object; write a list`},
		"a plugin that is null":   {`{"name":"n","plugins":[null]}`, `plugins[0]: decode JSON: found null`},
		"no type":                 {`{"name":"n","plugins":[{"type":"p"},{"x":1}]}`, `plugins[1]: type="": is missing; name the plugin's executable`},
		"a type with a path":      {`{"name":"n","plugins":[{"type":"../../bin/sh"}]}`, `plugins[0]: type="../../bin/sh": has a path character; name the`},
		"a type with a backslash": {`{"name":"n","plugins":[{"type":"a\\b"}]}`, `has a path character`},
		"a type of dots":          {`{"name":"n","plugins":[{"type":".."}]}`, `has a path character`},
		"an ipam type with a path": {`{"name":"n","plugins":[{"type":"p","ipam":{"type":"/x"}}]}`,
			`plugins[0]: ipam.type="/x": has a path character`},
		"capabilities as list": {`{"name":"n","plugins":[{"type":"p","capabilities":["mac"]}]}`,
			`plugins[0]: capabilities=["mac"]: is of type array; write an object`},
		"a capability as string": {`{"name":"n","plugins":[{"type":"p","capabilities":{"mac":"true"}}]}`,
			`plugins[0]: capabilities.mac="true": is of type string; write true or false`},
		"one plugin from 1.0.0 on": {`{"cniVersion":"1.0.0","name":"n","type":"p"}`,
			`type="p": a configuration of version 1.0.0 is a list of plugins; move the plugin's keys into "plugins"`},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Parse([]byte(test.text))
			require.ErrorContains(t, err, test.want)
			assert.Nil(t, l)
		})
	}
}

func TestParseErrorsAreFieldErrors(t *testing.T) {
	_, err := Parse([]byte(`{"name":"n","plugins":[{"type":"a/b"}]}`))
	var field *cni.FieldError
	require.ErrorAs(t, err, &field)
	assert.Equal(t, "type", field.Key)
	assert.Equal(t, "a/b", field.Value)
	assert.NotEmpty(t, field.Reason)
	assert.NotEmpty(t, field.Fix)
}

func TestParseSinglePlugin(t *testing.T) {
	l := parsed(t, `{"cniVersion":"0.4.0","name":"old","type":"bridge","bridge":"cni0","capabilities":{"mac":true}}`)
	require.Len(t, l.Plugins, 1)
	assert.Equal(t, "bridge", l.Plugins[0].Type)
	assert.Equal(t, map[string]bool{"mac": true}, l.Plugins[0].Capabilities)
	assert.Equal(t, "0.4.0", l.Version())
}

func TestListKeepsItsText(t *testing.T) {
	const text = `{"z":1e400,"name":"n","plugins":[{"b":9007199254740993,"type":"p","a":"<&>\u2028"}],"y":-0.10}`
	l := parsed(t, text)
	raw, err := l.MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, text, string(raw))
	raw, err = l.Plugins[0].MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, `{"b":9007199254740993,"type":"p","a":"<&>\u2028"}`, string(raw))
}

func TestLoad(t *testing.T) {
	write := func(t *testing.T, files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return dir
	}
	types := func(l *List) (types []string) {
		for _, p := range l.Plugins {
			types = append(types, p.Type)
		}
		return types
	}
	list := func(name, plugin string) string {
		return `{"name":"` + name + `","plugins":[{"type":"` + plugin + `"}]}`
	}

	t.Run("error/names the file", func(t *testing.T) {
		dir := write(t, map[string]string{"a.conflist": `{"name":"a","plugins":[{"type":"x/y"}]}`})
		_, err := Load(filepath.Join(dir, "a.conflist"))
		require.ErrorContains(t, err, filepath.Join(dir, "a.conflist")+": plugins[0]: type=\"x/y\"")
	})
	t.Run("error/absent", func(t *testing.T) {
		_, err := Load(filepath.Join(t.TempDir(), "a.conflist"))
		require.ErrorIs(t, err, os.ErrNotExist)
	})
	t.Run("folder/appended in the order of names", func(t *testing.T) {
		dir := write(t, map[string]string{
			"a.conflist": list("a", "first"), "a/20.conf": `{"type":"third"}`, "a/10.conf": `{"type":"second","n":1.50}`,
			"a/.hidden.conf": `{`, "a/30.conf.tmp": `{`, "a/sub.conf/x": ``,
		})
		l, err := Load(filepath.Join(dir, "a.conflist"))
		require.NoError(t, err)
		assert.Equal(t, []string{"first", "second", "third"}, types(l))
		raw, err := json.Marshal(l)
		require.NoError(t, err)
		again := parsed(t, string(raw))
		assert.Equal(t, l.Plugins, again.Plugins, "the list keeps what was added")
	})
	t.Run("folder/alone", func(t *testing.T) {
		dir := write(t, map[string]string{"a.conflist": `{"name":"a"}`, "a/1.conf": `{"type":"p"}`})
		l, err := Load(filepath.Join(dir, "a.conflist"))
		require.NoError(t, err)
		assert.Equal(t, []string{"p"}, types(l))
	})
	t.Run("folder/nothing there either", func(t *testing.T) {
		for text, want := range map[string]string{
			`{"name":"a"}`: `"plugins": [{"type": …}]`, `{"name":"a","plugins":[]}`: "plugins=[]: is empty",
			`{"name":"a","loadOnlyInlinedPlugins":true}`: "loadOnlyInlinedPlugins=true",
		} {
			_, err := Load(filepath.Join(write(t, map[string]string{"a.conflist": text}), "a.conflist"))
			require.ErrorContains(t, err, want)
		}
	})
	t.Run("folder/ignored", func(t *testing.T) {
		dir := write(t, map[string]string{
			"a.conflist": `{"name":"a","loadOnlyInlinedPlugins":true,"plugins":[{"type":"p"}]}`, "a/1.conf": `{"type":"q"}`,
		})
		l, err := Load(filepath.Join(dir, "a.conflist"))
		require.NoError(t, err)
		assert.Equal(t, []string{"p"}, types(l))
	})
	t.Run("folder/is a file", func(t *testing.T) {
		dir := write(t, map[string]string{"10.conflist": list("a", "p"), "a": "a note"})
		l, err := Load(filepath.Join(dir, "10.conflist"))
		require.NoError(t, err)
		assert.Equal(t, []string{"p"}, types(l))
		l, err = LoadNetwork(dir, "a")
		require.NoError(t, err)
		assert.Equal(t, []string{"p"}, types(l))
		_, err = LoadNetwork(filepath.Join(dir, "a"), "a")
		require.Error(t, err, "a directory that was asked for is another matter")
		require.NotErrorIs(t, err, ErrNetworkNotFound)
	})
	t.Run("folder/broken", func(t *testing.T) {
		dir := write(t, map[string]string{"a.conflist": list("a", "p"), "a/1.conf": `{"type":"a/b"}`})
		_, err := Load(filepath.Join(dir, "a.conflist"))
		require.ErrorContains(t, err, filepath.Join("a", "1.conf")+": type=\"a/b\": has a path character")
	})
	t.Run("network/found among broken files", func(t *testing.T) {
		dir := write(t, map[string]string{
			"00.conflist": ``, "01.conflist": `{"name":"other","plugins":[{"type":"x/y"}]}`, "02.conflist": `{"plugins":[`,
			"03.conflist": `{"name":"other","plu`, "04.conflist": `{"name":17}`, ".b.conflist": list("b", "hidden"), "b.conflist.tmp": list("b", "tmp"),
			"50.conflist": list("b", "right"), "60.conflist": list("b", "late"), "00.conf": `{"name":"b","type":"single"}`,
		})
		require.NoError(t, os.Mkdir(filepath.Join(dir, "05.conflist"), 0o755))
		require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "06.conflist")))
		l, err := LoadNetwork(dir, "b")
		require.NoError(t, err)
		assert.Equal(t, []string{"right"}, types(l))
	})
	t.Run("network/its own broken file is reported", func(t *testing.T) {
		dir := write(t, map[string]string{"10.conflist": `{"cniVersion":"1.0.0","name":"b","plugins":[{`, "20.conflist": list("b", "late")})
		_, err := LoadNetwork(dir, "b")
		require.ErrorContains(t, err, "10.conflist: decode JSON: line 1")
		require.NotErrorIs(t, err, ErrNetworkNotFound)
	})
	t.Run("network/a single plugin", func(t *testing.T) {
		dir := write(t, map[string]string{"10.conf": `{"name":"b","type":"single"}`})
		l, err := LoadNetwork(dir, "b")
		require.NoError(t, err)
		assert.Equal(t, []string{"single"}, types(l))
	})
	t.Run("network/absent", func(t *testing.T) {
		dir := write(t, map[string]string{"10.conflist": list("a", "p"), "20.conflist": `{"cniVersion`})
		_, err := LoadNetwork(dir, "b")
		require.ErrorIs(t, err, ErrNetworkNotFound)
		require.ErrorContains(t, err, "20.conflist is no network configuration")
		assert.NotContains(t, err.Error(), "10.conflist", "it holds another network")
		_, err = LoadNetwork(filepath.Join(dir, "nowhere"), "b")
		require.ErrorIs(t, err, ErrNetworkNotFound)
	})
	t.Run("network/a name that is a path", func(t *testing.T) {
		dir := write(t, map[string]string{"in/x": "", "10.conflist": `{"name":"../10","plugins":[{"type":"p"}]}`})
		_, err := LoadNetwork(filepath.Join(dir, "in"), "../10")
		require.ErrorContains(t, err, "name=\"../10\": has a character")
		require.False(t, errors.Is(err, ErrNetworkNotFound))
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"p","capabilities":{"mac":true},"n":1e400}]}`,
		`{"cniVersions":["1.1.0","0.4.0"],"name":"n","disableCheck":"TRUE","plugins":[{"type":"p","ipam":{"type":"i"}}]}`,
		`{"name":"old","type":"p"}`, "{ \"name\" : \"n\",\n\t\"plugins\": [ { \"type\": \"p\", \"x\": [ 1, {} ] } ] }", `{"name":"n","plugins":[null]}`, `{"name":"../x"}`, "{\"name\":\"\\ud800\"", `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Parse(data)
		if err != nil {
			require.Nil(t, l)
			return
		}
		require.NoError(t, checkList(l))
		raw, err := l.MarshalJSON()
		require.NoError(t, err)
		again, err := Parse(raw)
		require.NoError(t, err)
		require.Equal(t, l, again, "parsing what was rendered changes nothing")
		for _, p := range l.Plugins {
			require.NoError(t, checkPluginType("type", p.Type))
			request, err := l.request(p, parameters{command: cni.CommandAdd})
			require.NoError(t, err)
			o, err := parseDocument(request)
			require.NoError(t, err)
			for _, m := range o {
				require.False(t, strings.HasPrefix(m.key, reservedPrefix), m.key)
			}
		}
	})
}
