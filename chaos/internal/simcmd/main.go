// Command simcmd is only `redlock-chaos sim`. The controls build it with a mutant of the engine. It
// links so much less than the whole command that a dozen mutants cost little.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-624411e5/redlock/chaos/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := sim.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
