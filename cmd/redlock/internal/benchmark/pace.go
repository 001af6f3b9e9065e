package benchmark

import (
	"context"
	"sync"
	"time"
)

// pace decides when operations begin. In a closed loop it keeps an interval between them, and does not catch up after a
// delay, so no second has more than its share. In an open loop each operation has a planned start that does not depend
// on earlier operations. It is safe for concurrent use.
type pace struct {
	open     bool
	interval time.Duration // 0: none
	end      time.Time

	mu   sync.Mutex
	next time.Time
}

// newPace returns the pace of a part with ops operations in a cycle, from now on.
func newPace(c Config, ops int, now time.Time, window time.Duration) *pace {
	p := &pace{open: c.Rate > 0, next: now, end: now.Add(window)}
	switch {
	case p.open:
		p.interval = time.Duration(float64(time.Second) / c.Rate)
	case c.Ops > 0:
		p.interval = time.Second * time.Duration(ops) / time.Duration(c.Ops)
	}
	return p
}

// take returns the planned start of the next operation, and false if it is after the end.
func (p *pace) take() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.next
	if now := time.Now(); !p.open && at.Before(now) {
		at = now
	}
	if !at.Before(p.end) {
		return at, false
	}
	p.next = at.Add(p.interval)
	return at, true
}

// await takes the next operation and waits for its start. It returns the time from which the operation counts: in an
// open loop its planned start, otherwise now. It returns false if no operation starts before the end, or if ctx is
// done.
func (p *pace) await(ctx context.Context) (from time.Time, ok bool) {
	at, ok := p.take()
	if !ok || !sleep(ctx, time.Until(at)) {
		return at, false
	}
	if p.open {
		return at, true
	}
	return time.Now(), true
}

// missed returns the operations of an open loop that should have begun before the end, and did not.
func (p *pace) missed() (at []time.Time) {
	for p.open {
		next, ok := p.take()
		if !ok {
			break
		}
		at = append(at, next)
	}
	return at
}

// sleep waits. It returns false if ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
