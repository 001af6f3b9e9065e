package sim

import (
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
)

// clientClock implements redlock.Clock for one client: it runs at its own rate, and its timers fire when the client
// runs.
type clientClock struct{ c *client }

func (k clientClock) Now() time.Duration { return k.c.reading() }

// Wall implements redlock.Clock. It differs from true time by a constant, as on a host with a synchronised clock.
func (k clientClock) Wall() time.Time { return time.Unix(0, int64(epoch+k.c.plan.Wall)+k.c.w.now) }

// reading is the client's clock now. Clocks begin at an hour, since the engine takes 0 for "not yet".
func (c *client) reading() time.Duration {
	return time.Hour + time.Duration(c.w.now+c.w.now/1000*c.plan.PPM/1000)
}

// reference is how long d of the client's clock takes in reference time, rounded up so that a timer never fires early.
func (c *client) reference(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	if c.plan.PPM == 0 {
		return int64(d)
	}
	return int64(float64(d)*1e6/float64(1e6+c.plan.PPM)) + 1
}

// timer implements redlock.Timer. The world's mutex guards it.
type timer struct {
	c          *client
	call       func()
	name       uint64 // of its function, to order timers of one instant
	armed      bool
	generation uint64
}

func (k clientClock) AfterFunc(d time.Duration, f func()) redlock.Timer {
	t := &timer{c: k.c, call: f, name: nameOf(f)}
	t.Reset(d)
	return t
}

func (t *timer) Stop() bool {
	t.c.w.mu.Lock()
	defer t.c.w.mu.Unlock()
	was := t.armed
	t.armed = false
	return was
}

func (t *timer) Reset(d time.Duration) bool {
	w := t.c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	was := t.armed
	t.armed = true
	t.generation++
	w.pending.push(event{
		at: w.now + max(1, t.c.reference(d)), kind: fire, client: t.c.number, t: t, gen: t.generation,
		tie: w.tie(uint64(t.c.number), t.name),
	})
	return was
}

// functionNames caches a hash of each function's name, without its package: the name is the same in every run, unlike
// the address, and also after the function has moved.
var functionNames sync.Map // uintptr → uint64

func nameOf(f func()) uint64 {
	code := reflect.ValueOf(f).Pointer()
	if name, known := functionNames.Load(code); known {
		return name.(uint64)
	}
	h := uint64(14695981039346656037)
	whole := runtime.FuncForPC(code).Name()
	_, name, _ := strings.Cut(whole[strings.LastIndexByte(whole, '/')+1:], ".")
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	functionNames.Store(code, h)
	return h
}
