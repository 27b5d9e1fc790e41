package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseOptions(t *testing.T) {
	const mtu = `: not an MTU that IPv6 and VXLAN can use; use 1280 to 65485, or 0 for the underlay's less 50`
	for name, c := range map[string]struct {
		args string // after -node a
		want string
	}{
		"the node is required":          {"-node=", `-node="": is empty; give this node's name in the topology`},
		"paths are absolute":            {"-conf-dir net.d", `-conf-dir="net.d": is not an absolute path; start it with a slash`},
		"topology is needed":            {"-topology=", `-topology="": is not an absolute path`},
		"directories are needed":        {"-conf-dir=", `-conf-dir="": is not an absolute path`},
		"leases need a place":           {"-data-dir=", `-data-dir="": is not an absolute path`},
		"the status is a file":          {"-status-file /", `-status-file="/": names no file`},
		"the status is not hidden":      {"-status-file /run/.status", `-status-file="/run/.status": names no file`},
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
		"mtu/a number":                  {"-mtu many", `invalid value "many" for flag -mtu: parse error; see -help`},
		"mtu/some number":               {"-mtu=", `invalid value "" for flag -mtu: parse error; see -help`},
		"vni/not the default":           {"-vni 0", `-vni=0: not a VXLAN network identifier; use 1 to 16777215`},
		"vni/negative":                  {"-vni -1", `-vni=-1: not a VXLAN network identifier; use 1 to 16777215`},
		"vni/some number":               {"-vni=", `invalid value "" for flag -vni: parse error; see -help`},
		"port/not the default":          {"-port 0", `-port=0: not a UDP port; use 1 to 65535`},
		"port/too large":                {"-port 65536", `-port=65536: not a UDP port; use 1 to 65535`},
		"resync/not the default":        {"-resync 0", `-resync="0s": is no interval; use one such as 1m, or a negative one for never`},
		"arguments are refused":         {"extra", `argument "extra": is not a flag; see -help`},
		"unknown flags are refused":     {"-nod b", "flag provided but not defined: -nod; see -help"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			_, err := parseOptions(append([]string{"-node", "a"}, strings.Fields(c.args)...), &out)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "\n")
			assert.Empty(t, out.String())
		})
	}
	t.Run("network/without white space", func(t *testing.T) {
		_, err := parseOptions([]string{"-node", "a", "-network=a b"}, &bytes.Buffer{})
		require.ErrorContains(t, err, `-network="a b": is no network name`)
	})
	t.Run("clean-up needs no node", func(t *testing.T) {
		o, err := parseOptions([]string{"-cleanup"}, &bytes.Buffer{})
		require.NoError(t, err)
		require.True(t, o.cleanup)
	})
	t.Run("device/has the default of its network identifier", func(t *testing.T) {
		o, err := parseOptions([]string{"-node", "a", "-vni", "7"}, &bytes.Buffer{})
		require.NoError(t, err)
		require.Equal(t, "cnikit.7", o.device)
	})
	t.Run("help is printed", func(t *testing.T) {
		var out bytes.Buffer
		_, err := parseOptions([]string{"-h"}, &out)
		require.ErrorIs(t, err, flag.ErrHelp)
		require.Contains(t, out.String(), "-topology file")
	})
}
