package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Sink is where a worker writes what happens. *history.Recorder is one.
type Sink interface {
	Now() int64
	Record(history.Event) int64
	NextAttempt() uint64
}

// Gate stops workers between two steps, as a long garbage collection would stop the code that uses a lock. The zero
// value is open. Safe for concurrent use.
type Gate struct {
	mu   sync.Mutex
	shut chan struct{} // not nil while shut; closed when opened
}

// Shut makes Pass wait until Open.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

// Open lets everybody go on.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// Pass returns when the gate is open.
func (g *Gate) Pass() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// Worker is one goroutine of a client that takes locks, one after another.
type Worker struct {
	Client int
	// Number tells the workers of a client apart, for a report.
	Number  int
	Locker  Locker
	Sink    Sink
	Profile Profile
	Rand    *rand.Rand
	// Gate stops the worker; optional.
	Gate *Gate
	// Checked and Unchecked are the registers; optional.
	Checked, Unchecked Resource
	// Fenced reports whether the library gives tokens. If it does not, the worker asks for Plain
	// holds instead of Fenced ones.
	Fenced bool
	// Unexpected receives the errors that no lock library should return; optional. The worker's goroutine calls it.
	Unexpected func(op string, err error)
}

// Run takes locks until ctx is done. It then releases its locks and returns.
func (w *Worker) Run(ctx context.Context) {
	keys := w.Profile.keys()
	for ctx.Err() == nil {
		w.pass()
		w.Cycle(ctx, w.choose(keys))
		Pause(ctx, w.draw(w.Profile.Think))
	}
}

// choose draws the keys of a lock: one, or as many as the profile has together.
func (w *Worker) choose(keys []string) []string {
	if w.Profile.Together < 2 {
		n := w.Rand.IntN(len(keys))
		return keys[n : n+1]
	}
	out := slices.Clone(keys)
	w.Rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(w.Profile.Together, len(out))]
}

func (w *Worker) pass() {
	if w.Gate != nil {
		w.Gate.Pass()
	}
}

func (w *Worker) draw(s Span) time.Duration {
	if s.Max <= s.Min {
		return s.Min
	}
	return s.Min + time.Duration(w.Rand.Int64N(int64(s.Max-s.Min)))
}

func (w *Worker) unexpected(op string, err error) {
	if w.Unexpected != nil {
		w.Unexpected(op, err)
	}
}

// kind draws the kind of the next hold.
func (w *Worker) kind() history.Kind {
	switch p := w.Profile; {
	case p.Readers > 0 && w.Rand.Float64() < p.Readers:
		return history.Shared
	case p.Kind == history.Fenced && !w.Fenced:
		return history.Plain
	default:
		return p.Kind
	}
}

// Cycle is one acquisition of a lock over these keys, and the life of its hold.
func (w *Worker) Cycle(ctx context.Context, keys []string) {
	request := Request{
		Key: keys[0], Also: keys[1:], TTL: w.Profile.TTL, Kind: w.kind(), Once: w.Profile.Wait == 0,
		Renew:   w.Profile.Renew,
		ToBound: w.Profile.ToBound,
	}
	hold := w.acquire(ctx, request, 1)
	if hold == nil {
		// A failed attempt that cost no time must not become a busy loop.
		Pause(ctx, ms+w.draw(Span{0, 4 * ms}))
		return
	}
	request.Owner = hold.Owner()
	var nested []*held
	for n := range w.Profile.Nested {
		if again := w.acquire(ctx, request, n+2); again != nil {
			nested = append(nested, again)
		}
	}
	w.act(ctx, hold)
	for _, inner := range slices.Backward(nested) {
		w.release(ctx, inner)
		Pause(ctx, w.draw(w.Profile.Hold)) // the outer hold goes on
		w.still(hold)
	}
	w.release(ctx, hold)
}

// held is a hold and its record.
type held struct {
	Hold
	id    uint64 // of the attempt for the first key
	ids   []uint64
	key   string // the first
	keys  []string
	until int64        // reference time
	seen  atomic.Int64 // when until was looked at
	// watch ends the goroutine that waits for Done, and waits for it.
	watch func()
}

func (w *Worker) acquire(ctx context.Context, r Request, number int) *held {
	attempt, cancel := ctx, context.CancelFunc(func() {})
	wait := w.Profile.Wait
	patience := wait
	switch {
	case w.Rand.Float64() < w.Profile.Cancel:
		wait = 0 // its caller gives up; that it got nothing says nothing
		patience = w.draw(Span{0, 10 * ms})
		attempt, cancel = context.WithTimeout(ctx, patience)
	case wait > 0:
		attempt, cancel = context.WithTimeout(ctx, wait)
	}
	defer cancel()
	e := history.Event{
		Type: history.AcquireCall, Kind: r.Kind, Owner: r.Owner, Hold: number, TTL: int64(r.TTL), Wait: int64(wait),
		Patience: int64(patience), Renew: r.Renew, Quiet: w.Profile.Quiet,
	}
	h := &held{key: r.Key, keys: append([]string{r.Key}, r.Also...)}
	for range h.keys {
		h.ids = append(h.ids, w.Sink.NextAttempt())
	}
	if h.id = h.ids[0]; len(h.ids) > 1 {
		e.Lock = h.id
	}
	w.record(h, e)
	var hold Hold
	err := safely(func() (err error) { hold, err = w.Locker.Acquire(attempt, r); return err })
	e.Type, e.Outcome = history.AcquireReturn, Classify(attempt, err)
	if err != nil {
		e.Note = err.Error()
		w.record(h, e)
		if e.Outcome == history.Failed {
			w.unexpected("acquire", err)
		}
		return nil
	}
	h.Hold = hold
	h.seen.Store(w.Sink.Now())
	h.until = h.seen.Load() + int64(hold.Remaining())
	e.Owner, e.Token, e.Until, e.NoDone = hold.Owner(), hold.Token(), h.until, hold.Done() == nil
	w.record(h, e)
	h.watch = w.watchDone(h)
	return h
}

