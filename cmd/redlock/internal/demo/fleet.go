package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// embeddedMasters is how many masters the demo starts when it is given none.
	embeddedMasters = 5
	// glanceTimeout bounds one look at one master.
	glanceTimeout = 500 * time.Millisecond
)

// fleet is the masters of a run: either the demo's own masters, which it can stop, or the user's masters, which it only
// uses.
type fleet struct {
	urls    []string
	direct  []*single.Master  // for looking at each master by itself
	cluster *embedded.Cluster // nil if they are not ours
}

func newFleet(urls []string) (*fleet, error) {
	f := &fleet{urls: urls}
	if len(urls) == 0 {
		cluster, err := embedded.Start(embeddedMasters)
		if err != nil {
			return nil, fmt.Errorf("start masters: %w", err)
		}
		f.cluster, f.urls = cluster, cluster.URLs()
	}
	for _, url := range f.urls {
		m, err := single.Dial(url, single.Options{})
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.direct = append(f.direct, m)
	}
	return f, nil
}

func (f *fleet) names() []string {
	names := make([]string, len(f.direct))
	for i, m := range f.direct {
		names[i] = m.Name()
	}
	return names
}

// ours reports whether masters can be stopped.
func (f *fleet) ours() bool { return f.cluster != nil }

// add starts a new empty master after the others.
func (f *fleet) add() error {
	m, err := embedded.New()
	if err != nil {
		return fmt.Errorf("start a master: %w", err)
	}
	f.cluster.Masters = append(f.cluster.Masters, m) // closed with them
	direct, err := single.Dial(m.URL(), single.Options{})
	if err != nil {
		return err
	}
	f.direct, f.urls = append(f.direct, direct), append(f.urls, m.URL())
	return nil
}

func (f *fleet) stop(i int) error { return f.cluster.Masters[i].Stop() }

// anyStopped reports whether restart has anything to do.
func (f *fleet) anyStopped() bool {
	return f.ours() && slices.ContainsFunc(f.cluster.Masters, func(m *embedded.Master) bool { return !m.Running() })
}

func (f *fleet) restart() error {
	if !f.ours() {
		return nil
	}
	var err error
	for _, m := range f.cluster.Masters {
		if !m.Running() {
			err = errors.Join(err, m.Restart())
		}
	}
	return err
}

// holds asks master i whether key is held there.
func (f *fleet) holds(ctx context.Context, i int, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, glanceTimeout)
	defer cancel()
	reply, err := f.direct[i].Ask(ctx, single.Request{Op: single.Inspect, Keys: []string{key}})
	return err == nil && reply.Outcome == single.Granted, err
}

// sweep removes the wait queues of keys that are no longer in use. Without it they would expire within a minute.
func (f *fleet) sweep(ctx context.Context, keys []string) {
	ctx, cancel := context.WithTimeout(ctx, glanceTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, m := range f.direct {
		wg.Go(func() {
			for _, key := range keys {
				_ = m.Client().Del(ctx, single.QueueKey(key)).Err() // keysLeft sees which masters do not answer
			}
		})
	}
	wg.Wait()
}

func (f *fleet) close() error {
	var err error
	for _, m := range f.direct {
		err = errors.Join(err, m.Close())
	}
	if f.cluster != nil {
		err = errors.Join(err, f.cluster.Close())
	}
	return err
}
