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

// compared are the modules whose versions belong beside the numbers.
var compared = []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"}

// describe says when, on what and with what the runs were made. It never fails: what can't be found out is left out.
func describe(ctx context.Context) []string {
	facts := []string{
		time.Now().UTC().Format("2006-01-02 15:04 MST"),
		fmt.Sprintf("%s on %s/%s, %d CPUs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
	for _, server := range []string{"redis-server", "valkey-server"} { // in the order in which the harness looks for them
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
