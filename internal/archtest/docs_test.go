package archtest

import (
	"fmt"
	"go/ast"
	"go/doc"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPackagesExplainThemselves(t *testing.T) {
	report(t, checkDocs(source(t)))
}

// checkDocs finds packages without a package comment in doc.go, and public packages
// without an example whose output is checked. Programs carry their comment on any file.
func checkDocs(src *tree) []string {
	var findings []string
	for _, p := range src.packages {
		want, where := "Package "+path.Base(p.path)+" ", "doc.go"
		if p.command() {
			want, where = "Command ", ""
		}
		if !documented(p, want, where) {
			findings = append(findings, fmt.Sprintf("%s: no comment that begins with %q above its package clause%s: "+
				"say what it is for, what not, and where to start", p.path, want, in(where)))
		}
		if p.public() && !exemplary(p) {
			findings = append(findings, fmt.Sprintf("%s: no Example with an // Output comment: show the shortest useful program that needs no root", p.path))
		}
	}
	return findings
}

func in(where string) string {
	if where == "" {
		return ""
	}
	return " in " + where
}

func documented(p *pkg, want, where string) bool {
	for _, f := range p.files {
		if f.test || where != "" && path.Base(f.name) != where {
			continue
		}
		if strings.HasPrefix(f.ast.Doc.Text(), want) {
			return true
		}
	}
	return false
}

func exemplary(p *pkg) bool {
	var tests []*ast.File
	for _, f := range p.files {
		if f.test {
			tests = append(tests, f.ast)
		}
	}
	for _, example := range doc.Examples(tests...) {
		if example.Output != "" || example.EmptyOutput {
			return true
		}
	}
	return false
}

func TestDocsCheckFindsWhatIsBroken(t *testing.T) {
	const example = "package ipam_test\nfunc Example() {\nfmt.Println(1)\n// Output: 1\n}\n"
	good := map[string]string{
		"ipam/doc.go":          "// Package ipam gives out addresses.\npackage ipam\n",
		"ipam/example_test.go": example,
	}
	with := func(name, src string) map[string]string {
		files := map[string]string{name: src}
		for n, s := range good {
			if _, ok := files[n]; !ok {
				files[n] = s
			}
		}
		return files
	}
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"good", good, ""},
		{"no comment", with("ipam/doc.go", "package ipam"), "no comment"},
		{"comment of another", with("ipam/doc.go", "// Package ipal is.\npackage ipam"), "no comment"},
		{"comment elsewhere", with("ipam/doc.go", "package ipam\n// Package ipam is.\n"), "no comment"},
		{"no example", with("ipam/example_test.go", "package ipam_test"), "no Example"},
		{"example without output", with("ipam/example_test.go", strings.Replace(example, "// Output: 1", "", 1)), "no Example"},
		{"internal without comment", with("internal/nl/nl.go", "package nl"), "internal/nl: no comment"},
		{"internal needs no example", with("internal/nl/doc.go", "// Package nl talks.\npackage nl"), ""},
		{"program", with("examples/lab/main.go", "// Command lab runs.\npackage main"), ""},
		{"program without comment", with("examples/lab/main.go", "package main"), "examples/lab: no comment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings := checkDocs(sample(t, tt.files))
			if tt.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], tt.want)
		})
	}
}
