package main

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parse returns the options that a command gets.
func parse(t *testing.T, env environment, name string, args ...string) (options, error) {
	t.Helper()
	c, err := findCommand(name)
	require.NoError(t, err)
	return c.parse(args, env)
}

func TestOptionsOfRun(t *testing.T) {
	const mtu = `: not an MTU that IPv6 and VXLAN can use; use 1280 to 65485, or 0 for the underlay's less 50`
	for name, c := range map[string]struct {
		args string // after -node a
		want string
	}{
		"the node is required":          {"-node=", `-node="": is empty; give this node's name among the nodes, or set the environment variable NODE_NAME; see "cnikit-agent help run"`},
		"paths are absolute":            {"-conf-dir net.d", `-conf-dir="net.d": is not an absolute path; start it with a slash`},
		"topology is needed":            {"-topology=", `-topology="": is not an absolute path`},
		"directories are needed":        {"-conf-dir=", `-conf-dir="": is not an absolute path`},
		"leases need a place":           {"-data-dir=", `-data-dir="": is not an absolute path`},
		"status/goes with a reboot":     {"-status-file /var/run.json", `-status-file="/var/run.json": is no plain path of a file under /run, which a reboot empties; use one such as /run/cnikit/status.json`},
		"status/absolute":               {"-status-file status.json", `-status-file="status.json": is no plain path of a file under /run`},
		"status/stays there":            {"-status-file /run/../etc/x", `-status-file="/run/../etc/x": is no plain path`},
		"status/is a file":              {"-status-file /run/", `-status-file="/run/": is no plain path`},
		"status/not hidden":             {"-status-file /run/.status", `-status-file="/run/.status": is hidden; end it in a name that does not begin with a dot`},
		"source/is known":               {"-source etcd", `-source="etcd": is no source of nodes; use file or kube`},
		"source/kube has no topology":   {"-source kube -topology /t.json", `-topology: has no meaning with -source kube; leave out one of the two`},
		"source/file has no kubeconfig": {"-kubeconfig /k", `-kubeconfig: has no meaning with -source file; leave out one of the two`},
		"source/absolute":               {"-source kube -kubeconfig k", `-kubeconfig="k": is not an absolute path`},
		"executables/absolute":          {"-bin-dir bin", `-bin-dir="bin": is not an absolute path; start it with a slash`},
		"executables/from somewhere":    {"-bin-dir /b -executables x", `-executables="x": is not an absolute path`},
		"executables/to somewhere":      {"-executables /x", `-executables: there is nowhere to put them; give -bin-dir as well, or leave it out`},
		"bridge/a legal name":           {"-bridge a/b", `-bridge="a/b": is no interface name; use up to 15 letters`},
		"bridge/some name":              {"-bridge=", `-bridge="": is no interface name`},
		"bridge/not the device":         {"-bridge cnikit.5000", `-bridge="cnikit.5000": is the name of the VXLAN device; use another one, such as cni0, or name the device by -device`},
		"bridge/not another vni's":      {"-vni 7 -bridge cnikit.7", `-bridge="cnikit.7": is the name of the VXLAN device`},
		"bridge/not the device's own":   {"-device vx -bridge vx", `-bridge="vx": is the name of the VXLAN device`},
		"conflist/runtimes read it":     {"-conflist foo.txt", `-conflist="foo.txt": runtimes do not read lists from such a name; end it in .conflist`},
		"conflist/it is a list":         {"-conflist 10-cnikit.conf", `-conflist="10-cnikit.conf": runtimes do not read lists`},
		"conflist/nothing but a suffix": {"-conflist .conflist", `-conflist=".conflist": is no plain file name; use a name without slashes that does not begin with a dot`},
		"conflist/a plain name":         {"-conflist a/b.conflist", `-conflist="a/b.conflist": is no plain file name`},
		"conflist/some name":            {"-conflist=", `-conflist="": is no plain file name`},
		"network/a legal name":          {"-network a/b", `-network="a/b": is no network name; begin`},
		"network/some name":             {"-network=", `-network="": is no network name`},
		"network/fits the device":       {"-network " + strings.Repeat("n", 250), `: does not fit into the alias of a link; use up to 200`},
		"device/a legal name":           {"-device a/b", `-device="a/b": contains a slash, colon or percent sign; use up to 15`},
		"mtu/too small":                 {"-mtu 1279", "-mtu=1279" + mtu},
		"mtu/far too small":             {"-mtu 60", "-mtu=60" + mtu},
		"mtu/negative":                  {"-mtu -1", "-mtu=-1" + mtu},
		"mtu/too large":                 {"-mtu 65486", "-mtu=65486" + mtu},
		"mtu/a number":                  {"-mtu many", `invalid value "many" for flag -mtu: parse error; see "cnikit-agent help run"`},
		"mtu/some number":               {"-mtu=", `invalid value "" for flag -mtu: parse error; see "cnikit-agent help run"`},
		"vni/not the default":           {"-vni 0", `-vni=0: not a VXLAN network identifier; use 1 to 16777215`},
		"vni/negative":                  {"-vni -1", `-vni=-1: not a VXLAN network identifier; use 1 to 16777215`},
		"vni/some number":               {"-vni=", `invalid value "" for flag -vni: parse error; see "cnikit-agent help run"`},
		"port/not the default":          {"-port 0", `-port=0: not a UDP port; use 1 to 65535`},
		"port/too large":                {"-port 65536", `-port=65536: not a UDP port; use 1 to 65535`},
		"resync/not the default":        {"-resync 0", `-resync="0s": is no interval; use one such as 1m, or a negative one for never`},
		"resync/has a unit":             {"-resync 5", `invalid value "5" for flag -resync: it has no unit; write 5s for seconds, or 5m for minutes; see "cnikit-agent help run"`},
		"resync/is a duration":          {"-resync often", `invalid value "often" for flag -resync: it is no duration; write one such as 90s or 1m30s`},
		"arguments are refused":         {"extra", `argument "extra": is not a flag; see "cnikit-agent help run"`},
		"unknown flags are refused":     {"-nod b", `flag provided but not defined: -nod; see "cnikit-agent help run"`},
	} {
		t.Run(name, func(t *testing.T) {
			env, out, _ := outside()
			_, err := parse(t, env, "run", append([]string{"-node", "a"}, strings.Fields(c.args)...)...)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "\n")
			assert.Empty(t, out.String())
		})
	}
	env, _, _ := outside()
	t.Run("network/without white space", func(t *testing.T) {
		_, err := parse(t, env, "run", "-node", "a", "-network=a b")
		require.ErrorContains(t, err, `-network="a b": is no network name`)
	})
	t.Run("node/from the environment", func(t *testing.T) {
		env, _, _ := outside()
		env.getenv = func(name string) string { return map[string]string{"NODE_NAME": "worker-7"}[name] }
		o, err := parse(t, env, "run", "-source", "kube")
		require.NoError(t, err)
		require.Equal(t, "worker-7", o.node)
		o, err = parse(t, env, "run", "-node", "a")
		require.NoError(t, err)
		require.Equal(t, "a", o.node, "what is given counts")
	})
	t.Run("device/has the default of its network identifier", func(t *testing.T) {
		o, err := parse(t, env, "run", "-node", "a", "-vni", "7")
		require.NoError(t, err)
		require.Equal(t, "cnikit.7", o.device)
	})
	t.Run("executables/are beside the program", func(t *testing.T) {
		o, err := parse(t, env, "run", "-node", "a", "-bin-dir", "/opt/cni/bin")
		require.NoError(t, err)
		require.Equal(t, "/opt/agent/bin", o.executables)
	})
	t.Run("status/may be none", func(t *testing.T) {
		o, err := parse(t, env, "run", "-node", "a", "-status-file=")
		require.NoError(t, err)
		require.Empty(t, o.status)
	})
	t.Run("help is no error of its own", func(t *testing.T) {
		_, err := parse(t, env, "run", "-h")
		require.ErrorIs(t, err, flag.ErrHelp)
	})
}

