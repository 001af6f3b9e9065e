package redlocktest

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// This file acts for other lock holders.

// Somebody is the redlock.Options.Identity of [Masters.Hold]'s holder.
const Somebody = "somebody-else"

const (
	// The value of this holder never changes, so Release needs no handle.
	somebody = Somebody + "/00000000000000000000000000000000"
	// heldFor is longer than any test.
	heldFor = 100 * 365 * 24 * time.Hour
	// reserve is how long a released key is kept for the notified waiter.
	reserve = 50 * time.Millisecond
)

// Hold takes key as another process would. From its return to [Masters.Release] these masters refuse every attempt.
// It takes effect at once, also on masters that are stopped, slow or failing, and raises the key's fencing counter.
// If a quorum of these masters has the key for another holder, the test fails: call [Masters.Lose] first. Hold
// overwrites a key on fewer masters, which a release under way may have left.
func (m Masters) Hold(key string) {
	m.tb().Helper()
	m.hold(single.Request{
		Op: single.Acquire, Kind: single.Plain, Keys: []string{key}, Owner: somebody, TTL: heldFor,
		Fence: true,
	})
}

// HoldShared is Hold as a reader (redlock.Shared): it keeps out writers, and no other readers.
func (m Masters) HoldShared(key string) {
	m.tb().Helper()
	m.hold(single.Request{
		Op: single.Acquire, Kind: single.Shared, Keys: []string{key}, Owner: somebody, TTL: heldFor,
		Hold: "1",
	})
}

func (m Masters) hold(r single.Request) {
	tb, key := m.tb(), r.Keys[0]
	tb.Helper()
	if key == "" || single.Reserved(key) {
		tb.Fatalf("redlocktest: Hold(%q): that can't be the key of a lock", key)
	}
	var refused Masters
	who := ""
	for i := range m {
		reply, err := m[i].serve(&r)
		if err != nil {
			tb.Fatalf("redlocktest: Hold(%q) on %s: %v", key, m[i].name, err)
		}
		if reply.Outcome == single.Refused {
			refused, who = append(refused, m[i]), cmp.Or(owner.Show(reply.Holder), "another kind of lock")
		}
	}
	if len(refused) >= redlock.Quorum(len(m)) {
		m.release(key)
		tb.Fatalf("redlocktest: Hold(%q): %s has it on %d of %d masters; Lose it first", key, who, len(refused), len(m))
	}
	for i := range refused {
		refused[i].Lose(key)
		_, _ = refused[i].serve(&r) // unless another attempt was quicker, which can't get a quorum
	}
}

// Release releases the locks that Hold or HoldShared took, and notifies the waiters. If none of these masters has such
// a lock, the test fails.
func (m Masters) Release(key string) {
	if !m.release(key) {
		m.tb().Helper()
		m.tb().Fatalf("redlocktest: Release(%q), which Hold has not taken, or which was lost", key)
	}
}

func (m Masters) release(key string) bool {
	released := false
	for i := range m {
		for _, kind := range []single.Kind{single.Plain, single.Shared} {
			r := single.Request{
				Op: single.Release, Kind: kind, Keys: []string{key}, Owner: somebody, Hold: "1", Reserve: reserve,
			}
			reply, err := m[i].serve(&r)
			released = released || err == nil && reply.Outcome == single.Granted
		}
	}
	return released
}

// Held returns the keys that are held on a quorum of these masters, by a Locker or by Hold, sorted. A key that is
// still held at the end of a test was forgotten, or its release is under way.
func (m Masters) Held() []string {
	on := make(map[string]int)
	for i := range m {
		for _, key := range m[i].keys() {
			on[key]++
		}
	}
	var held []string
	for key, n := range on {
		if n >= redlock.Quorum(len(m)) {
			held = append(held, key)
		}
	}
	slices.Sort(held)
	return held
}

// serve performs a request, even if the master refuses the requests of Lockers.
func (m *Master) serve(r *single.Request) (single.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.performLocked(r)
}

func (m *Master) keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store.Keys(m.nowLocked())
}
