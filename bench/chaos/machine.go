package main

import (
	"context"
	"os/exec"
	"strings"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
)

// describe returns the time, machine and versions of the runs. It never fails; it omits a fact that it can't find.
func describe(ctx context.Context) []string {
	facts := cli.Machine()
	for _, server := range []string{"redis-server", "valkey-server"} { // the harness looks for them in this order
		if out, err := exec.CommandContext(ctx, server, "--version").Output(); err == nil {
			facts = append(facts, strings.TrimSpace(string(out)))
			break
		}
	}
	return append(facts, cli.Versions("github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"))
}
