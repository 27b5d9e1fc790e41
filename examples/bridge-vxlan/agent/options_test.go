package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseOptions(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the node is required":        {nil, `-node=""`},
		"paths are absolute":          {[]string{"-node", "a", "-conf-dir", "net.d"}, `-conf-dir="net.d": is not an absolute path; start it with a slash`},
		"the bridge has a legal name": {[]string{"-node", "a", "-bridge", "a/b"}, `bridge="a/b": is no interface name; use up to 15 bytes`},
		"arguments are refused":       {[]string{"-node", "a", "extra"}, `argument "extra"`},
		"unknown flags are refused":   {[]string{"-node", "a", "-nod", "b"}, "-nod"},
		"values of flags are checked": {[]string{"-node", "a", "-mtu", "many"}, "many"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseOptions(c.args, io.Discard)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("clean-up needs no node", func(t *testing.T) {
		o, err := parseOptions([]string{"-cleanup"}, io.Discard)
		require.NoError(t, err)
		require.True(t, o.cleanup)
	})
}
