package main

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/reconcile"
)

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
