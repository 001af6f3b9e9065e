package main

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// module is the prefix of the library's packages.
const module = "github.com/seed-624411e5/redlock"

// path is the code that one operation runs.
type path struct {
	operation string
	functions int
	files     int
	inRoot    int // functions of the root package
}

// operations are the operations in testdata/oneop.go.
var operations = []string{"acquire", "release", "extend", "wait"}

func printPaths(all []path) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "functions\tfiles\tof these functions in the root\t  one\t")
	for _, p := range all {
		fmt.Fprintf(w, "%d\t%d\t%d\t  %s\t\n", p.functions, p.files, p.inRoot, p.operation)
	}
	return w.Flush()
}

// tries is how often each operation is measured. What ran in every try counts: in some a connection is opened or a
// timer fires.
const tries = 5

// tracePaths runs each operation over five masters and counts the library's functions that ran.
func tracePaths(dir string) (all []path, err error) {
	scratch, err := os.MkdirTemp("", "structure")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	program := filepath.Join(scratch, "oneop")
	source, err := filepath.Abs("structure/testdata/oneop.go")
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-cover", "-covermode=atomic",
		"-coverpkg=command-line-arguments,"+module+"/...", "-o", program, source)
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	masters, stop, err := startMasters(5)
	defer stop()
	if err != nil {
		return nil, err
	}
	for _, operation := range operations {
		var always map[string]bool
		for try := range tries {
			ran, err := trace(program, filepath.Join(scratch, fmt.Sprint(operation, try)), operation, masters)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", operation, err)
			}
			if try == 0 {
				always = ran
			}
			maps.DeleteFunc(always, func(f string, _ bool) bool { return !ran[f] })
		}
		all = append(all, newPath(operation, always))
	}
	return all, nil
}

// trace returns the functions that ran, each as FILE:FUNCTION.
func trace(program, dir, operation string, masters []string) (map[string]bool, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	run := exec.Command(program, append([]string{operation, dir}, masters...)...)
	run.Env = append(os.Environ(), "GOCOVERDIR="+os.DevNull) // the counters of the whole program are of no use
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	out, err := exec.Command("go", "tool", "covdata", "func", "-i", dir).Output()
	if err != nil {
		return nil, err
	}
	ran := parse(out)
	if len(ran) < 20 {
		return nil, fmt.Errorf("only %d functions ran: something is wrong with the measurement", len(ran))
	}
	return ran, nil
}

// parse reads the lines of covdata, FILE:LINE: FUNCTION PERCENT, and returns the library's functions that ran.
func parse(covdata []byte) map[string]bool {
	ran := make(map[string]bool)
	for line := range bytes.Lines(covdata) {
		columns := strings.Fields(string(line))
		inModule, ok := strings.CutPrefix(string(line), module+"/")
		if ok && columns[len(columns)-1] != "0.0%" {
			file, _, _ := strings.Cut(inModule, ":")
			ran[file+":"+columns[1]] = true
		}
	}
	return ran
}

// newPath counts functions, files, and what of it is in the root.
func newPath(operation string, ran map[string]bool) path {
	p := path{operation: operation, functions: len(ran)}
	files := make(map[string]bool)
	for function := range ran {
		file, _, _ := strings.Cut(function, ":")
		files[file] = true
		if !strings.Contains(file, "/") {
			p.inRoot++
		}
	}
	p.files = len(files)
	return p
}

// startMasters starts servers on free ports; stop ends them.
func startMasters(n int) (urls []string, stop func(), err error) {
	var servers []*exec.Cmd
	stop = func() {
		for _, s := range servers {
			s.Process.Kill()
			s.Wait()
		}
	}
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, stop, err
		}
		address := listener.Addr().String()
		listener.Close()
		_, port, _ := net.SplitHostPort(address)
		server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "")
		if err := server.Start(); err != nil {
			return nil, stop, err
		}
		servers, urls = append(servers, server), append(urls, "redis://"+address)
		if err := awaitListener(address); err != nil {
			return nil, stop, err
		}
	}
	return urls, stop, nil
}

func awaitListener(address string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}
