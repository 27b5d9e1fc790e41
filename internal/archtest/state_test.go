package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoMutableStateInPackages(t *testing.T) {
	report(t, checkState(source(t)))
}

// oneOfAKind are the package variables that stand for something of which a process has
// one, with the reason.
var oneOfAKind = map[string]string{
	"cni/fromskel turn": "a lock on standard output and the environment, which callbacks for skel are written to",
}

// checkState finds init functions, package variables that could hold state, and writes
// to package variables. A constant table or a sentinel error is none.
func checkState(src *tree) []string {
	var findings []string
	for _, p := range src.packages {
		vars := resolve(src.fset, p)
		for _, f := range p.files {
			if f.test || ast.IsGenerated(f.ast) {
				continue
			}
			for _, decl := range f.ast.Decls {
				findings = append(findings, checkDecl(src, p, decl)...)
			}
		}
		for _, f := range p.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				for _, id := range written(n) {
					if v := vars[id]; v != nil && !inTest(src.fset, v.Pos()) {
						findings = append(findings, src.at(n.Pos(), fmt.Sprintf("%s changes the package variable %s: keep it in a value that its owner passes on", p.path, id.Name)))
					}
				}
				return true
			})
		}
	}
	return findings
}

func inTest(fset *token.FileSet, pos token.Pos) bool {
	return strings.HasSuffix(fset.Position(pos).Filename, "_test.go")
}

// resolve tells which identifiers are package variables. Imports are not followed:
// what is declared here resolves without them.
func resolve(fset *token.FileSet, p *pkg) map[*ast.Ident]*types.Var {
	byName := map[string][]*ast.File{}
	for _, f := range p.files {
		byName[f.ast.Name.Name] = append(byName[f.ast.Name.Name], f.ast)
	}
	vars := map[*ast.Ident]*types.Var{}
	for name, files := range byName {
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: noImports{}, Error: func(error) {}}
		checked, _ := config.Check(name, fset, files, info) // incomplete on purpose
		for id, object := range info.Uses {
			if v, ok := object.(*types.Var); ok && v.Parent() == checked.Scope() {
				vars[id] = v
			}
		}
	}
	return vars
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not followed")
}

// checkDecl judges one declaration at package level.
func checkDecl(src *tree, p *pkg, decl ast.Decl) []string {
	var findings []string
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.Name == "init" && decl.Recv == nil {
			findings = append(findings, src.at(decl.Pos(), "func init: make it a constructor that the user calls"))
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || decl.Tok != token.VAR || value.Names[0].Name == "_" || embedded(decl, value) || oneOfAKind[p.path+" "+value.Names[0].Name] != "" {
				continue
			}
			if why := stateful(value); why != "" {
				findings = append(findings, src.at(value.Pos(), fmt.Sprintf("package variable %s %s: make it a constant, a function, or a field", value.Names[0].Name, why)))
			}
		}
	}
	return findings
}

func embedded(decl *ast.GenDecl, value *ast.ValueSpec) bool {
	for _, group := range []*ast.CommentGroup{decl.Doc, value.Doc} {
		if group != nil && strings.Contains(group.List[len(group.List)-1].Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// constructors make values that nobody changes.
var constructors = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer",
	"netip.AddrFrom4", "netip.AddrFrom16", "netip.MustParseAddr", "netip.MustParsePrefix", "netip.PrefixFrom",
}

// stateful says why a package variable may hold state, or "".
func stateful(value *ast.ValueSpec) string {
	if len(value.Values) == 0 {
		return "has no value, so something will set it"
	}
	why := ""
	check := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ChanType:
			why = "has a channel"
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
				why = "has a lock or an atomic"
			}
		case *ast.CallExpr:
			if !constant(n) {
				why = "is made by a call, which may give it state"
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND && !sentinel(value.Names[0].Name) {
				why = "is a pointer, through which it can be changed"
			}
		}
		return why == ""
	}
	if value.Type != nil {
		ast.Inspect(value.Type, check)
	}
	for _, v := range value.Values {
		ast.Inspect(v, check)
	}
	return why
}

