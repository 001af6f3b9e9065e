// Package fake is a subject without a server, for tests of the harness. It can misbehave in every way that a benchmark
// must notice.
package fake

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// ErrFlaky is the error of every second Acquire of a Flaky subject.
var ErrFlaky = errors.New("fake: every second one fails")

// Subject is a lock in memory. The fields are set before it is opened.
type Subject struct {
	// Called is its name.
	Called string
	// Crowd is how many can hold a key at once. 0 and 1 make a correct lock.
	Crowd int
	// Stuck makes every acquire hang until the channel is closed, even if its context is done; nil never does.
	Stuck chan struct{}
	// Delay is how long each acquire takes.
	Delay time.Duration
	// Flaky makes every second acquire fail.
	Flaky bool
	// OnOpen is called by every Open; it may be nil.
	OnOpen func()

	mu     sync.Mutex
	places map[string]chan struct{}
	asked  atomic.Int64
}

var _ subject.Subject = (*Subject)(nil)

// Name implements subject.Subject.
func (s *Subject) Name() string { return s.Called }

// Open implements subject.Subject. All clients share the keys.
func (s *Subject) Open(context.Context, []string) (subject.Client, error) {
	if s.OnOpen != nil {
		s.OnOpen()
	}
	return client{s}, nil
}

// place is the semaphore of a key.
func (s *Subject) place(key string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = map[string]chan struct{}{}
	}
	if s.places[key] == nil {
		s.places[key] = make(chan struct{}, max(1, s.Crowd))
	}
	return s.places[key]
}

type client struct{ s *Subject }

func (c client) Acquire(ctx context.Context, key string, _ time.Duration) (subject.Handle, error) {
	if c.s.Stuck != nil {
		<-c.s.Stuck
	}
	if c.s.Flaky && c.s.asked.Add(1)%2 == 0 {
		return nil, ErrFlaky
	}
	if c.s.Delay > 0 {
		select {
		case <-time.After(c.s.Delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	place := c.s.place(key)
	select {
	case place <- struct{}{}:
		return handle(place), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (client) Close(context.Context) error { return nil }

type handle chan struct{}

func (h handle) Release(context.Context) error {
	<-h
	return nil
}
