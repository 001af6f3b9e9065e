package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// kind is where a sentence stands.
type kind string

const (
	pages    kind = "pages"           // Markdown
	public   kind = "public comments" // shown by go doc, of importable packages
	comments kind = "other comments"
	tests    kind = "tests"
)

var kinds = []kind{pages, public, comments, tests}

// sentence is one that was found, with its flags.
type sentence struct {
	kind  kind
	file  string
	line  int
	text  string
	flags []string
}

// reader collects the sentences of a tree.
type reader struct{ found []sentence }

func (r *reader) add(k kind, file string, line int, paragraph string) {
	for _, text := range split(paragraph) {
		if len(word.FindAllString(text, -1)) >= minWords {
			r.found = append(r.found, sentence{k, file, line, text, flagsOf(text)})
		}
	}
}

// read finds all sentences in the files below these paths.
func read(dir string, paths []string) ([]sentence, error) {
	var r reader
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(dir, path), func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := d.Name()
			hidden := strings.HasPrefix(name, ".") && name != "." && name != ".." && name != ".github"
			switch {
			case d.IsDir() && (hidden || name == "testdata"):
				return filepath.SkipDir
			case d.IsDir():
				return nil
			case strings.HasSuffix(name, ".md"):
				return r.page(file)
			case strings.HasSuffix(name, ".go"):
				return r.source(file)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

var (
	notProse = regexp.MustCompile(`^\s*(#|<|---)|^    `)
	item     = regexp.MustCompile(`^\s*([-*+]|\d+\.) `)
)

// page adds the paragraphs, list items and table cells of a Markdown page.
func (r *reader) page(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p paragraph
	fenced := false
	for i, line := range strings.Split(string(data), "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		fenced = fenced != fence
		switch text := strings.TrimSpace(line); {
		case fence, fenced, text == "", notProse.MatchString(line):
			p.end(r, pages, file)
		case strings.HasPrefix(text, "|"):
			p.end(r, pages, file)
			for cell := range strings.SplitSeq(strings.Trim(text, "|"), "|") {
				r.add(pages, file, i+1, cell)
			}
		default:
			if item.MatchString(line) {
				p.end(r, pages, file)
			}
			p.line(i+1, text)
		}
	}
	p.end(r, pages, file)
	return nil
}

// source adds the comments of a Go file.
func (r *reader) source(file string) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	shown := make(map[*ast.CommentGroup]bool)
	if importable(file, f) {
		shown = documentation(f)
	}
	for _, group := range f.Comments {
		k := comments
		switch {
		case strings.HasSuffix(file, "_test.go"):
			k = tests
		case shown[group]:
			k = public
		}
		r.comment(k, set, file, group)
	}
	return nil
}

// directive is a comment for tools.
var directive = regexp.MustCompile(`^//([a-z]+:|nolint|line )`)

func (r *reader) comment(k kind, set *token.FileSet, file string, group *ast.CommentGroup) {
	var p paragraph
	for _, c := range group.List {
		text, isLine := strings.CutPrefix(c.Text, "//")
		switch {
		case !isLine, directive.MatchString(c.Text), strings.HasPrefix(text, "\t"), strings.TrimSpace(text) == "":
			p.end(r, k, file)
		default:
			if item.MatchString(text) {
				p.end(r, k, file)
			}
			p.line(set.Position(c.Pos()).Line, text)
		}
	}
	p.end(r, k, file)
}

// paragraph collects lines.
type paragraph struct {
	first int
	lines []string
}

func (p *paragraph) line(n int, text string) {
	if len(p.lines) == 0 {
		p.first = n
	}
	p.lines = append(p.lines, strings.TrimSpace(text))
}

func (p *paragraph) end(r *reader, k kind, file string) {
	if len(p.lines) > 0 {
		r.add(k, file, p.first, strings.Join(p.lines, " "))
	}
	*p = paragraph{}
}

func importable(file string, f *ast.File) bool {
	return !strings.Contains(filepath.ToSlash(file), "/internal/") && f.Name.Name != "main" &&
		!strings.HasSuffix(file, "_test.go")
}

// documentation returns the comments that go doc shows: for the package, and for exported names with their fields and
// methods.
func documentation(f *ast.File) map[*ast.CommentGroup]bool {
	shown := map[*ast.CommentGroup]bool{f.Doc: true}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				shown[d.Doc] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if within := documentedIn(s); within != nil {
					shown[d.Doc] = true
					ast.Inspect(within, func(n ast.Node) bool {
						if group, ok := n.(*ast.CommentGroup); ok {
							shown[group] = true
						}
						return true
					})
				}
			}
		}
	}
	return shown
}

// documentedIn is s if it declares an exported name, and otherwise nil.
func documentedIn(s ast.Spec) ast.Node {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			return s
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				return s
			}
		}
	}
	return nil
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
