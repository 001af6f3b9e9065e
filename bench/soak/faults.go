package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// fault hits one master, and is undone before do returns.
type fault struct {
	name string
	do   func(ctx context.Context, s *redistest.Server, d time.Duration) error
}

func faults() []fault {
	return []fault{
		{"stopped", func(ctx context.Context, s *redistest.Server, d time.Duration) error {
			if err := s.Pause(); err != nil {
				return err
			}
			load.Wait(ctx, d)
			return s.Resume()
		}},
		{"killed and restarted", func(ctx context.Context, s *redistest.Server, d time.Duration) error {
			if err := s.Kill(); err != nil {
				return err
			}
			load.Wait(ctx, d)
			return s.Restart()
		}},
		{"cut off", func(ctx context.Context, s *redistest.Server, _ time.Duration) error {
			return errors.Join(
				s.Client().Do(ctx, "CLIENT", "KILL", "TYPE", "normal").Err(),
				s.Client().Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err(),
			)
		}},
		{"without scripts", func(ctx context.Context, s *redistest.Server, _ time.Duration) error {
			return s.Client().ScriptFlush(ctx).Err()
		}},
		{"refusing writes", func(ctx context.Context, s *redistest.Server, d time.Duration) error {
			if err := s.Client().ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
				return err
			}
			load.Wait(ctx, d)
			return s.Client().ConfigSet(context.WithoutCancel(ctx), "maxmemory", "0").Err()
		}},
	}
}

// majority is the name of the fault of a majority at once.
const majority = "a majority stopped"

func faultNames() (names []string) {
	for _, f := range faults() {
		names = append(names, f.name)
	}
	return append(names, majority)
}

// hurt makes one fault after another until ctx is done. Before it returns it undoes them all; the error names the
// faults that it could not undo.
func hurt(ctx context.Context, servers []*redistest.Server, draw *rand.Rand, t *tally) error {
	for n := 1; ; n++ {
		load.Wait(ctx, time.Duration(1+draw.IntN(4))*time.Second)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // that is its end
		}
		name, err := one(ctx, servers, draw, n%12 == 0)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("fault %q: %w", name, err)
		}
		t.note(name, err)
	}
}

// one makes a random fault on a random master, or stops a majority.
func one(ctx context.Context, servers []*redistest.Server, draw *rand.Rand, most bool) (name string, err error) {
	if most {
		return majority, stopMajority(ctx, servers, draw)
	}
	all := faults()
	f := all[draw.IntN(len(all))]
	return f.name, f.do(ctx, servers[draw.IntN(len(servers))], time.Duration(200+draw.IntN(2800))*time.Millisecond)
}

func stopMajority(ctx context.Context, servers []*redistest.Server, draw *rand.Rand) (err error) {
	most := draw.Perm(len(servers))[:redlock.Quorum(len(servers))]
	for _, i := range most {
		err = errors.Join(err, servers[i].Pause())
	}
	load.Wait(ctx, time.Duration(1+draw.IntN(4))*time.Second)
	for _, i := range most {
		err = errors.Join(err, servers[i].Resume())
	}
	return err
}
