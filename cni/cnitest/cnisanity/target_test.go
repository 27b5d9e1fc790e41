package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// programs makes executables of these names in a directory.
func programs(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755))
	}
	return dir
}

func targetOf(t *testing.T, args ...string) *target {
	t.Helper()
	o, err := parseOptions(args, nil)
	require.NoError(t, err)
	target, err := o.target()
	require.NoError(t, err)
	require.NoError(t, target.link())
	t.Cleanup(target.close)
	return target
}

func TestDelegateBesideThePlugin(t *testing.T) {
	dir := programs(t, "bridge", "host-local")
	got := targetOf(t, "-plugin", filepath.Join(dir, "bridge"))
	require.Equal(t, "bridge", got.Plugin)
	require.Equal(t, cnitest.ProfileInterface, got.Profile)
	require.Equal(t, []string{dir}, got.Path)
	require.Contains(t, string(got.Config), `"type": "host-local"`)
	require.Empty(t, got.scratch)
}

func TestDelegateOfOurOwn(t *testing.T) {
	dir := programs(t, "bridge")
	got := targetOf(t, "-plugin", filepath.Join(dir, "bridge"))
	require.Contains(t, string(got.Config), `"type": "cnikit-ipam"`)
	require.Equal(t, []string{got.scratch, dir}, got.Path)
	own, err := os.Executable()
	require.NoError(t, err)
	link, err := os.Readlink(filepath.Join(got.scratch, "cnikit-ipam"))
	require.NoError(t, err)
	require.Equal(t, own, link)

	got.close()
	require.NoDirExists(t, got.scratch)
}

func TestStandInForHostLocal(t *testing.T) {
	dir := programs(t, "mine")
	conf := filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(conf, []byte(`{"type": "mine", "ipam": {"type": "host-local"}}`), 0o644))
	got := targetOf(t, "-plugin", filepath.Join(dir, "mine"), "-conf", conf)
	require.FileExists(t, filepath.Join(got.scratch, "host-local"))
	require.NoFileExists(t, filepath.Join(got.scratch, "cnikit-ipam"))

	got = targetOf(t, "-plugin", filepath.Join(dir, "mine"), "-conf", conf, "-path", programs(t, "host-local"), "-path", dir)
	require.Empty(t, got.scratch)
	require.Len(t, got.Path, 2, "each directory once")
}

func TestPluginUnderAnotherFileName(t *testing.T) {
	dir := programs(t, "bridge-amd64", "host-local")
	conf := filepath.Join(dir, "conf")
	for _, args := range [][]string{
		{"-type", "bridge"},
		{"-conf", conf}, // one type only
		{"-type", "bridge", "-conf", conf},
	} {
		require.NoError(t, os.WriteFile(conf, []byte(`{"type": "bridge"}`), 0o644))
		got := targetOf(t, append(args, "-plugin", filepath.Join(dir, "bridge-amd64"))...)
		require.Equal(t, "bridge", got.Plugin)
		link, err := os.Readlink(filepath.Join(got.scratch, "bridge"))
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, "bridge-amd64"), link)
		require.Equal(t, got.scratch, got.Path[0])
	}
}

func TestPluginByNameAlone(t *testing.T) {
	first, second := programs(t, "host-local"), programs(t, "bridge")
	t.Setenv("CNI_PATH", second)
	got := targetOf(t, "-plugin", "bridge", "-path", first)
	require.Equal(t, []string{second, first}, got.Path)
}

func TestWhatTheRuntimeGives(t *testing.T) {
	dir := programs(t, "mine", "bridge")
	conf := filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(conf, []byte(`{"plugins": [{"type": "bridge"}, {"type": "mine"}]}`), 0o644))
	got := targetOf(t, "-plugin", filepath.Join(dir, "mine"), "-conf", conf, "-profile", "chained", "-args", "A=1;B=2",
		"-capabilities", `{"mac": "02:00:00:00:00:01"}`, "-dir", "/run/mine", "-dir", "/var/lib/mine:/x")
	require.Equal(t, "mine", got.Plugin)
	require.Equal(t, cnitest.ProfileChained, got.Profile)
	require.Equal(t, "A=1;B=2", got.Args.String())
	require.Equal(t, map[string]any{"mac": "02:00:00:00:00:01"}, got.Capabilities)
	require.Equal(t, []string{"/run/mine", "/var/lib/mine", "/x"}, got.Dirs)
}

// TestNeededIsWhereThingsReallyAre: what is only a link there is found behind it.
func TestNeededIsWhereThingsReallyAre(t *testing.T) {
	behind, ipam, dir := programs(t, "multi"), programs(t, "ipam"), t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(behind, "multi"), filepath.Join(dir, "bridge")))
	require.NoError(t, os.Symlink(filepath.Join(ipam, "ipam"), filepath.Join(dir, "host-local")))
	got := targetOf(t, "-plugin", filepath.Join(dir, "bridge"), "-share", "/run/daemon")
	require.Subset(t, got.needed(), []string{dir, behind, ipam, "/run/daemon", os.TempDir()})
}

// TestSuggestedConfigurations are what they are said to be: any version, and one for
// chained plugins, which need no addresses.
func TestSuggestedConfigurations(t *testing.T) {
	dir := programs(t, "mine")
	t.Chdir(t.TempDir())
	o, err := parseOptions([]string{"-plugin", filepath.Join(dir, "mine")}, nil)
	require.NoError(t, err)
	_, err = o.target()
	require.ErrorIs(t, err, cnitest.ErrNoDefault)
	suggested := regexp.MustCompile(`(?m)^  (\{.*\})$`).FindAllStringSubmatch(err.Error(), -1)
	commands := regexp.MustCompile(`(?m)^  (cnisanity -.*)$`).FindAllStringSubmatch(err.Error(), -1)
	require.Len(t, suggested, 2, err)
	require.Len(t, commands, 2, err)
	for i, profile := range []cnitest.Profile{cnitest.ProfileInterface, cnitest.ProfileChained} {
		require.NoError(t, os.WriteFile("mine.conf", []byte(suggested[i][1]), 0o644))
		got := targetOf(t, strings.Fields(commands[i][1])[1:]...)
		require.Equal(t, profile, cmp.Or(got.Profile, cnitest.ProfileInterface))
		config := string(got.Config)
		require.NotContains(t, config, "cniVersion", "STATUS and GC are there since 1.1.0")
		require.Equal(t, profile == cnitest.ProfileInterface, strings.Contains(config, "ipam"))
	}
	require.ErrorContains(t, err, cnitest.Placeholder)
}

// TestNameAlone is no path: what has the name in the working directory is not meant.
func TestNameAlone(t *testing.T) {
	t.Chdir(programs(t, "bridge"))
	require.NoError(t, os.Mkdir("macvlan", 0o755))
	empty, dir := t.TempDir(), programs(t, "bridge", "macvlan")
	t.Setenv("CNI_PATH", empty)
	for _, name := range []string{"bridge", "macvlan"} {
		require.Equal(t, filepath.Join(dir, name), targetOf(t, "-plugin", name, "-path", dir).executable)
	}
	o, err := parseOptions([]string{"-plugin", "bridge", "-path", empty}, nil)
	require.NoError(t, err)
	_, err = o.target()
	require.EqualError(t, err, "flag -plugin: bridge: there is no such file in "+empty+", "+empty+
		", /opt/cni/bin, /usr/lib/cni, /usr/libexec/cni; for the one in the working directory write ./bridge")
}
