package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentsNameFlagsThatThereAre, in command lines and in `-code`.
func TestDocumentsNameFlagsThatThereAre(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	(&options{}).register(flags)
	command := regexp.MustCompile(`cnisanity( -.*)`)
	word := regexp.MustCompile(`(?:^|[ ` + "`" + `])-([a-z][a-z-]*)`)
	docs, err := filepath.Glob("../../../docs/conformance*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(docs), 2)
	found := map[string]bool{}
	for _, file := range append(docs, "../../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			code := ""
			if m := command.FindStringSubmatch(line); m != nil {
				code = m[1]
			} else if filepath.Base(file) == "conformance-ci.md" && strings.Contains(line, "`-") {
				code = line
			}
			for _, m := range word.FindAllStringSubmatch(code, -1) {
				require.NotNil(t, flags.Lookup(m[1]), "%s: there is no flag -%s: %s", file, m[1], line)
				found[m[1]] = true
			}
		}
	}
	for _, name := range []string{"plugin", "conf", "profile", "run", "skip", "junit", "json", "share", "dir"} {
		require.True(t, found[name], "no document tells of -%s", name)
	}
}
