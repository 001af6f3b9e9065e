package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/sim"
)

// crossing is a schedule with two keys. One client holds the first key and renews it for long.
// Tasks of another client wait: one for both keys, all or none, and later others for the second key
// alone. The second key is free, so one of these tasks has to get it.
func crossing(seed uint64) *sim.Schedule {
	r := rand.New(rand.NewPCG(seed, 45))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	const ttl = 200 * time.Millisecond
	s := &sim.Schedule{Seed: seed, Net: sim.Net{MinDelay: 100 * time.Microsecond, MaxDelay: 2 * time.Millisecond}}
	for range 5 {
		s.Masters = append(s.Masters, sim.MasterClock{PPM: r.Int64N(4000) - 2000, Offset: upTo(time.Millisecond)})
	}
	blocked, free := r.IntN(2), 0
	if blocked == 0 {
		free = 1
	}
	keys := []int{0, 1}
	if r.IntN(2) == 0 {
		slices.Reverse(keys)
	}
	holder := sim.Session{Keys: []int{blocked}, TTL: ttl, Renew: true, Hold: 4 * time.Second}
	both := sim.Session{
		Idle: 50*time.Millisecond + upTo(100*time.Millisecond), Keys: keys, TTL: ttl, Wait: 8 * time.Second,
		Hold: upTo(ttl),
	}
	both.Renew = r.IntN(2) == 0
	one := sim.Session{
		Idle: 200*time.Millisecond + upTo(200*time.Millisecond), Keys: []int{free}, TTL: ttl, Wait: 6 * time.Second,
		Hold: upTo(ttl),
	}
	switch r.IntN(4) {
	case 0:
		one.Kind = history.Fenced
	case 1:
		one.Renew = true
	}
	other := one
	other.Idle += upTo(200 * time.Millisecond)
	s.Clients = []sim.Client{
		{Tasks: [][]sim.Session{{holder}}},
		{Tasks: [][]sim.Session{{both}, {one}, {other}}},
	}
	return s
}

// TestHazard45AFreeKeyIsAcquiredWhileItsProcessWaitsForOthers: a waiter for two keys, a free one and one that another
// client holds and renews, must not keep the free key from tasks that want no other.
func TestHazard45AFreeKeyIsAcquiredWhileItsProcessWaitsForOthers(t *testing.T) {
	n := uint64(200)
	if testing.Short() {
		n = 40
	}
	for seed := range n {
		r, err := sim.Run(crossing(seed))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, v := range r.Violations {
			t.Errorf("seed %d: %v", seed, v)
		}
		if got := r.Counts.Acquired; got < 4 {
			t.Errorf("seed %d: only %d of the locks were acquired", seed, got)
		}
		if t.Failed() {
			return
		}
	}
}

// TestABlockedFreeKeyIsFound is the control. It uses the same schedule, but tells the oracle
// that the waiters for the free key got nothing, as if they stood behind the waiter for both keys.
func TestABlockedFreeKeyIsFound(t *testing.T) {
	r, err := sim.Run(crossing(1))
	must(t, err)
	var events []history.Event
	cut := int64(3 * time.Second)
	waits := make(map[uint64]bool)
	for _, e := range r.History {
		if e.Type == history.AcquireCall && e.Client == 1 && e.Lock == 0 {
			waits[e.Attempt] = true
		}
		if e.At <= cut && (!waits[e.Attempt] || e.Type == history.AcquireCall) {
			events = append(events, e)
		}
	}
	for id := range waits {
		events = append(events,
			history.Event{At: cut, Type: history.AcquireReturn, Client: 1, Attempt: id, Outcome: history.Cancelled})
	}
	found := oracle.Liveness(history.NewView(events), time.Second, 0)
	if len(found) != 1 || found[0].Oracle != oracle.NameLiveness {
		t.Errorf("found %v", found)
	}
}
