// Package machine tells when the machine gave a run no time, so that no lock is blamed for it.
package machine

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

const (
	// beat is how often the run looks whether the machine still runs it.
	beat = 5 * time.Millisecond
	// looks is how many beats pass between two looks at how long threads and processes had to wait for a processor.
	looks = 4
)

// Machine notices when something of a run got no time to run. A request has a twentieth of the ttl; one that failed
// because the machine had no time for anybody says nothing about the lock. Each such stretch goes into the history as a
// Stall, which all oracles about time treat alike. It is seen in four ways, because none sees all:
//
//   - a goroutine that wakes every few milliseconds wakes late: the whole process, or the whole machine, stood still;
//   - the Go scheduler says how long goroutines that could have run had to wait (it looks at one of eight);
//   - the kernel says how long threads of this process, the clients' processes and the masters that are processes of
//     this machine had to wait for a processor. Where the kernel does not tell, the first two remain;
//   - a toxiproxy server, if there is one, answers a request for its version late (askProxy).
//
// It also reports how much time the run was given. Waits use this, so that their length says
// something about the lock and not about other load on the machine.
type Machine struct {
	recorder *history.Recorder
	tolerate time.Duration // how long a stretch must be to count as a stall
	given    atomic.Int64  // nanoseconds
	quiet    atomic.Bool   // see Quiet
	cancel   context.CancelFunc
	group    sync.WaitGroup

	mu      sync.Mutex
	stalls  int
	longest time.Duration
	whose   string
}

// Watch starts to watch the machine. processes returns the other processes that belong to the
// run at the moment, and proxy is the address of a toxiproxy server's API, or empty.
func Watch(recorder *history.Recorder, ttl time.Duration, processes func() []Process, proxy string) *Machine {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Machine{recorder: recorder, tolerate: max(4*beat, ttl/80), cancel: cancel}
	m.group.Go(func() { m.run(ctx, processes) })
	if proxy != "" {
		m.group.Go(func() { m.askProxy(ctx, proxy) })
	}
	return m
}

// Process is one that belongs to the run.
type Process struct {
	Name string
	Pid  int
	// Main: its first thread does all that matters. Others may have slept for long, and the kernel miscounts the waits
	// of such.
	Main bool
}

func (m *Machine) run(ctx context.Context, processes func() []Process) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	last := m.recorder.Now()
	sched, kernel := newSchedule(), newDelays()
	defer kernel.close()
	lastLook := last
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := m.recorder.Now()
		m.beat(last, now)
		last = now
		if n%looks != 0 {
			continue
		}
		if d := sched.longest(); d > m.tolerate {
			m.stall(lastLook-int64(d), now, d, "goroutines that could run")
		}
		for _, p := range append(processes(), Process{Name: "this process"}) {
			if d := kernel.of(p); d > 2*m.tolerate { // one thread of many; the others may have done its work
				m.stall(lastLook-int64(d), now, d, p.Name)
			}
		}
		kernel.forget()
		lastLook = now
	}
}

// beat takes note of the time between two beats. A beat that comes late counts for at most two.
func (m *Machine) beat(last, now int64) {
	m.given.Add(min(now-last, int64(2*beat)))
	if d := time.Duration(now - last); d > m.tolerate {
		m.stall(last, now, d, "this process")
	}
}

// stall takes note that something had to wait for d, somewhere from then to now.
func (m *Machine) stall(from, now int64, d time.Duration, whose string) {
	m.mu.Lock()
	m.stalls++
	if d > m.longest {
		m.longest, m.whose = d, whose
	}
	m.mu.Unlock()
	if m.quiet.Load() {
		return
	}
	from = max(0, from)
	m.recorder.Append(history.Event{
		At: from, Type: history.Stall, Client: history.Everyone, Master: history.Everyone, Value: now - from,
		Note: fmt.Sprintf("%s had to wait for %s", whose, d.Round(time.Millisecond)),
	})
}

// Quiet keeps stalls out of the history from now on.
func (m *Machine) Quiet() { m.quiet.Store(true) }

// Stalled returns how often the machine stood still, the longest such time, and the part of the run that it affected.
func (m *Machine) Stalled() (n int, longest time.Duration, whose string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stalls, m.longest, m.whose
}

// Await checks cond every few milliseconds and returns true once it holds. It returns false if ctx
// is done, or if the run has been given d of time first.
func (m *Machine) Await(ctx context.Context, d time.Duration, cond func() bool) bool {
	tick := time.NewTicker(2 * beat)
	defer tick.Stop()
	for end := m.given.Load() + int64(d); ; {
		over := m.given.Load() >= end
		if cond() {
			return true
		}
		if over {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// SleepUntil returns at t. It returns false if ctx is done before.
func SleepUntil(ctx context.Context, t time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(t)):
		return true
	}
}

// Poll asks until cond is true, ctx is done or the time is over.
func Poll(ctx context.Context, within time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !cond() {
		if !SleepUntil(ctx, time.Now().Add(10*time.Millisecond)) {
			return false
		}
	}
	return true
}

// WaitFor waits for a group, and returns false if it takes longer.
func WaitFor(group *sync.WaitGroup, within time.Duration) bool {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(within):
		return false
	}
}

// Stop ends it.
func (m *Machine) Stop() {
	m.cancel()
	m.group.Wait()
}

// schedule reads from the Go runtime how long goroutines had to wait until they ran.
type schedule struct {
	sample []metrics.Sample
	before []uint64
}

func newSchedule() *schedule {
	s := &schedule{sample: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
	s.longest()
	return s
}

// longest returns the longest such wait that ended since the last call, by less than it may have been: the histogram's
// buckets are a tenth apart or so.
func (s *schedule) longest() time.Duration {
	metrics.Read(s.sample)
	if s.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0 // a runtime that does not tell
	}
	h := s.sample[0].Value.Float64Histogram()
	longest := time.Duration(0)
	for i, n := range h.Counts {
		if len(s.before) == len(h.Counts) && n > s.before[i] && h.Buckets[i] > 0 {
			longest = time.Duration(h.Buckets[i] * float64(time.Second))
		}
	}
	s.before = append(s.before[:0], h.Counts...)
	return longest
}
