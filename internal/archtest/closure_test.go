package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// node is a package as "go list -json" describes it.
type node struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

func TestLinkedModulesAreInTheTable(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			report(t, checkClosure(listDeps(t, goos), table))
		})
	}
}

// listDeps returns every package that the module links on a platform.
func listDeps(t *testing.T, goos string) map[string]node {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", "./...")
	list.Dir = root(t)
	list.Env = append(list.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	require.NoError(t, err, "go list: %s", &stderr)
	nodes := map[string]node{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var n node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		nodes[n.ImportPath] = n
	}
	require.NotEmpty(t, nodes)
	return nodes
}

// checkClosure compares the third-party modules that each package links, however far
// away, with what its row lets it have.
func checkClosure(nodes map[string]node, rows []row) []string {
	var findings []string
	for _, importPath := range slices.Sorted(maps.Keys(nodes)) {
		own, ok := strings.CutPrefix(importPath, modulePath+"/")
		if !ok {
			continue
		}
		may := modulesOf(rows, own)
		if may[anyModule] {
			continue
		}
		linked := map[string]string{} // module: the package that imports it
		collect(nodes, importPath, linked, map[string]bool{})
		for _, module := range slices.Sorted(maps.Keys(linked)) {
			if !may[module] {
				findings = append(findings, fmt.Sprintf("%s links module %s (by %s), which its row does not bring: "+
					"drop it, or add it to internal/archtest/table_test.go with its reason", own, module, linked[module]))
			}
		}
	}
	return findings
}

func collect(nodes map[string]node, importPath string, linked map[string]string, seen map[string]bool) {
	if seen[importPath] {
		return
	}
	seen[importPath] = true
	for _, imp := range nodes[importPath].Imports {
		n, ok := nodes[imp]
		if !ok || n.Standard {
			continue
		}
		if n.Module != nil && n.Module.Path != modulePath && linked[n.Module.Path] == "" {
			linked[n.Module.Path] = importPath
		}
		collect(nodes, imp, linked, seen)
	}
}

// modulesOf returns the modules that a package may link: those of its row, what they
// bring, and the same of the packages of ours that it may import.
func modulesOf(rows []row, pkgPath string) map[string]bool {
	may := map[string]bool{}
	var visit func(string)
	seen := map[string]bool{}
	visit = func(pkgPath string) {
		r, ok := find(rows, pkgPath)
		if !ok || seen[pkgPath] {
			return
		}
		seen[pkgPath] = true
		if !r.pure {
			may[xsys] = true
		}
		for _, entry := range r.third {
			module := moduleOf(entry)
			may[module] = true
			for _, brought := range brings[module] {
				may[brought] = true
			}
		}
		for _, own := range r.own {
			if own == "public" {
				may[anyModule] = true // the rows of what it imports say it
			}
			visit(own)
		}
	}
	visit(pkgPath)
	return may
}

// moduleOf returns the module of an entry of the table.
func moduleOf(entry string) string {
	best := ""
	for module := range brings {
		if matches(module+"/...", strings.TrimSuffix(entry, "/...")) && len(module) > len(best) {
			best = module
		}
	}
	return best
}

func TestEveryModuleOfTheTableSaysWhatItBrings(t *testing.T) {
	for _, r := range table {
		assert.NotEmpty(t, r.why, "row %s gives no reason", r.path)
		for _, entry := range r.third {
			assert.NotEmpty(t, moduleOf(entry), "row %s: no entry of brings covers %s", r.path, entry)
		}
	}
}

func TestClosureCheckFindsWhatIsBroken(t *testing.T) {
	module := func(path string) *struct{ Path string } { return &struct{ Path string }{path} }
	nodes := map[string]node{}
	add := func(importPath, modulePath string, imports ...string) {
		nodes[importPath] = node{ImportPath: importPath, Imports: imports, Module: module(modulePath)}
	}
	add(modulePath+"/cni", modulePath, cniTypes)
	add(modulePath+"/cni/chain", modulePath, modulePath+"/cni")
	add(cniTypes, "github.com/containernetworking/cni")
	assert.Empty(t, checkClosure(nodes, table))

	add(cniTypes, "github.com/containernetworking/cni", "go.opentelemetry.io/otel")
	add("go.opentelemetry.io/otel", "go.opentelemetry.io/otel")
	findings := checkClosure(nodes, table)
	require.Len(t, findings, 2, "both cni and what imports it link the newcomer")
	assert.Contains(t, findings[0], "cni links module go.opentelemetry.io/otel (by "+cniTypes+")")
}
