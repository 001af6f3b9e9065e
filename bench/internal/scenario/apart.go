package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/result"
)

// apart measures one worker where the client has a processor core to itself and all servers share another one. So work
// that the client saves does not make its servers faster, and the other way round.
func apart(e *Env) ([]group, error) {
	if !e.Fleet.Ours() {
		return nil, fmt.Errorf("%w: %w", ErrSkipped, fleet.ErrNotOurs)
	}
	return e.groups([]int{1}, e.onMasters(), e.cyclesApart), nil
}

func (e *Env) cyclesApart(ctx context.Context, at place) (out result.Slice, err error) {
	const client, servers = 0, 1
	letServers, err := keepOn(servers, at.servers.Pids()...)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, letServers()) }()
	letClient, err := keepOn(client, os.Getpid())
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, letClient()) }()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as in a process that was started on one core
	return e.cycles(ctx, at)
}
