package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/chaos/masters"
)

// look reads the holders of these keys from the server at addr.
type look func(ctx context.Context, addr string, keys []string) ([]masters.Key, error)

// server makes a process of this machine a master of the harness: it can be killed, and started again with its data on
// disk.
type server struct {
	*backend.Server
	look look
}

// fleetOf makes a cluster's servers masters of the harness.
func fleetOf(name string, cluster *backend.Cluster, look look) *masters.Fleet {
	fleet := &masters.Fleet{Backend: name, Cleanup: cluster.Close}
	for _, s := range cluster.Servers {
		fleet.Masters = append(fleet.Masters, server{s, look})
	}
	return fleet
}

// unavailable reports a missing program in the harness's words.
func unavailable(err error) error {
	if errors.Is(err, backend.ErrNotInstalled) {
		return fmt.Errorf("%w: %w", masters.ErrUnavailable, err)
	}
	return err
}

func (server) Can(action masters.Action) error {
	if action == masters.Kill {
		return nil
	}
	return fmt.Errorf("%w: these servers can only be killed", masters.ErrUnavailable)
}

func (s server) Inject(_ context.Context, action masters.Action, _ masters.Params) (masters.Injection, error) {
	if err := s.Can(action); err != nil {
		return masters.Injection{}, err
	}
	pid := s.Pid()
	if err := s.Kill(); err != nil {
		return masters.Injection{}, err
	}
	var once sync.Once
	heal := func(ctx context.Context) (err error) {
		once.Do(func() { err = s.Start(ctx) })
		return err
	}
	return masters.Injection{Observed: fmt.Sprintf("process %d is gone and connections are refused", pid), Heal: heal},
		nil
}

func (s server) Look(ctx context.Context, keys []string) ([]masters.Key, error) {
	return s.look(ctx, s.Addr(), keys)
}

// Close implements masters.Master. The cluster ends its servers.
func (server) Close() error { return nil }
