// Command structure measures how hard the library is to read: the size and the circles of each package, and how much
// code one operation runs through. Of tests only the files are counted.
//
//	go run ./structure [-C dir] [-v] [packages]   a table of packages
//	go run ./structure -paths                     functions and files of one Acquire, Release, Extend, notified wait
//	go run ./structure -check                     both; fails where a measure is worse than its bound in bounds.json
//
// Run it in tools/. By default dir is .. and packages are ./...
//
// The columns of the table:
//
//	files, lines   without tests
//	tests          files with tests
//	exported       types, functions, methods, constants and variables
//	circle         the largest group of files in which each uses declarations of each other, directly or not
//	fields         of the largest struct
//	methods        of the type with the most
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("C", "..", "the directory that packages are relative to")
	verbose := flag.Bool("v", false, "also print the files of each circle")
	paths := flag.Bool("paths", false, "print the functions and files that one operation runs through; needs "+
		"redis-server")
	check := flag.Bool("check", false, "compare everything with bounds.json")
	flag.Parse()
	if err := run(*dir, flag.Args(), *verbose, *paths, *check); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(dir string, patterns []string, verbose, paths, check bool) error {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	found := make(measures)
	if !paths || check {
		all, err := load(dir, patterns)
		if err != nil {
			return err
		}
		if err := printPackages(all, verbose); err != nil {
			return err
		}
		for _, p := range all {
			p.enter(found)
		}
	}
	if paths || check {
		all, err := tracePaths(dir)
		if err != nil {
			return err
		}
		if err := printPaths(all); err != nil {
			return err
		}
		for _, p := range all {
			found.enter(p.operation, "functions", p.functions)
			found.enter(p.operation, "files", p.files)
		}
	}
	if check {
		return found.within("structure/bounds.json")
	}
	return nil
}

func load(dir string, patterns []string) (all []size, err error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: dir, Mode: packages.NeedName | packages.NeedModule | packages.NeedFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, fmt.Errorf("%v do not compile", patterns)
	}
	for _, p := range loaded {
		all = append(all, measure(p))
	}
	return all, nil
}

func printPackages(all []size, verbose bool) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\tlines\ttests\texported\tcircle\tfields\tmethods\t  package\t")
	sum := size{name: "together"}
	for _, s := range all {
		sum.add(s)
		s.print(w)
	}
	sum.print(w)
	if err := w.Flush(); err != nil || !verbose {
		return err
	}
	for _, s := range all {
		if len(s.circle) > 1 {
			fmt.Printf("%s: circle of %s\n", s.name, strings.Join(s.circle, " "))
		}
	}
	return nil
}
