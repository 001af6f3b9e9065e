package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/tools/go/packages"
)

// size is the measures of one package.
type size struct {
	name                   string
	files, lines, exported int
	tests                  int      // files with tests
	circle                 []string // the files of the largest circle, sorted
	fields, methods        most
}

// most is a type and its number of fields or methods.
type most struct {
	n  int
	of string
}

func (m *most) consider(n int, of string) {
	if n > m.n {
		*m = most{n, of}
	}
}

func (s *size) add(o size) {
	s.files += o.files
	s.lines += o.lines
	s.exported += o.exported
	s.tests += o.tests
	if len(o.circle) > len(s.circle) {
		s.circle = o.circle
	}
	s.fields.consider(o.fields.n, o.fields.of)
	s.methods.consider(o.methods.n, o.methods.of)
}

func (s *size) print(w *tabwriter.Writer) {
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%s %d\t%s %d\t  %s\t\n",
		s.files, s.lines, s.tests, s.exported, len(s.circle), s.fields.of, s.fields.n, s.methods.of, s.methods.n, s.name)
}

func (s *size) enter(m measures) {
	m.enter(s.name, "tests", s.tests)
	m.enter(s.name, "circle", len(s.circle))
	m.enter(s.name, "fields", s.fields.n)
	m.enter(s.name, "methods", s.methods.n)
}

func measure(p *packages.Package) size {
	s := size{name: strings.TrimPrefix(p.PkgPath, module+"/")}
	if len(p.GoFiles) > 0 {
		tests, _ := filepath.Glob(filepath.Join(filepath.Dir(p.GoFiles[0]), "*_test.go")) // the pattern is valid
		s.tests = len(tests)
	}
	uses := make(graph)
	for _, f := range p.Syntax {
		from := p.Fset.Position(f.Package).Filename
		s.files++
		s.lines += p.Fset.File(f.Package).LineCount()
		uses[from] = make(map[string]bool)
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if to := declaredIn(p, p.TypesInfo.Uses[id]); to != "" && to != from {
					uses[from][to] = true
				}
			}
			return true
		})
	}
	for _, file := range uses.largestCircle() {
		s.circle = append(s.circle, filepath.Base(file))
	}
	for _, name := range p.Types.Scope().Names() {
		s.count(p.Types.Scope().Lookup(name))
	}
	return s
}

// count adds one name of the package's scope.
func (s *size) count(o types.Object) {
	if o.Exported() {
		s.exported++
	}
	t, ok := o.(*types.TypeName)
	if !ok || t.IsAlias() {
		return
	}
	if fields, ok := t.Type().Underlying().(*types.Struct); ok {
		s.fields.consider(fields.NumFields(), t.Name())
	}
	named, ok := t.Type().(*types.Named)
	if !ok {
		return
	}
	s.methods.consider(named.NumMethods(), t.Name())
	for method := range named.Methods() {
		if o.Exported() && method.Exported() {
			s.exported++
		}
	}
}

// declaredIn returns the file of this package that declares o; "" if none does.
func declaredIn(p *packages.Package, o types.Object) string {
	if o == nil || o.Pkg() != p.Types || o.Pos() == token.NoPos {
		return ""
	}
	return p.Fset.Position(o.Pos()).Filename
}

// graph maps each file to the files whose declarations it uses.
type graph map[string]map[string]bool

// largestCircle returns the most files that all reach each other; none if no two do.
func (g graph) largestCircle() (largest []string) {
	reach := make(map[string]map[string]bool, len(g))
	for file := range g {
		reach[file] = g.from(file)
	}
	for file := range g {
		var circle []string
		for other := range reach[file] {
			if reach[other][file] {
				circle = append(circle, other)
			}
		}
		slices.Sort(circle)
		if len(circle) > len(largest) || len(circle) == len(largest) && slices.Compare(circle, largest) < 0 {
			largest = circle
		}
	}
	return largest
}

// from returns the files that one file uses, directly or through others.
func (g graph) from(file string) map[string]bool {
	seen := make(map[string]bool)
	for next := []string{file}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for to := range g[at] {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return seen
}
