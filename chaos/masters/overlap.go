package masters

import (
	"context"
	"sync"
)

// overlapping is a master on which an action may be on several times at once: it begins with the first and is healed
// with the last. Backends need not think of it.
type overlapping struct {
	Master

	mu sync.Mutex
	on map[repeat]*shared
}

// repeat is an action with the same numbers.
type repeat struct {
	action Action
	params Params
}

// shared is an action that is on, or about to be.
type shared struct {
	begun     chan struct{} // closed when the first injection has succeeded or failed
	injection Injection
	err       error
	n         int
}

func (m *overlapping) Inject(ctx context.Context, action Action, p Params) (Injection, error) {
	if f, err := FindFault(action); err != nil || !f.Lasts {
		return m.Master.Inject(ctx, action, p)
	}
	key := repeat{action, p}
	if action != ClockStep && action != ClockRate {
		key.params = Params{}
	}
	m.mu.Lock()
	s, again := m.on[key]
	if !again {
		s = &shared{begun: make(chan struct{})}
		m.on[key] = s
	}
	s.n++
	m.mu.Unlock()
	if !again {
		s.injection, s.err = m.Master.Inject(ctx, action, p)
		close(s.begun)
	}
	<-s.begun
	if s.err != nil {
		m.leave(key, s)
		return Injection{}, s.err
	}
	heal := func(ctx context.Context) error {
		if m.leave(key, s) {
			return s.injection.Heal(ctx)
		}
		return nil
	}
	return Injection{Observed: s.injection.Observed, Heal: once(heal)}, nil
}

// leave reports whether s is over now. The next injection then starts afresh.
func (m *overlapping) leave(key repeat, s *shared) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.n--
	if s.n > 0 && s.err == nil {
		return false
	}
	if m.on[key] == s {
		delete(m.on, key)
	}
	return s.n == 0
}