// constant tells the calls that make constants: constructors, and conversions to a
// type of the language.
func constant(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		x, ok := fun.X.(*ast.Ident)
		return ok && slices.Contains(constructors, x.Name+"."+fun.Sel.Name)
	case *ast.Ident:
		return types.Universe.Lookup(fun.Name) != nil && fun.Name != "make" && fun.Name != "new"
	case *ast.ArrayType:
		return true
	}
	return false
}

func sentinel(name string) bool { return strings.HasPrefix(strings.ToLower(name), "err") }

// written returns the variables that a node writes to or hands out for writing.
func written(n ast.Node) []*ast.Ident {
	var exprs []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			exprs = n.Lhs
		}
	case *ast.IncDecStmt:
		exprs = []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			exprs = []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			exprs = []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if fun, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (fun.Name == "delete" || fun.Name == "clear" || fun.Name == "copy") {
			exprs = n.Args[:1]
		}
	}
	var ids []*ast.Ident
	for _, expr := range exprs {
		if id := base(expr); id != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// base returns the identifier at the bottom of x, x.f, x[i], *x.
func base(expr ast.Expr) *ast.Ident {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return e
		case *ast.SelectorExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SliceExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		default:
			return nil
		}
	}
}

func TestStateCheckFindsWhatIsBroken(t *testing.T) {
	tests := []struct {
		name, body, want string
	}{
		{"init", `func init() {}`, "func init"},
		{"unset", `var count int`, "has no value"},
		{"lock", `var mu = sync.Mutex{}`, "lock"},
		{"lock inside", `var s = struct{ mu sync.Mutex }{}`, "lock"},
		{"channel", `var c = map[string]chan int{}`, "channel"},
		{"made", `var c = make([]int, 1)`, "by a call"},
		{"own constructor", `var c = newCache()`, "by a call"},
		{"pointer", `var c = &T{}`, "pointer"},
		{"assigned", `var limit = 1; func f() { limit = 2 }`, "changes the package variable limit"},
		{"assigned an import's result", `var limit = 1; func f() { limit = os.Getpid() }`, "variable limit"},
		{"counted", `var n = 1; func f() { n++ }`, "variable n"},
		{"map written", `var m = map[int]int{}; func f() { m[1] = 2 }`, "variable m"},
		{"map deleted from", `var m = map[int]int{}; func f() { delete(m, 1) }`, "variable m"},
		{"field written", `var t = T{}; func f() { t.x.y = 2 }`, "variable t"},
		{"address handed out", `var t = T{}; func f() *T { return &t }`, "variable t"},
		{"ranged over", `var i = 1; func f() { for i = range 3 {} }`, "variable i"},
		{"sentinels and tables", `var ErrX = errors.New("x"); var errY = &T{}; var names = []string{"a"}; var re = regexp.MustCompile("x")
			var m = map[string]func(){"x": func() { g() }}; var bits = uint8(1); var raw = []byte("x")`, ""},
		{"interface check", `var _ I = (*T)(nil)`, ""},
		{"embedded file", "//go:embed x\nvar text string", ""},
		{"local of the same name", `var limit = 1; func f() { limit := 2; limit = 3; _ = limit }`, ""},
		{"parameter of the same name", `var limit = 1; func f(limit int) { limit = 3 }`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings := checkState(sample(t, map[string]string{"x/a.go": "package x\nimport \"os\"\n" + tt.body}))
			if tt.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], tt.want)
		})
	}
}

func TestStateCheckSeesWritesOfTests(t *testing.T) {
	findings := checkState(sample(t, map[string]string{
		"x/a.go":      "package x\nvar now = 1",
		"x/a_test.go": "package x\nvar update = 1\nfunc f() { now = 2; update = 3 }",
	}))
	require.Len(t, findings, 1, "a seam that a test swaps is state; what the test itself declares is not the package's")
	assert.Contains(t, findings[0], "variable now")
}
