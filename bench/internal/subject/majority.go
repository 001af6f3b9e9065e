package subject

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNotHeld is matched by the error of a release of a lock that was lost.
var ErrNotHeld = errors.New("subject: the key is not held by this owner any more")

// voter is one master for the hand-written Redlock.
type voter interface {
	// take is SET key owner NX PX ttl.
	take(ctx context.Context, key, owner string, ttl time.Duration) (bool, error)
	// drop is compare-and-delete.
	drop(ctx context.Context, key, owner string) (bool, error)
	close()
}

// majority is a plain and correct Redlock, as one writes it by hand in an afternoon. One goroutine for each master asks
// all masters at once. The round ends when it is decided. No sent request is cancelled, and no master gets a release
// before its own acquire has ended. Every such library must do at least that. So the difference is the cost of
// everything else. majority has no batching, no renewal, no token, and no memory of masters that did not confirm.
type majority struct {
	voters     []voter
	background sync.WaitGroup
}

func (m *majority) quorum() int { return len(m.voters)/2 + 1 }

// requestTimeout is the time for one master's answer: a twentieth of the ttl, at least 10 ms, at most 1 s.
func requestTimeout(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 10*time.Millisecond), time.Second)
}

func (m *majority) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	for {
		h, err := m.try(ctx, key, ttl)
		if h != nil || err != nil {
			return h, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// The states of one master's part in a hold. The side that ends the state asking decides who sends the release. If the
// acquire has ended, the releasing side sends it. If the release came first, the acquiring goroutine sends it later.
const (
	asking int32 = iota
	answered
	unwanted
)

type majorityHold struct {
	m       *majority
	key     string
	owner   string
	timeout time.Duration
	state   []atomic.Int32
	freed   chan bool // one entry a master, once it has answered the release
}

// try is one round. It returns (nil, nil) for a round that was lost.
func (m *majority) try(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("subject: owner: %w", err)
	}
	n := len(m.voters)
	h := &majorityHold{
		m: m, key: key, owner: hex.EncodeToString(random[:]), timeout: requestTimeout(ttl),
		state: make([]atomic.Int32, n), freed: make(chan bool, n),
	}
	start := time.Now()
	votes := h.ask(ctx, ttl)
	granted, against := 0, 0
	for granted < m.quorum() && against <= n-m.quorum() {
		if <-votes {
			granted++
		} else {
			against++
		}
	}
	drift := ttl/100 + 2*time.Millisecond
	if granted >= m.quorum() && time.Since(start) < ttl-drift {
		return h, nil
	}
	h.drop()
	return nil, ctx.Err()
}

// shared returns a context with one timeout for n requests, and a function that each request calls at its end. The last
// call frees the timer. The context ignores ctx's cancellation, since a cancelled SET may still reach the master.
func shared(ctx context.Context, timeout time.Duration, n int) (context.Context, func()) {
	round, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	var left atomic.Int32
	left.Store(int32(n))
	return round, func() {
		if left.Add(-1) == 0 {
			cancel()
		}
	}
}

// ask sends the acquire to every master.
func (h *majorityHold) ask(ctx context.Context, ttl time.Duration) <-chan bool {
	n := len(h.m.voters)
	votes := make(chan bool, n)
	round, end := shared(ctx, h.timeout, n)
	for i := range h.m.voters {
		h.m.background.Go(func() {
			ok, err := h.m.voters[i].take(round, h.key, h.owner, ttl)
			end()
			votes <- ok && err == nil
			if !h.state[i].CompareAndSwap(asking, answered) {
				h.dropLate(i)
			}
		})
	}
	return votes
}

// drop releases on every master, each time after the acquire on that master has ended. It does not wait.
func (h *majorityHold) drop() {
	round, end := shared(context.Background(), h.timeout, len(h.m.voters))
	for i := range h.m.voters {
		if h.state[i].CompareAndSwap(asking, unwanted) {
			end() // the goroutine that still asks will release
			continue
		}
		h.m.background.Go(func() {
			defer end()
			h.dropOne(round, i)
		})
	}
}

// dropLate is dropOne for a late request: the shared timeout may be over when its acquire ends.
func (h *majorityHold) dropLate(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	h.dropOne(ctx, i)
}

func (h *majorityHold) dropOne(ctx context.Context, i int) {
	ok, err := h.m.voters[i].drop(ctx, h.key, h.owner)
	h.freed <- ok && err == nil
}

// Release implements Handle: it returns when a majority has confirmed.
func (h *majorityHold) Release(ctx context.Context) error {
	h.drop()
	freed, not := 0, 0
	for freed < h.m.quorum() {
		select {
		case ok := <-h.freed:
			if ok {
				freed++
			} else {
				not++
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if not > len(h.m.voters)-h.m.quorum() {
			return ErrNotHeld
		}
	}
	return nil
}

// Close implements Client. Late requests end with their own timeouts, so the wait is limited even without ctx.
func (m *majority) Close(ctx context.Context) error {
	idle := make(chan struct{})
	go func() {
		m.background.Wait()
		close(idle)
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	for _, v := range m.voters {
		v.close()
	}
	return err
}
