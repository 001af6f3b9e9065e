// Command elsewhere checks that packages are valid on other systems than this one.
//
//	go run ./elsewhere [-C dir] [-os darwin,windows] [packages]
//
// Run it in tools/. By default dir is .. and packages are ./...
//
// For each system it type-checks the sources that Go would choose there: the packages and all their imports, the
// standard library too. So it finds the errors of a compiler, such as a missing name or another type. It takes a
// tenth of the time that compiling the standard library for each system takes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("C", "..", "the directory that packages are relative to")
	systems := flag.String("os", "darwin,windows", "values of GOOS, with commas between them")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	failed := false
	for system := range strings.SplitSeq(*systems, ",") {
		n, err := check(*dir, system, patterns)
		if err != nil {
			fmt.Fprintf(os.Stderr, "elsewhere: %s: %v\n", system, err)
			failed = true
			continue
		}
		fmt.Printf("%s: %d packages and their imports\n", system, n)
	}
	if failed {
		os.Exit(1)
	}
}

// check loads the packages for a system and returns their number.
func check(dir, system string, patterns []string) (int, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: dir,
		Env: append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+system),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedImports | packages.NeedDeps,
	}, patterns...)
	if err != nil {
		return 0, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return 0, errors.New("not valid there")
	}
	if len(loaded) == 0 {
		return 0, fmt.Errorf("%v: no packages", patterns)
	}
	return len(loaded), nil
}
