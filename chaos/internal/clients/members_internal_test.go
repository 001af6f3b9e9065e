package clients

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

// scripted is a lock client that shows a test when it is used and closed.
type scripted struct {
	workload.Locker
	grants chan workload.Hold
	closed chan struct{}
	known  []uint64
}

func (s *scripted) Acquire(ctx context.Context, _ workload.Request) (workload.Hold, error) {
	select {
	case h := <-s.grants:
		return h, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *scripted) Announce(_ context.Context, generation uint64) error {
	if s.known = append(s.known, generation); len(s.known) == 1 {
		return errors.New("a minority is away")
	}
	return nil
}

func (s *scripted) Close(context.Context) error { close(s.closed); return nil }

type scriptedHold struct{ workload.Hold }

func (scriptedHold) Owner() string                 { return "me" }
func (scriptedHold) Release(context.Context) error { return nil }

// twoMembers are two clients with the masters 0, 1 and 2, and what tells the lock clients that were opened for each.
func twoMembers(t *testing.T) (m *Members, openedFor func(client int) []*scripted, clients []workload.Locker) {
	t.Helper()
	opened := make([][]*scripted, 2)
	var mu sync.Mutex
	openedFor = func(client int) []*scripted {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(opened[client])
	}
	m = &Members{
		Open: func(_ context.Context, client int, _ Configuration) (workload.Locker, error) {
			mu.Lock()
			defer mu.Unlock()
			s := &scripted{grants: make(chan workload.Hold), closed: make(chan struct{})}
			opened[client] = append(opened[client], s)
			return s, nil
		},
		Use:      func(int, [][]int) func() { return func() {} },
		Labelled: func(ctx context.Context, f func(context.Context)) { f(ctx) },
		Failed:   func(op string, err error) { t.Errorf("%s: %v", op, err) },
		Ordered:  true,
	}
	for c := range 2 {
		l, err := m.Begin(t.Context(), c, [][]int{{0, 1, 2}})
		must(t, err)
		clients = append(clients, l)
	}
	return m, openedFor, clients
}

// TestNoClientUsesOnlyNewMastersDuringAHoldOnOldOnes: the hold stays with the client of the lock that took it, who
// waits asks the new one, and the second step waits until the hold was given back. Control: without the order it does
// not wait.
func TestNoClientUsesOnlyNewMastersDuringAHoldOnOldOnes(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m, opened, clients := twoMembers(t)
			m.Ordered = ordered
			granted := make(chan workload.Hold, 2)
			acquire := func(c int) {
				go func() {
					h, err := clients[c].Acquire(t.Context(), workload.Request{Key: "k"})
					if err != nil {
						t.Error(err)
					}
					granted <- h
				}()
				synctest.Wait()
			}
			acquire(1)
			opened(1)[0].grants <- scriptedHold{}
			held := <-granted
			acquire(1) // waits, and goes on to wait with both sets
			joint, next := [][]int{{0, 1, 2}, {2, 3, 4}}, [][]int{{2, 3, 4}}
			for c := range 2 {
				must(t, m.change(t.Context(), c, Configuration{2, joint}, time.Duration(c)*time.Second))
			}
			opened(1)[1].grants <- scriptedHold{}
			second := <-granted
			if sets := m.HadBy("me"); len(sets) != 2 {
				t.Errorf("the second hold is one of the masters %v", sets)
			}
			changed := make(chan error, 1)
			go func() { changed <- m.change(t.Context(), 0, Configuration{3, next}, 0) }()
			minute, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			<-minute.Done()
			if waits := len(opened(0)) == 2; waits != ordered {
				t.Errorf("in order %v, and it waits: %v", ordered, waits)
			}
			must(t, held.Release(t.Context()))
			<-opened(1)[0].closed
			must(t, <-changed)
			if known := opened(0)[1].known; !slices.Equal(known, []uint64{3, 3}) {
				t.Errorf("announced %v: a failed announcement must be repeated", known)
			}
			_ = second.Release(t.Context())
			for _, c := range clients {
				must(t, c.Close(t.Context()))
			}
		})
	}
}

// TestAChangeOfMastersThatWaitsEndsWithItsContextOrTheRun: its error says which wait it was in.
func TestAChangeOfMastersThatWaitsEndsWithItsContextOrTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, clients := twoMembers(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		to := Configuration{3, [][]int{{2, 3, 4}}}
		if err := m.change(ctx, 0, to, 0); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "client 0 waited") {
			t.Errorf("error %v", err)
		}
		cut := make(chan struct{})
		close(cut)
		m.Cut = cut
		if err := m.change(t.Context(), 0, to, 0); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("error %v", err)
		}
		for _, c := range clients {
			must(t, c.Close(t.Context()))
		}
	})
}
