package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// says runs the command in this process, which it must not get to examine anything in.
func says(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestRefusesWhatItCannotRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
		return path
	}
	plugin := file("mine", "#!/bin/sh\n", 0o755)
	bridge := file("bridge", "#!/bin/sh\n", 0o755)
	dhcp := file("dhcp", "#!/bin/sh\n", 0o755)
	data := file("data", "", 0o644)
	list := file("list.conflist", `{"plugins": [{"type": "a"}, {"type": "b"}]}`, 0o644)
	behind := file("behind.conflist", `{"plugins": [{"type": "absent"}, {"type": "bridge"}]}`, 0o644)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no plugin":             {nil, "flag -plugin is missing"},
		"an argument":           {[]string{"-plugin", bridge, "run"}, `argument "run"`},
		"an unknown flag":       {[]string{"-plugins", bridge}, "-plugins; see cnisanity -help"},
		"no such file":          {[]string{"-plugin", filepath.Join(dir, "absent")}, "there is no such file"},
		"no such name":          {[]string{"-plugin", "no-such-plugin", "-path", dir}, "no-such-plugin: there is no such file"},
		"a directory":           {[]string{"-plugin", dir}, "is a directory"},
		"not executable":        {[]string{"-plugin", data}, "chmod +x " + data},
		"unknown type":          {[]string{"-plugin", plugin}, "cnisanity -plugin " + plugin + " -conf mine.conf"},
		"type without default":  {[]string{"-plugin", dhcp}, "DHCP server"},
		"no configuration":      {[]string{"-plugin", plugin, "-conf", filepath.Join(dir, "absent")}, "flag -conf"},
		"configuration no JSON": {[]string{"-plugin", plugin, "-conf", data}, "is no plugin object and no list"},
		"not in the list":       {[]string{"-plugin", plugin, "-conf", list}, `no plugin of type "mine", only a, b; say with -type`},
		"no first plugin":       {[]string{"-plugin", bridge, "-conf", behind}, "plugin absent comes first, and is in none of " + dir},
		"profile":               {[]string{"-plugin", bridge, "-profile", "router"}, `"router" is none of interface, chained, ipam, meta`},
		"capabilities":          {[]string{"-plugin", bridge, "-capabilities", "[]"}, "flag -capabilities"},
		"arguments":             {[]string{"-plugin", bridge, "-args", "novalue"}, "flag -args"},
		"two on stdout":         {[]string{"-plugin", bridge, "-json", "-", "-junit", "-"}, "cannot both"},
		"no time":               {[]string{"-plugin", bridge, "-timeout", "0s"}, "flag -timeout"},
		"shared state":          {[]string{"-plugin", bridge, "-parallel", "-dir", dir}, "flags -parallel and -dir"},
		"list of bad -run":      {[]string{"-list", "-run", "("}, "flag -run"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := says(t, c.args...)
			require.Equal(t, unable, status, stderr)
			require.Empty(t, stdout)
			require.True(t, strings.HasPrefix(stderr, "cnisanity: "), stderr)
			require.Contains(t, stderr, c.want)
		})
	}
}

func TestHelp(t *testing.T) {
	status, stdout, stderr := says(t, "-help")
	require.Equal(t, kept, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "Usage: cnisanity -plugin PATH")
	require.Contains(t, stderr, "a line of progress every few seconds", "-no-color silences nothing")
	for _, known := range cnitest.KnownTypes() {
		require.Contains(t, stderr, known)
	}
}

func TestList(t *testing.T) {
	status, stdout, _ := says(t, "-list")
	require.Equal(t, kept, status)
	require.Equal(t, len(cnitest.Cases("")), strings.Count(stdout, "\n"))
	require.Regexp(t, `(?m)^del/repeated +must +57 +A second DEL of an attachment succeeds\.$`, stdout)

	_, stdout, _ = says(t, "-list", "-plugin", "/opt/cni/bin/portmap")
	require.Equal(t, len(cnitest.Cases(cnitest.ProfileChained)), strings.Count(stdout, "\n"), "the profile follows from the type")

	_, stdout, _ = says(t, "-list", "-v", "-run", "^del/repeated$")
	require.Regexp(t, `^del/repeated .*\n   57  plugin must: .*DEL.* \(section 2, DEL\)\n$`, stdout)

	_, stdout, _ = says(t, "-list", "-run", "^del/", "-skip", "repeated", "-json", "-")
	var cases []cnitest.CaseInfo
	require.NoError(t, json.Unmarshal([]byte(stdout), &cases))
	require.NotEmpty(t, cases)
	for _, c := range cases {
		require.Equal(t, "del", c.Group)
		require.NotEqual(t, "repeated", c.Name)
	}
}

func TestCommandToRunAgain(t *testing.T) {
	o, err := parseOptions([]string{
		"-plugin", "./my plugin", "-conf", "it's.conf", "-path", "/a:/b", "-path", "/c", "-args", "K=V;L=W", "-timeout", "3s",
		"-run", "^del/", "-skip", "x", "-seed", "7", "-json", "out.json", "-v", "-strict",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, `cnisanity -plugin './my plugin' -conf 'it'\''s.conf' -path /a:/b:/c -args 'K=V;L=W' -timeout 3s -strict`, o.again())
	require.EqualValues(t, 7, o.seed)

	o, err = parseOptions([]string{"-plugin", "bridge"}, nil)
	require.NoError(t, err)
	require.NotZero(t, o.seed, "one is chosen, to be told")
}

func TestOptionsOfTheKit(t *testing.T) {
	o, err := parseOptions([]string{
		"-plugin", "bridge", "-run", "^del/", "-skip", "x", "-seed", "7", "-timeout", "3s", "-budget", "1m", "-strict", "-parallel",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, cnitest.Options{
		Run: "^del/", Skip: "x", Seed: 7, Timeout: 3 * time.Second, Budget: time.Minute, Strict: true, Parallel: true,
	}, o.kit(nil))
}
