package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// children are the clients that are processes. The first clients are; the others are goroutines.
type children struct {
	recorder *history.Recorder
	options  func(client, nth int) workload.ChildOptions

	mu   sync.Mutex
	all  []*workload.Child // by client
	nth  int
	rand *rand.Rand
}

func (c *children) start(n int) error {
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
func (c *children) startOneLocked(client int) error {
	child, err := workload.StartChild(c.recorder, c.options(client, c.nth))
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

func (c *children) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// processes are those that live.
func (c *children) processes() []machine.Process {
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

func (c *children) clients() []int {
	out := make([]int, c.count())
	for i := range out {
		out[i] = i
	}
	return out
}

// kill ends one of the processes; another takes its place when it is healed.
func (c *children) kill() (effect, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.rand.IntN(len(c.all))
	if !c.all[client].Alive() {
		return effect{}, fmt.Errorf("client %d has ended by itself", client)
	}
	c.all[client].Kill()
	heal := func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.startOneLocked(client)
	}
	return effect{observed: fmt.Sprintf("the process of client %d is gone", client), heal: heal}, nil
}

// pause stops one of the processes, if possible one that has a key at this moment.
func (c *children) pause() (effect, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	child := c.all[c.rand.IntN(len(c.all))]
	for range 200 { // the most that is to be seen is when it has a key
		holding := slices.DeleteFunc(slices.Clone(c.all), func(other *workload.Child) bool { return !other.Holds() })
		if len(holding) > 0 {
			child = holding[c.rand.IntN(len(holding))]
			break
		}
		<-time.After(time.Millisecond)
	}
	if err := child.Pause(); err != nil {
		return effect{}, err
	}
	return effect{observed: "its process is stopped", heal: func(context.Context) error { return child.Resume() }}, nil
}

// setClock sets the clock of a client's process, and returns the time of day that the process then has.
func (c *children) setClock(client int, setting workload.ClockSetting) (string, error) {
	child, err := c.of(client)
	if err != nil {
		return "", err
	}
	return child.SetClock(setting)
}

// halt stops the process of a client. again lets it go on, also after an error.
func (c *children) halt(client int) (again func() error, err error) {
	child, err := c.of(client)
	if err != nil {
		return func() error { return nil }, err
	}
	return child.Resume, child.Pause()
}

// of is the process of a client.
func (c *children) of(client int) (*workload.Child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client >= len(c.all) {
		return nil, fmt.Errorf("client %d has no process", client)
	}
	return c.all[client], nil
}

// stop ends them all.
func (c *children) stop(within time.Duration) {
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
