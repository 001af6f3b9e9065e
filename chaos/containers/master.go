package containers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
)

// startPatience is how long a server may take until it answers.
const startPatience = 20 * time.Second

// master is a server in a container. What commands can do to it, the embedded Master does over the control network.
type master struct {
	masters.Master
	node *node
	// keeps reports whether it keeps its data across a kill; mustKeep that the plan relies on this.
	keeps, mustKeep bool
	// probe is where a client would reach it, past the run's proxies.
	probe string
}

func (m *master) Can(action masters.Action) error {
	switch {
	case action == masters.Kill && m.mustKeep && !m.keeps:
		return fmt.Errorf("%w: %s must not lose data here, and the masters have no AOF; start the profile aof",
			masters.ErrUnavailable, action)
	case action == masters.KillEmpty && m.keeps && m.node.remake == nil:
		return fmt.Errorf("%w: %s would have to remove a volume of masters that others started", masters.ErrUnavailable,
			action)
	case (masters.Process | masters.Packets).Has(action) == nil:
		return nil
	default:
		return m.Master.Can(action)
	}
}

// Keyspace lists all keys.
func (m *master) Keyspace(ctx context.Context) (map[string]time.Duration, error) {
	return masters.Keyspace(ctx, m.Master)
}

// Connections counts the server's connections.
func (m *master) Connections(ctx context.Context) (int, error) {
	return masters.Connections(ctx, m.Master)
}

func (m *master) Inject(ctx context.Context, action masters.Action, p masters.Params) (masters.Injection, error) {
	if err := m.Can(action); err != nil {
		return masters.Injection{}, err
	}
	var observed string
	var heal func(context.Context) error
	var err error
	switch action {
	case masters.Pause:
		observed, heal, err = m.pause(ctx)
	case masters.Kill:
		observed, heal, err = m.kill(ctx, m.node.start)
	case masters.KillEmpty:
		again := m.node.start
		if m.keeps {
			again = m.node.replace
		}
		observed, heal, err = m.kill(ctx, again)
	case masters.Disconnect:
		observed, heal, err = m.disconnect(ctx)
	default:
		return m.Master.Inject(ctx, action, p)
	}
	if err != nil {
		return masters.Injection{}, fmt.Errorf("%s: %w", action, err)
	}
	return masters.Injection{Observed: observed, Heal: once(heal)}, nil
}

// once makes a heal function that does its work a single time, also when that fails.
func once(heal func(context.Context) error) func(context.Context) error {
	var done sync.Once
	return func(ctx context.Context) (err error) {
		done.Do(func() { err = heal(ctx) })
		return err
	}
}

func (m *master) pause(ctx context.Context) (observed string, heal func(context.Context) error, err error) {
	if err := m.node.pause(ctx); err != nil {
		return "", nil, errors.Join(err, m.node.unpause(ctx))
	}
	if m.answers(ctx, 100*time.Millisecond) {
		return "", nil, errors.Join(errors.New("it was answered"), m.node.unpause(ctx))
	}
	return fmt.Sprintf("container %s is paused and does not answer", m.node.name), m.node.unpause, nil
}

func (m *master) kill(ctx context.Context, again func(context.Context) error) (observed string,
	heal func(context.Context) error, err error,
) {
	heal = func(ctx context.Context) error {
		if err := again(ctx); err != nil {
			return fmt.Errorf("start it again: %w", err)
		}
		return m.await(ctx)
	}
	exit, err := m.node.kill(ctx)
	if err != nil {
		return "", nil, err
	}
	if m.answers(ctx, 100*time.Millisecond) {
		return "", nil, errors.Join(errors.New("it was answered"), heal(ctx))
	}
	return fmt.Sprintf("container %s has ended with status %d and does not answer", m.node.name, exit), heal, nil
}

func (m *master) disconnect(ctx context.Context) (observed string, heal func(context.Context) error, err error) {
	if !answers(ctx, m.probe, time.Second) {
		return "", nil, errors.New("it could not be reached before")
	}
	heal = func(ctx context.Context) error {
		if err := m.node.plug(ctx); err != nil {
			return fmt.Errorf("plug it in again: %w", err)
		}
		if !awaits(ctx, m.probe) {
			return errors.New("it is plugged in and can't be reached")
		}
		return nil
	}
	if err := m.node.unplug(ctx); err != nil {
		return "", nil, err
	}
	if answers(ctx, m.probe, 200*time.Millisecond) {
		return "", nil, errors.Join(errors.New("it was answered over the clients' network"), heal(ctx))
	}
	seen := fmt.Sprintf("container %s has left the clients' network and does not answer there", m.node.name)
	if m.answers(ctx, time.Second) {
		seen += ", and does on the other one"
	}
	return seen, heal, nil
}

// answers reports whether the server answers over the control network.
func (m *master) answers(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := m.Look(ctx, []string{"redlock-chaos:probe"})
	return err == nil
}

// await waits until the server answers over both networks, where it is on both.
func (m *master) await(ctx context.Context) error {
	if !machine.Poll(ctx, startPatience, func() bool { return m.answers(ctx, time.Second) }) {
		return errors.New("it was started and does not answer")
	}
	m.node.mu.Lock()
	unplugged := m.node.unplugged
	m.node.mu.Unlock()
	if !unplugged && !awaits(ctx, m.probe) {
		return errors.New("it was started and does not answer over the clients' network")
	}
	return nil
}
