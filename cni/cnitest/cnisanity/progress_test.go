package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// watched is what is shown of an examination of one case that takes 25 seconds.
func watched(t *testing.T, moving bool) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		p := newProgress(&out, moving)
		want := &cnitest.Report{}
		got, err := p.runWith(t.Context(), func() (*cnitest.Report, error) {
			_, err := p.Write([]byte("1/1 faults/killed-add\n"))
			time.Sleep(25 * time.Second)
			return want, err
		})
		require.NoError(t, err)
		require.Same(t, want, got)
	})
	return out.String()
}

func TestProgressInALog(t *testing.T) {
	require.Equal(t, "1/1 faults/killed-add (10s)\n1/1 faults/killed-add (20s)\n", watched(t, false))
}

func TestProgressOnATerminal(t *testing.T) {
	shown := watched(t, true)
	require.NotContains(t, shown, "\n")
	require.Contains(t, shown, "\r\x1b[K1/1 faults/killed-add\r")
	require.Contains(t, shown, "\r\x1b[K1/1 faults/killed-add (24s)\r")
	require.Regexp(t, "\r\x1b\\[K$", shown, "the line is taken away")
}
