package program

import (
	"context"
	"sync"
	"time"
)

// hold implements workload.Hold: one acquisition.
type hold struct {
	c     *client
	id    string
	owner string
	token uint64
	asked time.Time
	done  chan struct{} // nil when the program does not tell of lost holds

	mu    sync.Mutex
	until time.Time
	over  bool
}

func (h *hold) Owner() string { return h.owner }
func (h *hold) Token() uint64 { return h.token }

func (h *hold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until)
}

func (h *hold) Done() <-chan struct{} { return h.done }

func (h *hold) move(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
}

func (h *hold) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over && h.done != nil {
		close(h.done)
	}
	h.over = true
}

func (h *hold) Extend(ctx context.Context, ttl time.Duration) error {
	r, q, err := h.c.ask(ctx, request{Op: "extend", Hold: h.id, TTL: float64(ttl) / float64(time.Millisecond)})
	if err == nil {
		h.move(q.asked.Add(milliseconds(r.Valid)))
	}
	return err
}

func (h *hold) Release(ctx context.Context) error {
	_, _, err := h.c.ask(ctx, request{Op: "release", Hold: h.id})
	h.c.mu.Lock()
	delete(h.c.holds, h.id)
	h.c.mu.Unlock()
	h.lose()
	return err
}
