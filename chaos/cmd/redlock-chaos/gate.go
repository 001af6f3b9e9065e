package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// gateScenarios are recommended for any lock. Scenarios that need more than a lock has are skipped.
var gateScenarios = []string{
	"calm", "broken-network", "partitions", "bridge", "master-outage", "majority-outage", "refused-writes", "many-keys",
	"paused-clients", "stragglers", "lapsed-extension", "renewal", "shared", "reentrant",
}

// gateCommand is run with the recommended scenarios. Flags of run that are given replace its own.
func gateCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runAs(ctx, "gate", gateFlags(os.Getenv("GITHUB_STEP_SUMMARY")), args, stdout, stderr)
}

// gateFlags are flags of run. Within ten minutes fourteen scenarios have 25 seconds each, and time to start and to end.
func gateFlags(summary string) []string {
	all := []string{
		"-scenario", strings.Join(gateScenarios, ","), "-duration", "25s", "-dir", "chaos-gate",
		"-parallel", strconv.Itoa(runtime.NumCPU()),
	}
	if summary != "" {
		all = append(all, "-markdown", summary)
	}
	return all
}
