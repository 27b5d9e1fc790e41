package archtest

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goroutineExceptions are the functions, as "file function", that may start a goroutine
// though they do not run for their caller's ctx by name, each with its reason.
var goroutineExceptions = map[string]string{
	"cni/exec_stderr.go begin":              "copies as os/exec would, until the process and its children, or end, close the pipe",
	"internal/netns/do_linux.go onThread":   "the caller waits for it; it exists to own a thread",
	"internal/netns/do_linux.go threadMain": "the same, one thread further when it got the main one",
}

func TestGoroutinesStartInRun(t *testing.T) {
	report(t, checkGoroutines(source(t), goroutineExceptions))
}

// checkGoroutines finds goroutines that start outside functions whose name says that
// they run until their ctx ends: Run, Watch, Serve, Main and what begins so.
func checkGoroutines(src *tree, exceptions map[string]string) []string {
	var findings []string
	src.each(func(p *pkg, f *file) {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || f.test || runs(fn.Name.Name) || exceptions[f.name+" "+fn.Name.Name] != "" {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if what := starts(n); what != "" {
					findings = append(findings, src.at(n.Pos(), fmt.Sprintf("%s in func %s starts a goroutine: start it in Run(ctx) or Watch(ctx), "+
						"or list it in internal/archtest/goroutine_test.go with the reason why it ends", what, fn.Name.Name)))
				}
				return true
			})
		}
	})
	return findings
}

func runs(name string) bool {
	for _, prefix := range []string{"run", "watch", "serve", "main"} {
		if strings.HasPrefix(strings.ToLower(name), prefix) {
			return true
		}
	}
	return false
}

// starts names what starts a goroutine at a node, or "".
func starts(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go statement"
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		switch name := qualified(sel); {
		case sel.Sel.Name == "Go", name == "time.AfterFunc":
			return "call of " + sel.Sel.Name
		}
	}
	return ""
}

func TestGoroutineExceptionsAreNeeded(t *testing.T) {
	src := source(t)
	for key, reason := range goroutineExceptions {
		name, fn, _ := strings.Cut(key, " ")
		assert.NotEmpty(t, reason, "%s: no reason", key)
		found := false
		for _, finding := range checkGoroutines(src, nil) {
			found = found || strings.HasPrefix(finding, name+":") && strings.Contains(finding, "func "+fn+" ")
		}
		assert.True(t, found, "%s needs its exception no longer", key)
	}
}

func TestGoroutineCheckFindsWhatIsBroken(t *testing.T) {
	tests := []struct {
		name, file, body, want string
	}{
		{"go statement", "x/a.go", `func New() { go f() }`, "go statement in func New"},
		{"in a method", "x/a.go", `func (t *T) Close() { go f() }`, "go statement in func Close"},
		{"in a closure", "x/a.go", `func New() { _ = func() { go f() } }`, "go statement in func New"},
		{"group", "x/a.go", `func New() { g.Go(f) }`, "call of Go in func New"},
		{"timer", "x/a.go", `func New() { time.AfterFunc(1, f) }`, "call of AfterFunc in func New"},
		{"Run", "x/a.go", `func (t *T) Run() { go f() }`, ""},
		{"part of Run", "x/a.go", `func (t *T) runTargets() { go f() }`, ""},
		{"waking what waits when ctx ends", "x/a.go", `func f() { context.AfterFunc(ctx, g) }`, ""},
		{"test", "x/a_test.go", `func TestX() { go f() }`, ""},
		{"exception", "x/exec.go", `func pipe() { go f() }`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := sample(t, map[string]string{tt.file: "package x\n" + tt.body})
			findings := checkGoroutines(src, map[string]string{"x/exec.go pipe": "ends with the process"})
			if tt.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], tt.want)
		})
	}
}

// qualified returns "x.Name" for a selector on a plain identifier, else "".
func qualified(sel *ast.SelectorExpr) string {
	if x, ok := sel.X.(*ast.Ident); ok {
		return x.Name + "." + sel.Sel.Name
	}
	return ""
}
