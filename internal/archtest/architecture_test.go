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
	for line := range strings.Lines(want) {
		if !strings.Contains(string(content), line) {
			t.Errorf("docs/architecture.md lacks a row (go test ./internal/archtest -update): %s", line)
		}
	}
	for line := range strings.Lines(string(content)) {
		if !strings.Contains(want, line) {
			t.Errorf("docs/architecture.md has a stale row (go test ./internal/archtest -update): %s", line)
		}
	}
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
	var short []string
	for _, entry := range entries {
		switch {
		case entry == "public":
			short = append(short, "every public package")
		case entry == fixtures[0] && slices.Equal(entries[len(entries)-len(fixtures):], fixtures):
			return strings.Join(append(short, "the fixtures in `internal`"), ", ")
		default:
			short = append(short, "`"+strings.TrimPrefix(strings.TrimSuffix(entry, "/..."), "github.com/")+"`")
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
	src := sample(t, map[string]string{
		"cni/netif/a.go": "package netif", "ipam/ipamtest/a.go": "package ipamtest", "examples/lab/main.go": "package main",
	})
	got := markdown(existing(src, table))
	assert.Contains(t, got, "| `cni/netif` | `internal/netns`, `internal/nl` | `vishvananda/netlink` | ")
	assert.Contains(t, got, "| `examples/...` | every public package |  | ")
	assert.Contains(t, got, "| `ipam/ipamtest` | `ipam`, the fixtures in `internal` | ")
	assert.NotContains(t, got, "`cni/bridge`")
}
