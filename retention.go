package redlock

import (
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// retentionTurn is for how long keys are noted together. They are remembered for up to three times as long, which is below
	// the two days for which single.Request.Retained may be said.
	retentionTurn = 12 * time.Hour
	// maxRetained bounds the keys that are noted together. Those who use more fenced keys in half a day ask masters to keep
	// a counter more often than they need to.
	maxRetained = 8192
	// maxRetainedKey is up to which length keys are noted at all, so that what is remembered stays below 16 MB.
	maxRetainedKey = 1 << 10
)

// retention remembers whose fencing counters all masters have lately been asked to keep, so that they need not be asked in
// every acquisition. The keys of an earlier time are forgotten together. It is safe for concurrent use.
type retention struct {
	mu     sync.Mutex
	turned time.Duration
	young  map[string]struct{} // noted since turned
	old    map[string]struct{} // noted before, and less than a turn before turned or as many as fit
}

// note remembers that every master has just been asked to keep the counter of key.
func (r *retention) note(key string, now time.Duration) {
	if len(key) > maxRetainedKey {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(now)
	if r.young == nil {
		r.young = make(map[string]struct{})
	}
	r.young[strings.Clone(key)] = struct{}{}
}

// has reports that every master was asked to keep the counter of key, not long ago.
func (r *retention) has(key string, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(now)
	if _, young := r.young[key]; young {
		return true
	}
	_, old := r.old[key]
	return old
}

// turn forgets what has been noted too long ago, or is too much.
func (r *retention) turn(now time.Duration) {
	switch age := now - r.turned; {
	case age >= 2*retentionTurn: // nobody has asked for long
		r.young, r.old = nil, nil
	case age >= retentionTurn || len(r.young) >= maxRetained:
		r.young, r.old = nil, r.young
	default:
		return
	}
	r.turned = now
}

// noteRetention notes the key of a fenced acquisition that every master has granted, and so was asked to keep the counter.
// It may be called after each vote; the last one tells. The caller holds the lock's mutex.
func (r *round) noteRetention() {
	if r.request.Op != single.Acquire || r.request.Retained {
		return
	}
	for i := range r.ballots {
		if b := &r.ballots[i]; !b.ended || b.Err != nil || b.Reply.Outcome != single.Granted {
			return
		}
	}
	r.lock.locker.retention.note(r.lock.Key(), r.lock.locker.clock.Now())
}
