package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const xsys = "golang.org/x/sys"

func TestEveryImportIsInTheTable(t *testing.T) {
	report(t, checkImports(source(t), table))
}

// checkImports compares the direct imports of every file, whatever its platform,
// with the rows.
func checkImports(src *tree, rows []row) []string {
	var findings []string
	for _, p := range src.packages {
		r, ok := find(rows, p.path)
		if !ok {
			findings = append(findings, fmt.Sprintf("package %s has no row in the import table: "+
				"add one to internal/archtest/table_test.go that says what it may import and why", p.path))
			continue
		}
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				imp := strings.Trim(spec.Path.Value, `"`)
				if allowed(r, p.path, imp, f.test) {
					continue
				}
				findings = append(findings, src.at(spec.Pos(), fmt.Sprintf("%s may not import %s (%s): "+
					"take what it needs as a parameter, or change the row in internal/archtest/table_test.go with its reason",
					p.path, imp, r.why)))
			}
		}
	}
	return findings
}

// find returns the row of a package: its own, or the nearest that covers it.
func find(rows []row, pkgPath string) (row, bool) {
	best := row{}
	for _, r := range rows {
		if matches(r.path, pkgPath) && len(r.path) > len(best.path) {
			best = r
		}
	}
	return best, best.path != ""
}

// matches compares a path with an entry of the table; "x/..." is x and what is below.
func matches(entry, path string) bool {
	if prefix, ok := strings.CutSuffix(entry, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return entry == path
}

func matchesAny(entries []string, path string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool { return matches(entry, path) })
}

func allowed(r row, pkgPath, imp string, test bool) bool {
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") {
		return imp != "C"
	}
	if own, ok := strings.CutPrefix(imp, modulePath+"/"); ok {
		return allowedOwn(r, own) || test && (own == pkgPath || kit(own) || allowedOwn(forTests, own))
	}
	if matches(xsys+"/...", imp) {
		return !r.pure || test
	}
	return matchesAny(r.third, imp) || test && matchesAny(forTests.third, imp)
}

func allowedOwn(r row, own string) bool {
	if slices.Contains(r.own, "public") && !strings.HasPrefix(own, "internal/") && !strings.HasPrefix(own, "examples/") {
		return true
	}
	return slices.Contains(r.own, own)
}

func TestImportCheckFindsWhatIsBroken(t *testing.T) {
	imports := func(name string, paths ...string) string {
		return "package " + name + "\nimport (\n_ \"" + strings.Join(paths, "\"\n_ \"") + "\"\n)\n"
	}
	const self = modulePath + "/"
	tests := []struct {
		name, file, src, want string
	}{
		{"package without a row", "cni/vlan/a.go", "package vlan", "cni/vlan has no row"},
		{"netlink in cni", "cni/a.go", imports("cni", netlink), "cni may not import " + netlink},
		{"x/sys in a pure package", "ipam/a.go", imports("ipam", xsys+"/unix"), "ipam may not import"},
		{"another platform's file", "cni/a_windows.go", imports("cni", xsys+"/windows"), "cni may not import"},
		{"libcni in cni", "cni/a.go", imports("cni", "github.com/containernetworking/cni/libcni"), "libcni"},
		{"a sibling", "cni/netif/a.go", imports("netif", self+"cni"), "cni/netif may not import"},
		{"testify in a kit", "ipam/ipamtest/a.go", imports("ipamtest", "github.com/stretchr/testify/require"), "testify"},
		{"a kit outside tests", "ipam/a.go", imports("ipam", self+"ipam/ipamtest"), "ipam/ipamtest"},
		{"internal in an example", "examples/lab/main.go", imports("main", self+"internal/nl"), "internal/nl"},
		{"cgo", "internal/nl/a.go", imports("nl", "C"), "may not import C"},
		{"a test of a pure package needs no client-go", "ipam/a_test.go", imports("ipam", "k8s.io/client-go/rest"), "client-go"},
		{"kept", "cni/a.go", imports("cni", "context", cniTypes, cni100), ""},
		{"kept by a test", "ipam/a_test.go", imports("ipam_test", "github.com/stretchr/testify/require", self+"ipam",
			self+"ipam/ipamtest", self+"internal/testenv", xsys+"/unix"), ""},
		{"kept by an example", "examples/x/y/main.go", imports("main", self+"cni/bridge"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings := checkImports(sample(t, map[string]string{tt.file: tt.src}), table)
			if tt.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], tt.want)
		})
	}
}
