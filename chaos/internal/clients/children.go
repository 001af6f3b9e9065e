package clients

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Children are the clients that are processes. The first clients are; the others are goroutines.
type Children struct {
	Recorder *history.Recorder
	// Options returns the options of a client's process. nth is the number of processes that were started before.
	Options func(client, nth int) workload.ChildOptions
	Rand    *rand.Rand // guarded by mu

	mu  sync.Mutex
	all []*workload.Child // by client
	nth int
}

// Start starts the first n clients.
func (c *Children) Start(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for client := range n {
		if err := c.startOneLocked(client); err != nil {
			return err
		}
	}
	return nil
}

// startOneLocked starts or restarts a client.
func (c *Children) startOneLocked(client int) error {
	child, err := workload.StartChild(c.Recorder, c.Options(client, c.nth))
	if err != nil {
		return err
	}
	c.nth++
	if client == len(c.all) {
		c.all = append(c.all, child)
	} else {
		c.all[client] = child
	}
	return nil
}

// Count is how many clients are processes.
func (c *Children) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// Processes are those that live.
func (c *Children) Processes() []machine.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []machine.Process
	for i, child := range c.all {
		if child.Alive() {
			out = append(out, machine.Process{Name: fmt.Sprintf("client %d", i), Pid: child.Pid()})
		}
	}
	return out
}

// Kill ends one of the processes; another takes its place when it is healed.
func (c *Children) Kill() (masters.Injection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.Rand.IntN(len(c.all))
	if !c.all[client].Alive() {
		return masters.Injection{}, fmt.Errorf("client %d has ended by itself", client)
	}
	c.all[client].Kill()
	heal := func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.startOneLocked(client)
	}
	return masters.Injection{Observed: fmt.Sprintf("the process of client %d is gone", client), Heal: heal}, nil
}

// Pause stops one of the processes, if possible one that has a key at this moment.
func (c *Children) Pause() (masters.Injection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := slices.DeleteFunc(slices.Clone(c.all), func(child *workload.Child) bool { return !child.Alive() })
	if len(alive) == 0 {
		return masters.Injection{}, errors.New("no client's process is alive")
	}
	child := alive[c.Rand.IntN(len(alive))]
	for range 200 { // the most that is to be seen is when it has a key
		holding := slices.DeleteFunc(slices.Clone(alive), func(other *workload.Child) bool { return !other.Holds() })
		if len(holding) > 0 {
			child = holding[c.Rand.IntN(len(holding))]
			break
		}
		<-time.After(time.Millisecond)
	}
	if err := child.Pause(); err != nil {
		return masters.Injection{}, err
	}
	heal := func(context.Context) error { return child.Resume() }
	return masters.Injection{Observed: "its process is stopped", Heal: heal}, nil
}

// setClock sets the clock of a client's process, and returns the time of day that the process then has. Where the
// process has been killed, the next one begins with that clock.
func (c *Children) setClock(client int, clock *workload.WallClock) (string, error) {
	child, err := c.of(client)
	if err != nil {
		return "", err
	}
	has, err := child.SetClock(clock.Setting())
	if err != nil && !child.Alive() {
		return clock.Now().Format(time.DateTime), nil
	}
	return has, err
}

// halt stops the process of a client. again lets it go on, also after an error.
func (c *Children) halt(client int) (again func() error, err error) {
	child, err := c.of(client)
	if err != nil {
		return func() error { return nil }, err
	}
	if err = child.Pause(); err != nil && !child.Alive() {
		err = nil // what is gone stands still
	}
	return child.Resume, err
}

// of is the process of a client.
func (c *Children) of(client int) (*workload.Child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client >= len(c.all) {
		return nil, fmt.Errorf("client %d has no process", client)
	}
	return c.all[client], nil
}

// Stop ends them all.
func (c *Children) Stop(within time.Duration) {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	var group sync.WaitGroup
	for _, child := range all {
		group.Go(func() { child.Stop(within) })
	}
	group.Wait()
}
