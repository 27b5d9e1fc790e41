package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/cnikit/cnikit"

// tree is the source of a module: the files of its own packages and of its nested
// modules' parsed, and every text file.
type tree struct {
	fset     *token.FileSet
	packages []*pkg // of the module itself, sorted by path
	nested   []*pkg // of the modules below: what may be imported there is not our affair
	texts    map[string]string
}

// pkg is one directory, whatever the platform its files are for.
type pkg struct {
	path  string // relative to the module: "cni/chain"
	files []*file
}

type file struct {
	name string // relative to the module: "cni/chain/list.go"
	ast  *ast.File
	test bool
}

// load reads the module whose root is fsys.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), texts: map[string]string{}}
	byPath := map[string]*pkg{}
	var nested []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipDir(name):
			return fs.SkipDir
		case entry.IsDir():
			if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil && name != "." {
				nested = append(nested, name+"/")
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if !strings.Contains(string(src), "\x00") {
			t.texts[name] = string(src)
		}
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			return nil
		}
		parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byPath[dir] == nil {
			byPath[dir] = &pkg{path: dir}
			packages := &t.packages
			if under(name, nested) {
				packages = &t.nested
			}
			*packages = append(*packages, byPath[dir])
		}
		byPath[dir].files = append(byPath[dir].files, &file{name, parsed, strings.HasSuffix(name, "_test.go")})
		return nil
	})
	for _, packages := range [][]*pkg{t.packages, t.nested} {
		slices.SortFunc(packages, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	}
	return t, err
}

// skipDir tells the directories that are no source: dot directories but CI's, and
// what make builds.
func skipDir(name string) bool {
	base := path.Base(name)
	return name == "bin" || strings.HasPrefix(base, ".") && base != "." && base != ".ci" && base != ".github"
}

func under(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(name, dir) })
}

// each calls visit with every file of the module's packages.
func (t *tree) each(visit func(*pkg, *file)) { visitFiles(t.packages, visit) }

// eachNested calls visit with every file of the nested modules' packages.
func (t *tree) eachNested(visit func(*pkg, *file)) { visitFiles(t.nested, visit) }

func visitFiles(packages []*pkg, visit func(*pkg, *file)) {
	for _, p := range packages {
		for _, f := range p.files {
			visit(p, f)
		}
	}
}

// at renders a finding with its place.
func (t *tree) at(pos token.Pos, what string) string {
	where := t.fset.Position(pos)
	where.Column = 0
	return where.String() + ": " + what
}

// command tells whether p is a program.
func (p *pkg) command() bool {
	return slices.ContainsFunc(p.files, func(f *file) bool { return f.ast.Name.Name == "main" })
}

// public tells whether other modules may import p.
func (p *pkg) public() bool {
	return !p.command() && !strings.HasPrefix(p.path, "internal/") && !strings.HasPrefix(p.path, "examples/")
}

// kit tells whether the package of that path is a test kit.
func kit(pkgPath string) bool {
	return strings.HasSuffix(pkgPath, "test") && !strings.HasPrefix(pkgPath, "internal/") ||
		strings.HasPrefix(pkgPath, "cni/cnitest/")
}

// imported returns the name by which f refers to the package it imports as
// importPath, or "".
func (f *file) imported(importPath string) string {
	for _, spec := range f.ast.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// root is the directory of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// source is this module's tree.
func source(t testing.TB) *tree {
	t.Helper()
	src, err := load(os.DirFS(root(t)))
	require.NoError(t, err)
	require.NotEmpty(t, src.packages, "no package was read: the other checks would look at nothing")
	return src
}

// sample is the tree of the files given by name.
func sample(t testing.TB, files map[string]string) *tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	src, err := load(fsys)
	require.NoError(t, err)
	return src
}

// report fails the test with each finding.
func report(t testing.TB, findings []string) {
	t.Helper()
	slices.Sort(findings)
	for _, finding := range findings {
		t.Error(finding)
	}
}

func TestLoad(t *testing.T) {
	src := sample(t, map[string]string{
		"go.mod":                   "module m",
		"cni/chain/list.go":        "package chain",
		"cni/chain/a_test.go":      "package chain_test",
		"cni/testdata/x.go":        "package x",
		"internal/peers/go.mod":    "module p",
		"internal/peers/p.go":      "package p",
		"internal/peers/deep/p.go": "package p",
		"bin/generated.go":         "package b",
		".cache/x.go":              "package c",
		".ci/run":                  "#!/bin/sh",
	})
	var names []string
	src.each(func(p *pkg, f *file) { names = append(names, p.path+" "+f.name) })
	require.ElementsMatch(t, []string{"cni/chain cni/chain/list.go", "cni/chain cni/chain/a_test.go"}, names)
	require.Len(t, src.nested, 2)
	require.Equal(t, "internal/peers/deep", src.nested[1].path, "a directory in a nested module is of that module")
	require.Contains(t, src.texts, "internal/peers/p.go", "nested modules are text too")
	require.Contains(t, src.texts, ".ci/run")
	require.NotContains(t, src.texts, "bin/generated.go")
}
