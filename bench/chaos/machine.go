package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// compared are the modules that the report lists with their versions.
var compared = []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"}

// describe returns the time, machine and versions of the runs. It never fails; it omits a fact that it can't find.
func describe(ctx context.Context) []string {
	facts := []string{
		time.Now().UTC().Format("2006-01-02 15:04 MST"),
		fmt.Sprintf("%s on %s/%s, %d CPUs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
	for _, server := range []string{"redis-server", "valkey-server"} { // the harness looks for them in this order
		if out, err := exec.CommandContext(ctx, server, "--version").Output(); err == nil {
			facts = append(facts, strings.TrimSpace(string(out)))
			break
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		var versions []string
		for _, dep := range info.Deps {
			if slices.Contains(compared, dep.Path) {
				versions = append(versions, dep.Path+" "+dep.Version)
			}
		}
		facts = append(facts, strings.Join(versions, ", "))
	}
	return facts
}
