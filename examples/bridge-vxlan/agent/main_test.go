package main

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/reconcile"
)

func TestCommand(t *testing.T) {
	for name, c := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help is no failure":                      {[]string{"-h"}, 0, "Usage: cnikit-agent -node name", ""},
		"a bad value is told in one line":         {[]string{"-mtu", "many"}, 1, "", "cnikit-agent: invalid value \"many\" for flag -mtu: parse error; see -help\n"},
		"an impossible value is told in one line": {[]string{"-node", "a", "-vni", "0"}, 1, "", "cnikit-agent: -vni=0: not a VXLAN network identifier; use 1 to 16777215\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, c.code, command(t.Context(), c.args, &stdout, &stderr))
			assert.Contains(t, stdout.String(), c.stdout)
			assert.Equal(t, c.stdout == "", stdout.Len() == 0)
			assert.Equal(t, c.stderr, stderr.String())
		})
	}
}

func TestOnlyRoundsThatChangedSomethingAreLogged(t *testing.T) {
	for name, c := range map[string]struct {
		round reconcile.Round
		want  string
	}{
		"a failure, which the engine logs": {reconcile.Round{Failed: []reconcile.KeyError{{Target: "t", Key: "k", Err: errors.New("no")}}}, ""},
		"nothing":                          {reconcile.Round{Looks: 3}, ""},
		"something":                        {reconcile.Round{Number: 2, Applied: 1}, "level=INFO msg=round number=2 took=0s applied=1 deleted=0 held=0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logRound(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})), c.round)
			assert.Equal(t, c.want, out.String())
		})
	}
}
