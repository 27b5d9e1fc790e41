package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRefusedArguments(t *testing.T) {
	script := t.TempDir()
	for _, name := range programs() {
		require.NoError(t, os.WriteFile(filepath.Join(script, name), []byte("#!/bin/sh\n"), 0o600))
	}
	for name, test := range map[string]struct {
		args  []string
		words []string
	}{
		"unknown flag":      {[]string{"-x"}, []string{"-x", "see -help"}},
		"argument":          {[]string{"cnikit.tar"}, []string{`argument "cnikit.tar"`, "see -help"}},
		"no programs":       {[]string{"-bin", t.TempDir()}, []string{"-bin=", "lacks cnikit-agent", "cnikit-ipam"}},
		"no Linux programs": {[]string{"-bin", script}, []string{"cnikit-agent: is no Linux program", "GOOS=linux"}},
		"no such directory": {[]string{"-bin", "/nonexistent"}, []string{"-bin=/nonexistent", "lacks cnikit-agent"}},
		"unknown processor": {[]string{"-arch", "abacus"}, []string{"abacus", "build cnikit-agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "cnikit.tar")
			var stdout, stderr bytes.Buffer
			require.Equal(t, 1, command(t.Context(), append([]string{"-o", out}, test.args...), &stdout, &stderr))
			for _, words := range test.words {
				require.Contains(t, stderr.String(), words)
			}
			require.Empty(t, stdout.String())
			require.NoFileExists(t, out)
		})
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, command(t.Context(), []string{"-help"}, &stdout, &stderr))
	for _, words := range []string{"Usage: mkimage [flags]", "-bin directory", `default "localhost/cnikit:dev"`} {
		require.Contains(t, stdout.String(), words)
	}
	require.Empty(t, stderr.String())
}

// What was there stays when there is no new image, and nothing is left beside it.
func TestFileStaysWhenWritingFails(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "cnikit.tar")
	require.NoError(t, os.WriteFile(out, []byte("before"), 0o600))
	require.ErrorContains(t, writeFile(out, imageOf(options{ref: "localhost/cnikit:dev", bin: "/nonexistent"})), "/nonexistent/cnikit-agent")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	content, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "before", string(content))
}
