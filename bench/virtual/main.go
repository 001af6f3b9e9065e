// Command virtual runs this library and its rivals in virtual time, over masters in memory and drawn faults. It finds
// schedules that break a promise, and makes them smaller. See package virtual of the chaos harness.
//
//	go run ./bench/virtual -subject redsync                 a thousand schedules, up to the first violation
//	go run ./bench/virtual -subject redislock -on           go on, and count what each oracle finds
//	go run ./bench/virtual -subject redsync -replay s.json  run one schedule again, and draw it
package main

import (
	"context"
	"io"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos/virtual"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func main() {
	cli.Main(run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var all []virtual.Entry
	for _, r := range rivals.All() {
		if _, ok := r.Subject.(workload.Secured); !ok {
			continue
		}
		e := virtual.Entry{Subject: r.Subject}
		if r.Single {
			e.Masters = 1
		}
		all = append(all, e)
	}
	return virtual.Main(ctx, all, args, stdout, stderr)
}
