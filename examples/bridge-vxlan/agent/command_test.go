package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outside is an environment in which nothing is set.
func outside() (environment, *bytes.Buffer, *bytes.Buffer) {
	var stdout, stderr bytes.Buffer
	return environment{
		getenv:     func(string) string { return "" },
		executable: func() (string, error) { return "/opt/agent/bin/cnikit-agent", nil },
		stdout:     &stdout, stderr: &stderr,
	}, &stdout, &stderr
}

func TestProgram(t *testing.T) {
	for name, c := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help is no failure":                      {[]string{"-h"}, 0, "Usage: cnikit-agent [command] [flags]\n", ""},
		"help/by name":                            {[]string{"help"}, 0, "  uninstall  remove what run and install have set up on this host\n", ""},
		"help/of a command":                       {[]string{"help", "install"}, 0, "Usage: cnikit-agent install [flags]\n", ""},
		"help/asked of the command":               {[]string{"uninstall", "-help"}, 0, "Usage: cnikit-agent uninstall [flags]\n", ""},
		"help/of run, which has a name":           {[]string{"run", "-h"}, 0, "  -topology file\n", ""},
		"help/of one without flags":               {[]string{"wait", "-h"}, 0, "Usage: cnikit-agent wait\n\n", ""},
		"help/of help":                            {[]string{"help", "help"}, 0, "Commands:\n", ""},
		"help/of nothing":                         {[]string{"help", "me"}, 1, "", "cnikit-agent: command \"me\": is not known; use run, install, uninstall, ready, wait, version or help\n"},
		"help/of too much":                        {[]string{"help", "run", "install"}, 1, "", "cnikit-agent: argument \"install\": is one too many; name one command\n"},
		"an unknown command is told":              {[]string{"remove"}, 1, "", "cnikit-agent: command \"remove\": is not known; use run, install, uninstall, ready, wait, version or help\n"},
		"run is the default":                      {nil, 1, "", "cnikit-agent: -node=\"\": is empty; give this node's name among the nodes, or set the environment variable NODE_NAME; see \"cnikit-agent help run\"\n"},
		"a bad value is told in one line":         {[]string{"-mtu", "many"}, 1, "", "cnikit-agent: invalid value \"many\" for flag -mtu: parse error; see \"cnikit-agent help run\"\n"},
		"an impossible value is told in one line": {[]string{"run", "-node", "a", "-vni", "0"}, 1, "", "cnikit-agent: -vni=0: not a VXLAN network identifier; use 1 to 16777215\n"},
	} {
		t.Run(name, func(t *testing.T) {
			env, stdout, stderr := outside()
			assert.Equal(t, c.code, program(t.Context(), c.args, env))
			assert.Contains(t, stdout.String(), c.stdout)
			assert.Equal(t, c.stdout == "", stdout.Len() == 0)
			assert.Equal(t, c.stderr, stderr.String())
			assert.NotRegexp(t, `Flags:\s*$`, stdout.String())
		})
	}
}

// What a cluster says in each pod must not be what the help says on one.
func TestHelpIsTheSameEverywhere(t *testing.T) {
	env, here, _ := outside()
	require.Zero(t, program(t.Context(), []string{"help", "run"}, env))
	env, there, _ := outside()
	env.getenv = func(string) string { return "worker-7" }
	require.Zero(t, program(t.Context(), []string{"help", "run"}, env))
	assert.Equal(t, here.String(), there.String())
	assert.NotContains(t, there.String(), "worker-7")
}

func TestTheDirectoryOfTheProgramMayBeUnknown(t *testing.T) {
	env, _, stderr := outside()
	env.executable = func() (string, error) { return "", errors.New("no /proc") }
	assert.Equal(t, 1, program(t.Context(), []string{"install"}, env))
	assert.Contains(t, stderr.String(), "find the directory of this program: no /proc; use -executables")
}
