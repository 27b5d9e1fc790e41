package archtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the import table into docs/architecture.md")

const (
	tableBegin = "<!-- import table: begin (written by go test ./internal/archtest -update) -->"
	tableEnd   = "<!-- import table: end -->"
)

// docs/architecture.md shows the table between two marks.
func TestArchitectureDocumentShowsTheTable(t *testing.T) {
	name := filepath.Join(root(t), "docs", "architecture.md")
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	want, err := replaceTable(string(content), markdown(existing(source(t), table)))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(content), "docs/architecture.md is not the table: go test ./internal/archtest -update")
}

func replaceTable(document, table string) (string, error) {
	before, rest, ok := strings.Cut(document, tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("docs/architecture.md has no place for the import table: add the lines\n%s\n%s", tableBegin, tableEnd)
	}
	return before + tableBegin + "\n" + table + tableEnd + after, nil
}

// existing returns the rows that packages of the tree use; those of planned ones wait.
func existing(src *tree, rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return !slices.ContainsFunc(src.packages, func(p *pkg) bool {
			used, _ := find(rows, p.path)
			return used.path == r.path
		})
	})
}

func markdown(rows []row) string {
	var b strings.Builder
	b.WriteString("| package | may import of ours | and of others | because |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.path, names(r.own), names(r.third), r.why)
	}
	return b.String()
}

// names renders entries of the table for people.
func names(entries []string) string {
	short := make([]string, len(entries))
	for i, entry := range entries {
		short[i] = "`" + strings.TrimPrefix(strings.TrimSuffix(entry, "/..."), "github.com/") + "`"
		if entry == "public" {
			short[i] = "every public package"
		}
	}
	return strings.Join(short, ", ")
}

func TestReplaceTable(t *testing.T) {
	document := "a\n" + tableBegin + "\nold\n" + tableEnd + "\nb\n"
	got, err := replaceTable(document, "new\n")
	require.NoError(t, err)
	assert.Equal(t, "a\n"+tableBegin+"\nnew\n"+tableEnd+"\nb\n", got)
	_, err = replaceTable("no marks", "new\n")
	require.ErrorContains(t, err, tableBegin)
}

func TestTableForPeopleShowsTheExisting(t *testing.T) {
	src := sample(t, map[string]string{"cni/netif/a.go": "package netif", "examples/lab/main.go": "package main"})
	got := markdown(existing(src, table))
	assert.Contains(t, got, "| `cni/netif` | `internal/netns`, `internal/nl` | `vishvananda/netlink` | ")
	assert.Contains(t, got, "| `examples/...` | every public package |  | ")
	assert.NotContains(t, got, "`cni/bridge`")
}