func TestOptionsOfTheOtherCommands(t *testing.T) {
	for name, c := range map[string]struct{ command, args, want string }{
		"install/has somewhere to put it":      {"install", "-bin-dir=", `-bin-dir="": is not an absolute path`},
		"install/prefixes":                     {"install", "-pod-cidrs 10.1.2.0/24,10.1.3", `invalid value "10.1.2.0/24,10.1.3" for flag -pod-cidrs: "10.1.3" is no prefix; write an address and a length, such as 10.1.2.0/24; see "cnikit-agent help install"`},
		"install/prefixes without host bits":   {"install", "-pod-cidrs 10.1.2.1/24", `-pod-cidrs="10.1.2.1/24": has host bits set; use 10.1.2.0/24`},
		"install/an MTU for IPv6":              {"install", "-pod-cidrs fd00::/64 -mtu 1000", `-mtu=1000: is not between 1280 and 65535`},
		"install/flags of the conflist":        {"install", "-mtu 1400", `-mtu: is for a conflist, and none is written; give -pod-cidrs as well, or leave it out`},
		"install/a legal device":               {"install", "-pod-cidrs 10.1.2.0/24 -device a/b", `-device="a/b": is no interface name`},
		"install/the device is not the bridge": {"install", "-pod-cidrs 10.1.2.0/24 -device cni0", `-bridge="cni0": is the name of the VXLAN device`},
		"install/knows no source":              {"install", "-source kube", `flag provided but not defined: -source; see "cnikit-agent help install"`},
		"uninstall/knows no node":              {"uninstall", "-node a", `flag provided but not defined: -node`},
		"uninstall/its own conflists":          {"uninstall", "-conflist a/b.conflist", `-conflist="a/b.conflist": is no plain file name`},
		"uninstall/a legal device":             {"uninstall", "-vni 0", `-vni=0: not a VXLAN network identifier`},
		"uninstall/directories":                {"uninstall", "-conf-dir net.d", `-conf-dir="net.d": is not an absolute path`},
		"ready/of a file":                      {"ready", "-status-file=", `-status-file="": is empty; name the file that the agent keeps`},
		"ready/takes no argument":              {"ready", "now", `argument "now": is not a flag; see "cnikit-agent help ready"`},
	} {
		t.Run(name, func(t *testing.T) {
			env, _, _ := outside()
			_, err := parse(t, env, c.command, strings.Fields(c.args)...)
			require.ErrorContains(t, err, c.want)
		})
	}
	env, _, _ := outside()
	t.Run("uninstall/bridge may be left alone", func(t *testing.T) {
		_, err := parse(t, env, "uninstall", "-bridge=", "-status-file=", "-bin-dir=")
		require.NoError(t, err)
	})
	t.Run("install/prefixes of both families", func(t *testing.T) {
		o, err := parse(t, env, "install", "-pod-cidrs", "10.1.2.0/24, fd00::/64")
		require.NoError(t, err)
		want := prefixes{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("fd00::/64")}
		require.Equal(t, want, o.podCIDRs)
		require.Equal(t, "10.1.2.0/24 fd00::/64", o.podCIDRs.String())
	})
}

