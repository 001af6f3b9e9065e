package chaos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// TestMajoritiesAreCountedInEachSet: a client with two sets has a majority if it has one in each
// set. A client that has changed its masters also needs a majority of the previous ones while it
// holds locks there.
func TestMajoritiesAreCountedInEachSet(t *testing.T) {
	now := int64(0)
	recorder := history.NewRecorder(func() int64 { now++; return now })
	r := newReach(recorder, 1, 5)
	told := func(want ...history.Type) {
		t.Helper()
		var got []history.Type
		for _, e := range recorder.Events() {
			got = append(got, e.Type)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("recorded %v, want %v", got, want)
		}
		recorder.Reset()
	}
	endOld := r.use(0, [][]int{{0, 1, 2}})
	endJoint := r.use(0, [][]int{{0, 1, 2}, {2, 3, 4}})
	r.add(harm{links: []network.Link{{Client: 0, Master: 0}}}, 1)
	r.add(harm{masters: []int{4}, leaves: masters.HoldsOnly}, 1)
	told() // a minority of each
	r.add(harm{masters: []int{3}, leaves: masters.HoldsOnly}, 1)
	told(history.MajorityLost) // of the new masters, which still keep their keys
	endJoint()
	told(history.MajorityBack)
	endNew := r.use(0, [][]int{{2, 3, 4}})
	told(history.MajorityLost)
	r.add(harm{masters: []int{3, 4}, leaves: masters.HoldsOnly}, -1)
	told(history.MajorityBack)
	r.add(harm{masters: []int{1}}, 1)
	told(history.MajorityLost, history.KeepLost) // of the old masters, which may still have its holds
	endOld()
	told(history.MajorityBack, history.KeepBack)
	endNew()
}

// TestTimesWithoutAUseOfAMasterAreKnown has a master that joins, and leaves with the last of its clients.
func TestTimesWithoutAUseOfAMasterAreKnown(t *testing.T) {
	now := int64(0)
	r := newReach(history.NewRecorder(func() int64 { return now }), 2, 2)
	r.use(0, [][]int{{0}})
	now = 5
	ends := []func(){r.use(0, [][]int{{0}, {0, 1}}), r.use(1, [][]int{{0, 1}})}
	now = 10
	ends[0]()
	now = 12
	ends[1]()
	want := [][2]int64{{0, 5}, {12, history.Never}}
	if unused := r.unused(); !slices.Equal(unused[1], want) || !slices.Equal(unused[0], [][2]int64{{0, 0}}) {
		t.Errorf("unused %v, want %v of master 1", unused, want)
	}
}

// TestAMasterIsAwayBehindACutAndWhileItIsDown, and for as long as one of these lasts.
func TestAMasterIsAwayBehindACutAndWhileItIsDown(t *testing.T) {
	now := int64(0)
	r := newReach(history.NewRecorder(func() int64 { return now }), 2, 2)
	cut := harm{links: []network.Link{{Client: 0, Master: 1}}}
	down := harm{masters: []int{1}, leaves: masters.NoService}
	for _, step := range []struct {
		at int64
		harm
		by int
	}{{10, cut, 1}, {20, down, 1}, {30, cut, -1}, {40, down, -1}, {90, cut, 1}} {
		now = step.at
		r.add(step.harm, step.by)
	}
	for client, want := range []int64{40, 20} {
		if got := r.awayFor(client, 1, 0, 100); got != want {
			t.Errorf("client %d could not ask it for %d, want %d", client, got, want)
		}
	}
	if got := r.awayFor(0, 1, 15, 35) + r.awayFor(0, 0, 0, 100); got != 20 {
		t.Errorf("within the cut it was away for %d", got)
	}
}

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
func twoMembers(t *testing.T) (m *members, openedFor func(client int) []*scripted, clients []workload.Locker) {
	t.Helper()
	opened := make([][]*scripted, 2)
	var mu sync.Mutex
	openedFor = func(client int) []*scripted {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(opened[client])
	}
	m = &members{
		open: func(_ context.Context, client int, _ configuration) (workload.Locker, error) {
			mu.Lock()
			defer mu.Unlock()
			s := &scripted{grants: make(chan workload.Hold), closed: make(chan struct{})}
			opened[client] = append(opened[client], s)
			return s, nil
		},
		use:      func(int, [][]int) func() { return func() {} },
		labelled: func(ctx context.Context, f func(context.Context)) { f(ctx) },
		failed:   func(op string, err error) { t.Errorf("%s: %v", op, err) },
		ordered:  true, changed: make(chan struct{}), free: make(map[int]time.Time), setsOf: make(map[string][][]int),
	}
	for c := range 2 {
		l, err := m.begin(t.Context(), c, [][]int{{0, 1, 2}})
		if err != nil {
			t.Fatal(err)
		}
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
			m.ordered = ordered
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
				if err := m.change(t.Context(), c, configuration{2, joint}, time.Duration(c)*time.Second); err != nil {
					t.Fatal(err)
				}
			}
			opened(1)[1].grants <- scriptedHold{}
			second := <-granted
			if sets := m.hadBy("me"); len(sets) != 2 {
				t.Errorf("the second hold is one of the masters %v", sets)
			}
			changed := make(chan error, 1)
			go func() { changed <- m.change(t.Context(), 0, configuration{3, next}, 0) }()
			minute, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			<-minute.Done()
			if waits := len(opened(0)) == 2; waits != ordered {
				t.Errorf("in order %v, and it waits: %v", ordered, waits)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
			<-opened(1)[0].closed
			if err := <-changed; err != nil {
				t.Error(err)
			}
			if known := opened(0)[1].known; !slices.Equal(known, []uint64{3, 3}) {
				t.Errorf("announced %v: a failed announcement must be repeated", known)
			}
			_ = second.Release(t.Context())
			for _, c := range clients {
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
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
		to := configuration{3, [][]int{{2, 3, 4}}}
		if err := m.change(ctx, 0, to, 0); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "client 0 waited") {
			t.Errorf("error %v", err)
		}
		cut := make(chan struct{})
		close(cut)
		m.cut = cut
		if err := m.change(t.Context(), 0, to, 0); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("error %v", err)
		}
		for _, c := range clients {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