// record enters an event of a hold, or of an attempt at one, once for each of its keys.
func (w *Worker) record(h *held, e history.Event) {
	e.Client, e.Worker = w.Client, w.Number
	for i, id := range h.ids {
		e.Attempt, e.Key = id, h.keys[i]
		w.Sink.Record(e)
	}
}

// watchDone records the moment Done closes.
func (w *Worker) watchDone(h *held) (end func()) {
	done := h.Done()
	if done == nil {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
		case <-stop:
			select {
			case <-done: // both were ready
			default:
				return
			}
		}
		w.record(h, history.Event{Type: history.DoneClosed, Value: w.Sink.Now() - h.seen.Load()})
	}()
	return func() { close(stop); <-ended }
}

// act holds the lock for as long as was drawn, or until it is lost.
func (w *Worker) act(ctx context.Context, h *held) {
	w.pass()
	if w.Profile.Register {
		w.update(ctx, h)
	}
	end := time.Now()
	if !w.Profile.Late {
		end = end.Add(w.draw(w.Profile.Hold))
	}
	extendAt := time.Time{}
	if w.Rand.Float64() < w.Profile.Extend {
		extendAt = time.Now().Add(time.Until(end) / 2)
	}
	for time.Now().Before(end) && ctx.Err() == nil {
		// A program that was paused after checking the bound extends without another check; so does this worker.
		if !extendAt.IsZero() && time.Now().After(extendAt) {
			extendAt = time.Time{}
			w.extend(ctx, h)
		}
		if !w.still(h) {
			return
		}
		Pause(ctx, min(time.Until(end), w.Profile.TTL/20))
		w.pass()
	}
	if !extendAt.IsZero() {
		w.extend(ctx, h) // late, because the worker stood still
	}
	w.still(h)
}

// still tells whether the holder may go on, and records bounds that renewal has moved.
func (w *Worker) still(h *held) bool {
	select {
	case <-h.Done():
		return false
	default:
	}
	now := w.Sink.Now()
	left := int64(h.Remaining())
	if left <= 0 {
		w.record(h, history.Event{Type: history.Stopped, Note: history.NoteBound})
		return false
	}
	before := h.seen.Swap(now)
	// Reading the clock twice moves a bound by microseconds; a renewal moves it by a good part of the ttl.
	if now+left > h.until+int64(w.Profile.TTL/50) {
		h.until = now + left
		w.record(h, history.Event{
			Type: history.ExtendReturn, Outcome: history.Acquired, Until: h.until,
			TTL: int64(w.Profile.TTL), Note: history.NoteSeen, Value: now - before,
		})
	}
	return true
}

func (w *Worker) extend(ctx context.Context, h *held) {
	e := history.Event{Type: history.ExtendCall, TTL: int64(w.Profile.TTL)}
	w.record(h, e)
	err := safely(func() error { return h.Extend(ctx, w.Profile.TTL) })
	e.Type, e.Outcome = history.ExtendReturn, Classify(ctx, err)
	if err != nil {
		e.Note = err.Error()
	} else {
		h.until = w.Sink.Now() + int64(h.Remaining())
		e.Until = h.until
	}
	w.record(h, e)
	if e.Outcome == history.Failed {
		w.unexpected("extend", err)
	}
}

// update is a read-modify-write on both registers. A holder that sees that its hold is over does not write, unless its
// profile has it write without a look.
func (w *Worker) update(ctx context.Context, h *held) {
	token := h.Token()
	readChecked := false
	if w.Checked != nil && token != 0 {
		_, readChecked = w.Checked.Read(h.id, w.Client, h.key, token)
	}
	if w.Unchecked != nil {
		w.Unchecked.Read(h.id, w.Client, h.key, token)
	}
	if w.Profile.Late {
		Pause(ctx, w.draw(w.Profile.Hold))
	} else {
		Pause(ctx, w.draw(Span{0, 5 * ms}))
		if !w.still(h) {
			return
		}
	}
	w.pass() // the pause that no check of the holder can see
	if readChecked {
		w.Checked.Write(h.id, w.Client, h.key, token, int64(h.id))
	}
	if w.Unchecked != nil {
		w.Unchecked.Write(h.id, w.Client, h.key, token, int64(h.id))
	}
}

// safely makes an error of a panic in the library, so that it is judged like any other and the run goes on.
func safely(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("workload: the library panicked: %v", p)
		}
	}()
	return call()
}

// releasePatience bounds a release, whatever became of the run.
const releasePatience = 10 * time.Second

func (w *Worker) release(ctx context.Context, h *held) {
	w.pass()
	h.watch() // a release closes Done too, which is no news
	e := history.Event{Type: history.ReleaseCall}
	w.record(h, e)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	err := safely(func() error { return h.Release(bounded) })
	e.Type, e.Outcome = history.ReleaseReturn, Classify(bounded, err)
	if err != nil {
		e.Note = err.Error()
	}
	w.record(h, e)
	if e.Outcome == history.Failed {
		w.unexpected("release", err)
	}
}