func TestConflistTemplate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conflist.template")
	env, _, stderr := outside()
	args := []string{"-node", "a", "-conflist-template", path}

	o, err := parse(t, env, "run", args...)
	require.NoError(t, err, "a ConfigMap may be optional")
	require.Nil(t, o.template)
	require.Contains(t, stderr.String(), path)

	for text, want := range map[string]string{
		"{\n{{.Nme}}":   `-conflist-template="` + path + `": execute template: line 2`,
		"{{":            `-conflist-template="` + path + `": parse template: line 1`,
		`{"name":"no"}`: `-conflist-template="` + path + `": result of template: name="no"`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = parse(t, env, "install", "-pod-cidrs", "10.1.2.0/24", "-conflist-template", path)
		require.ErrorContains(t, err, want)
		o, err = parse(t, env, "run", args...)
		require.NoError(t, err, "an agent works without")
		_, err = o.render(prefixes{netip.MustParsePrefix("10.1.2.0/24")}, 1450)
		require.ErrorContains(t, err, want)
	}
	_, err = parse(t, env, "install", "-pod-cidrs", "10.1.2.0/24", "-conflist-template", filepath.Dir(path))
	require.ErrorContains(t, err, `-conflist-template="`+filepath.Dir(path)+`": read `, "unreadable is not absent")

	require.NoError(t, os.WriteFile(path, []byte(`{"cniVersion":"1.0.0","name":{{json .Name}},"plugins":[{"type":"mine","dev":{{json .TunnelDevice}},"file":{{json .ReadyFile}}}]}`), 0o600))
	o, err = parse(t, env, "run", args...)
	require.NoError(t, err)
	content, err := o.render(prefixes{netip.MustParsePrefix("10.1.2.0/24")}, 1450)
	require.NoError(t, err)
	require.JSONEq(t, `{"cniVersion":"1.0.0","name":"cnikit","plugins":[{"type":"mine","dev":"cnikit.5000","file":"/run/cnikit/status.json"}]}`, string(content))
}
