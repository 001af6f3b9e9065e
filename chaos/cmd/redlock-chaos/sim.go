package main

import (
	"context"
	"io"

	"github.com/seed-624411e5/redlock/chaos/sim"
)

// simCommand runs simulated schedules.
func simCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return sim.Main(ctx, args, stdout, stderr)
}
