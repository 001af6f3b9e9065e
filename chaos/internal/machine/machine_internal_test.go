package machine

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bare is a machine without goroutines that watch it.
func bare(recorder *history.Recorder, tolerate time.Duration) *Machine {
	return &Machine{recorder: recorder, tolerate: tolerate}
}

func TestABeatThatComesLateIsAStall(t *testing.T) {
	now := int64(5 * time.Second)
	recorder := history.NewRecorder(func() int64 { return now })
	m := bare(recorder, 20*time.Millisecond)
	m.beat(now-int64(beat), now)
	if n, _, _ := m.Stalled(); n != 0 || len(recorder.Events()) != 0 || m.given.Load() != int64(beat) {
		t.Errorf("%d stalls, %v, given %d", n, recorder.Events(), m.given.Load())
	}
	m.beat(now-int64(time.Second), now) // the machine stood still
	if given := time.Duration(m.given.Load()); given != 3*beat {
		t.Errorf("a second in which nothing ran counts as %v", given-beat)
	}
	events := recorder.Events()
	n, longest, whose := m.Stalled()
	if n != 1 || longest != time.Second || whose == "" || len(events) != 1 {
		t.Fatalf("%d stalls of %v, %v", n, longest, events)
	}
	if e := events[0]; e.Type != history.Stall || e.At != 4*int64(time.Second) || e.Value != int64(time.Second) ||
		!strings.Contains(e.Note, "1s") {
		t.Errorf("recorded %+v", e)
	}
}

// TestAProxyThatAnswersLateIsAStall has a server that takes its time for one answer, and then gives none for a while.
func TestAProxyThatAnswersLateIsAStall(t *testing.T) {
	var now, asked atomic.Int64
	recorder := history.NewRecorder(now.Load)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		const ms = int64(time.Millisecond)
		n := asked.Add(1)
		switch {
		case r.URL.Path != "/version":
			t.Errorf("asked for %s", r.URL)
		case n == 2:
			now.Add(500 * ms)
		case n > 3 && n < 8:
			now.Add(15 * ms)
			panic(http.ErrAbortHandler) //nolint:forbidigo // which is how a handler ends without an answer
		case n == 10:
			cancel()
		default:
			now.Add(5 * ms) // its distance
		}
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	bare(recorder, 20*time.Millisecond).askProxy(ctx, strings.TrimPrefix(server.URL, "http://"))
	var got []string
	for _, e := range recorder.Events() {
		got = append(got, fmt.Sprintf("%s %v from %v: %s", e.Type, time.Duration(e.Value), time.Duration(e.At), e.Note))
	}
	want := []string{
		"stall 500ms from 5ms: the toxiproxy server had to wait for 495ms",
		"stall 65ms from 510ms: the toxiproxy server had to wait for 60ms",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// TestAProxyThatIsGoneForGoodIsAStall: one that refuses connections does so at once, and mostly the end comes between
// two questions.
func TestAProxyThatIsGoneForGoodIsAStall(t *testing.T) {
	var now, asked atomic.Int64
	recorder := history.NewRecorder(now.Load)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := asked.Add(1)
		if n <= 4 {
			now.Add(5 * int64(time.Millisecond))
		}
		switch n {
		case 1:
			return
		case 4:
			time.AfterFunc(proxyEvery/4, cancel) // this answer is long over, the next question is yet to come
		default:
		}
		panic(http.ErrAbortHandler) //nolint:forbidigo // which is how a handler ends without an answer
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	bare(recorder, time.Millisecond).askProxy(ctx, server.URL)
	events := recorder.Events()
	if len(events) != 1 || events[0].At != 5*int64(time.Millisecond) || events[0].Value != 15*int64(time.Millisecond) {
		t.Errorf("recorded %+v, want one from 5 ms to 20", events)
	}
}

// TestTheMachineAsksTheProxyAndLooksAtTheMasters: it watches exactly the proxy and the processes that it was given.
func TestTheMachineAsksTheProxyAndLooksAtTheMasters(t *testing.T) {
	var now, asked atomic.Int64
	recorder := history.NewRecorder(now.Load)
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 {
			now.Add(int64(time.Second))
			close(silent)
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	looked := make(chan struct{}, 1)
	m := Watch(recorder, time.Second, func() []Process {
		select {
		case looked <- struct{}{}:
		default:
		}
		return nil
	}, server.URL)
	<-silent
	<-looked
	m.Stop()
	if !slices.ContainsFunc(recorder.Events(), func(e history.Event) bool {
		return strings.HasPrefix(e.Note, "the toxiproxy server")
	}) {
		t.Errorf("a proxy that said nothing for a second: recorded %+v", recorder.Events())
	}
}

func TestWaitsCountOnlyTimeThatTheRunWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // every beat is punctual
		start := time.Now()
		m := bare(history.NewRecorder(func() int64 { return int64(time.Since(start)) }), time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			tick := time.NewTicker(beat)
			defer tick.Stop()
			for last := time.Duration(0); ; {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				now := time.Since(start)
				m.beat(int64(last), int64(now))
				last = now
			}
		}()
		if m.Await(t.Context(), 300*time.Millisecond, func() bool { return false }) {
			t.Error("what never holds held")
		}
		if took := time.Since(start); took < 300*time.Millisecond || took > 320*time.Millisecond {
			t.Errorf("on a machine with time it took %v", took)
		}
		calls := 0
		if !m.Await(t.Context(), time.Hour, func() bool { calls++; return calls == 3 }) {
			t.Error("what holds in the end did not")
		}
		cancel()
		synctest.Wait()
	})
}

// TestWaitingForAProcessorIsSeen has one processor of the Go scheduler, which one goroutine keeps busy while another
// could run; and a process that competes with others for the processors of the machine.
func TestWaitingForAProcessorIsSeen(t *testing.T) {
	t.Run("a goroutine", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		sched := newSchedule()
		const many = 200 // the runtime measures only some goroutines
		var ran sync.WaitGroup
		for range many {
			ran.Go(func() {})
		}
		for start := time.Now(); time.Since(start) < 8*time.Millisecond; { // the scheduler interrupts it after ten
		}
		ran.Wait()
		if d := sched.longest(); d < 4*time.Millisecond {
			t.Errorf("a goroutine that waited for some 8 ms is said to have waited for %v", d)
		}
		if d := sched.longest(); d > time.Second {
			t.Errorf("the same wait was counted again: %v", d)
		}
	})
	t.Run("a process", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the kernel does not tell")
		}
		kernel := newDelays()
		defer kernel.close()
		var busy []*exec.Cmd
		for range 3 * runtime.NumCPU() {
			c := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
			must(t, c.Start())
			busy = append(busy, c)
			kernel.of(Process{Pid: c.Process.Pid})
		}
		deadline, most := time.Now().Add(20*time.Second), time.Duration(0)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for most < 5*time.Millisecond && time.Now().Before(deadline) {
			<-tick.C
			for _, c := range busy {
				most = max(most, kernel.of(Process{Pid: c.Process.Pid}))
			}
		}
		for _, c := range busy {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		if most < 5*time.Millisecond {
			t.Errorf("of three busy processes for each processor none waited for more than %v", most)
		}
		if d := kernel.of(Process{Pid: busy[0].Process.Pid}); d != 0 {
			t.Errorf("a process that is gone waited for %v", d)
		}
	})
}
