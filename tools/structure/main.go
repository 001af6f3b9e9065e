// Command structure counts what a package is made of and how its files depend on each other, without tests.
//
//	go run ./structure [-C dir] [packages]    (from tools/; dir is .. and packages are ./... otherwise)
//
// For each package it prints its files, lines and exported names (types, functions, methods, constants and variables), how many
// pairs of its files depend on each other (one uses what the other declares), and how many of these point back: they lie on a
// circle, so that neither file can be read first. Packages can't import in a circle; the compiler sees to that.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("C", "..", "the directory that packages are relative to")
	verbose := flag.Bool("v", false, "list the dependencies that point back")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := run(*dir, patterns, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(dir string, patterns []string, verbose bool) error {
	loaded, err := packages.Load(&packages.Config{
		Dir: dir, Mode: packages.NeedName | packages.NeedModule | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
	}, patterns...)
	if err != nil {
		return err
	}
	if packages.PrintErrors(loaded) > 0 {
		return fmt.Errorf("%v do not compile", patterns)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\tlines\texported\tdependencies\tpointing back\t  package\t")
	var sum row
	for _, p := range loaded {
		r := measure(p)
		sum.add(r)
		r.print(w, p.PkgPath)
		if verbose {
			for _, b := range r.back {
				fmt.Fprintf(os.Stderr, "%s: %s\n", p.PkgPath, b)
			}
		}
	}
	sum.print(w, "together")
	return w.Flush()
}

// row is what is counted of one package.
type row struct {
	files, lines, exported, edges, pointing int
	back                                    []string
}

func (r *row) add(o row) {
	r.files += o.files
	r.lines += o.lines
	r.exported += o.exported
	r.edges += o.edges
	r.pointing += o.pointing
}

func (r *row) print(w *tabwriter.Writer, name string) {
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t  %s\t\n", r.files, r.lines, r.exported, r.edges, r.pointing, name)
}

// graph is which files use what others declare.
type graph map[string]map[string]bool

func measure(p *packages.Package) row {
	r := row{exported: exported(p.Types)}
	uses := make(graph)
	for _, f := range p.Syntax {
		from := p.Fset.Position(f.Package).Filename
		r.files++
		r.lines += p.Fset.File(f.Package).LineCount()
		uses[from] = make(map[string]bool)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if to := declaredIn(p, p.TypesInfo.Uses[id]); to != "" && to != from {
				uses[from][to] = true
			}
			return true
		})
	}
	for from, all := range uses {
		for to := range all {
			r.edges++
			if uses.reaches(to, from) {
				r.pointing++
				r.back = append(r.back, filepath.Base(from)+" -> "+filepath.Base(to))
			}
		}
	}
	slices.Sort(r.back)
	return r
}

// declaredIn is the file of this package that declares o; "" if none does.
func declaredIn(p *packages.Package, o types.Object) string {
	if o == nil || o.Pkg() != p.Types || o.Pos() == token.NoPos {
		return ""
	}
	return p.Fset.Position(o.Pos()).Filename
}

// reaches says whether one can get from a file to another one by uses.
func (g graph) reaches(from, to string) bool {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if at == to {
			return true
		}
		for n := range g[at] {
			if !seen[n] {
				seen[n] = true
				next = append(next, n)
			}
		}
	}
	return false
}

// exported counts a package's exported names and those of its exported types' methods.
func exported(p *types.Package) int {
	n := 0
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		n++
		if named, ok := o.Type().(*types.Named); ok && strings.HasPrefix(o.String(), "type ") {
			for m := range named.Methods() {
				if m.Exported() {
					n++
				}
			}
		}
	}
	return n
}
