package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// harmless are the functions of the netlink library that only make or convert values.
var harmless = []string{"NewLinkAttrs", "NewIPNet", "ParseAddr", "ParseIPNet", "NewRule", "NewVeth"}

// kernelExceptions are the files that may do what internal/nl does, each with its reason.
var kernelExceptions = map[string]string{
	"cni/cnitest/monitor_linux.go": "an independent witness: it joins the kernel's notifications and sends nothing",
}

func TestOnlyNLTalksToTheKernelsNetworkConfiguration(t *testing.T) {
	report(t, checkKernel(source(t), netlinkFuncs(t), kernelExceptions))
}

// netlinkFuncs returns the functions of the netlink library that talk to the kernel.
func netlinkFuncs(t *testing.T) map[string]bool {
	t.Helper()
	list := exec.Command("go", "list", "-f", "{{.Dir}}", netlink)
	list.Dir = root(t)
	dir, err := list.Output()
	require.NoError(t, err)
	lib, err := load(os.DirFS(strings.TrimSpace(string(dir))))
	require.NoError(t, err)
	funcs := map[string]bool{}
	lib.each(func(p *pkg, f *file) {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && p.path == "." && fn.Recv == nil && fn.Name.IsExported() && !slices.Contains(harmless, fn.Name.Name) {
				funcs[fn.Name.Name] = true
			}
		}
	})
	require.Contains(t, funcs, "LinkAdd", "the library was not read")
	return funcs
}

// checkKernel finds netlink functions, handles, netlink sockets and paths of network
// sysctls outside internal/nl. Write requests are counted there; one that is sent
// elsewhere would make "the agent wrote nothing" a lie.
func checkKernel(src *tree, funcs map[string]bool, exceptions map[string]string) []string {
	var findings []string
	src.each(func(p *pkg, f *file) {
		if p.path == "internal/nl" || exceptions[f.name] != "" {
			return
		}
		lib, low := f.imported(netlink), f.imported(netlink+"/nl")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if what := kernelUse(n, lib, low, funcs, f.test); what != "" {
				findings = append(findings, src.at(n.Pos(), what+": only internal/nl does that; call it, or add what is missing there"))
			}
			return true
		})
	})
	return findings
}

// kernelUse says what is wrong with a node, or "". lib and low are the names under
// which the file knows the netlink library and its lower layer.
func kernelUse(n ast.Node, lib, low string, funcs map[string]bool, test bool) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		x, _ := n.X.(*ast.Ident)
		switch {
		case n.Sel.Name == "NETLINK_ROUTE":
			return "use of a route netlink socket"
		case x == nil || x.Name == "":
			return ""
		case x.Name == lib && (funcs[n.Sel.Name] || n.Sel.Name == "Handle"):
			return "use of netlink." + n.Sel.Name
		case x.Name == low && strings.HasPrefix(n.Sel.Name, "New"):
			return "use of netlink/nl." + n.Sel.Name
		}
	case *ast.BasicLit:
		s, err := strconv.Unquote(n.Value)
		if err == nil && !test && n.Kind == token.STRING && strings.HasPrefix(s, "/proc/sys/net") {
			return "path of a network sysctl"
		}
	}
	return ""
}

func TestKernelCheckFindsWhatIsBroken(t *testing.T) {
	const head = "package x\nimport \"github.com/vishvananda/netlink\"\nimport low \"github.com/vishvananda/netlink/nl\"\n" +
		"import \"golang.org/x/sys/unix\"\nvar _ = low.X\nvar _ unix.X\n"
	tests := []struct {
		name, file, body, want string
	}{
		{"function value", "cni/netif/a.go", `var f = netlink.LinkAdd`, "netlink.LinkAdd"},
		{"call", "cni/netif/a.go", `func f() { netlink.LinkAdd(nil) }`, "netlink.LinkAdd"},
		{"call in a test", "cni/netif/a_test.go", `func f() { netlink.LinkList() }`, "netlink.LinkList"},
		{"handle", "cni/netif/a.go", `type t struct{ h *netlink.Handle }`, "netlink.Handle"},
		{"lower layer", "cni/netif/a.go", `func f() { low.NewNetlinkRequest(0, 0) }`, "NewNetlinkRequest"},
		{"socket", "overlay/vxlan/a.go", `var p = unix.NETLINK_ROUTE`, "route netlink socket"},
		{"sysctl", "cni/netif/a.go", `const p = "/proc/sys/net/ipv4/ip_forward"`, "network sysctl"},
		{"types and constructors", "cni/netif/a.go", `var a = netlink.NewLinkAttrs(); var s = netlink.Scope(0); var l netlink.Link`, ""},
		{"internal/nl itself", "internal/nl/a.go", `func f() { netlink.LinkAdd(nil) }`, ""},
		{"an exception", "cni/cnitest/monitor.go", `var p = unix.NETLINK_ROUTE`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := sample(t, map[string]string{tt.file: head + tt.body})
			funcs := map[string]bool{"LinkAdd": true, "LinkList": true}
			findings := checkKernel(src, funcs, map[string]string{"cni/cnitest/monitor.go": "only listens"})
			if tt.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], tt.want)
		})
	}
}

func TestKernelExceptionsAreNeeded(t *testing.T) {
	src := source(t)
	for name, reason := range kernelExceptions {
		assert.NotEmpty(t, reason, "%s: no reason", name)
		without := checkKernel(src, netlinkFuncs(t), map[string]string{})
		assert.Contains(t, strings.Join(without, "\n"), name, "%s needs its exception no longer", name)
	}
}
