package workload_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	if os.Getenv(silent) != "" { // a program that forgot to call Main
		fmt.Println("PASS")
		os.Exit(0)
	}
	workload.Main(&memory{}, timed{&memory{}, time.Now}) // for the tests with children
	goleak.VerifyTestMain(m)
}

// memory is a lock in memory, with tokens, renewal and Done: a subject that needs no master. Its holds last for ever
// unless lifetime says otherwise.
type memory struct {
	lifetime time.Duration
	lost     bool // Done closes at once
	frees    bool // the release of one hold ends all holds of its owner

	mu     sync.Mutex
	holder map[string]*memoryHold
	token  uint64
}

func (m *memory) Name() string { return "memory" }
func (m *memory) Supports(kind history.Kind) error {
	if kind == history.Shared {
		return workload.ErrUnsupported
	}
	return nil
}

func (m *memory) SupportsSeveral() error { return nil }
func (m *memory) RenewsHolds()           {}

func (m *memory) Open(context.Context, []string) (workload.Locker, error) { return m, nil }
func (m *memory) Close(context.Context) error                             { return nil }

func (m *memory) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		if h := m.try(r); h != nil {
			return h, nil
		}
		if r.Once {
			return nil, workload.ErrHeld
		}
		timer := time.NewTimer(time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

func (m *memory) try(r workload.Request) *memoryHold {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder == nil {
		m.holder = make(map[string]*memoryHold)
	}
	keys := append([]string{r.Key}, r.Also...)
	for _, key := range keys {
		if other := m.holder[key]; other != nil && (r.Kind != history.Reentrant || other.owner != r.Owner) {
			return nil
		}
	}
	other := m.holder[r.Key]
	m.token++
	h := &memoryHold{m: m, keys: keys, owner: r.Owner, token: m.token, done: make(chan struct{}), outer: other}
	if h.owner == "" {
		h.owner = fmt.Sprint("owner-", m.token)
	}
	h.until = time.Now().Add(max(m.lifetime, r.TTL))
	if m.lost {
		close(h.done)
	}
	for _, key := range keys {
		m.holder[key] = h
	}
	return h
}

type memoryHold struct {
	m     *memory
	keys  []string
	owner string
	token uint64
	until time.Time
	done  chan struct{}
	outer *memoryHold
}

func (h *memoryHold) Owner() string            { return h.owner }
func (h *memoryHold) Token() uint64            { return h.token }
func (h *memoryHold) Remaining() time.Duration { return time.Until(h.until) }
func (h *memoryHold) Done() <-chan struct{}    { return h.done }

func (h *memoryHold) Extend(_ context.Context, ttl time.Duration) error {
	h.until = time.Now().Add(ttl)
	return nil
}

func (h *memoryHold) Release(context.Context) error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	for _, key := range h.keys {
		h.m.holder[key] = h.outer
		if h.outer == nil || h.m.frees {
			delete(h.m.holder, key)
		}
	}
	return nil
}

// work runs workers with a profile until they have made that many acquisitions, and returns the record.
func work(t *testing.T, m *memory, profile workload.Profile, acquisitions int) *history.View {
	t.Helper()
	origin := workload.Monotonic()
	recorder := history.NewRecorder(func() int64 { return workload.Monotonic() - origin })
	checked, unchecked := workload.NewRegister(recorder, true), workload.NewRegister(recorder, false)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for c := range 3 {
		w := workload.Worker{
			Client: c, Locker: m, Sink: recorder, Profile: profile.Of(c), Rand: rand.New(rand.NewPCG(1, uint64(c))),
			Fenced: true, Checked: checked, Unchecked: unchecked, Gate: &workload.Gate{},
			Unexpected: func(op string, err error) { t.Errorf("%s: %v", op, err) },
		}
		group.Go(func() { w.Run(ctx) })
	}
	eventually(t, func() bool {
		n := 0
		for _, e := range recorder.Events() {
			if e.Type == history.AcquireReturn && e.Outcome == history.Acquired {
				n++
			}
		}
		return n >= acquisitions
	})
	cancel()
	group.Wait()
	return history.NewView(recorder.Events())
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to pass")
		}
		<-tick.C
	}
}

// TestWorkersRecordEachHoldCompletely runs every profile that the subject supports. The record must be complete.
func TestWorkersRecordEachHoldCompletely(t *testing.T) {
	for _, profile := range workload.Profiles() {
		m := &memory{}
		if err := profile.Check(m); err != nil {
			if profile.Name != "shared" && profile.Name != "permits" && profile.Name != "renewed-permits" ||
				!errors.Is(err, workload.ErrUnsupported) {
				t.Errorf("%s: %v", profile.Name, err)
			}
			continue
		}
		if profile.Name == "long-holds" {
			profile.Hold = workload.Span{Min: 20 * time.Millisecond, Max: 30 * time.Millisecond}
		}
		t.Run(profile.Name, func(t *testing.T) {
			t.Parallel()
			v := work(t, m, profile, 12)
			nested, extended, together := 0, 0, 0
			for _, a := range v.Attempts {
				if a.Return == history.Never || a.Granted() &&
					(!a.Released || a.ReleaseReturn < a.ReleaseCall || a.ReleaseCall < a.Return) {
					t.Errorf("attempt %+v is not whole", a)
				}
				if a.Granted() && (a.Owner == "" || a.Until <= a.Return) {
					t.Errorf("hold %+v", a)
				}
				if v.Events[a.CallEvent].Hold > 1 {
					nested++
				}
				extended += len(a.Extensions)
				if a.Lock != 0 {
					together++
				}
			}
			if mixed := slices.ContainsFunc(profile.Parts, func(p workload.Part) bool {
				return p.Together > 1
			}); (together > 0) != mixed || mixed && nested == 0 {
				t.Errorf("%d attempts for several keys, %d nested", together, nested)
			} else if mixed {
				return
			}
			if (nested > 0) != (profile.Nested > 0) || extended == 0 && profile.Extend == 1 {
				t.Errorf("%d nested, %d extensions", nested, extended)
			}
		})
	}
}

// alone is a subject that has no locks over several keys.
type alone struct{ workload.Subject }

func TestALibraryWithoutLocksOverSeveralKeysIsRefused(t *testing.T) {
	mixed, err := workload.FindProfile("mixed")
	must(t, err)
	if err := mixed.Check(alone{&memory{}}); !errors.Is(err, workload.ErrUnsupported) ||
		!strings.Contains(err.Error(), "several keys") {
		t.Errorf("error %v", err)
	}
}

// processes is a subject whose clients are processes.
type processes struct{ workload.Subject }

func (p processes) WithClocks(context.Context, string) (workload.Subject, error) { return p, nil }

func TestAClientThatIsAProcessIsNoneOfTheHarness(t *testing.T) {
	children, err := workload.FindProfile("children")
	must(t, err)
	must(t, children.Check(&memory{}))
	if err := children.Check(processes{&memory{}}); !errors.Is(err, workload.ErrUnsupported) ||
		!strings.Contains(err.Error(), "processes already") {
		t.Errorf("error %v", err)
	}
}

func TestAHolderWhoseHoldIsLostStops(t *testing.T) {
	profile := workload.Profile{
		Name: "x", TTL: time.Minute, Hold: workload.Span{Min: time.Hour, Max: time.Hour}, Wait: time.Second,
	}
	v := work(t, &memory{lost: true}, profile, 6)
	for _, a := range v.Attempts {
		if a.Granted() && a.Done == history.Never {
			t.Errorf("Done was not recorded: %+v", a)
		}
	}
}

// A holder that entered again goes on after it has left the inner hold.
func TestAnInnerReleaseThatEndsTheOuterHoldShows(t *testing.T) {
	profile, err := workload.FindProfile("reentrant")
	must(t, err)
	profile.Keys = 1
	for _, frees := range []bool{false, true} {
		v := work(t, &memory{frees: frees}, profile, 90)
		if found := oracle.Overlap(v); len(found) > 0 != frees {
			t.Errorf("frees all: %t, found %v", frees, found)
		}
	}
}

// clumsy panics where its name says.
type clumsy struct {
	workload.Locker
	at string
}

type clumsyHold struct {
	workload.Hold
	at string
}

func trip(at, here string) {
	if at == here {
		panic("oh") //nolint:forbidigo // as a library's code may
	}
}

func (c clumsy) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	trip(c.at, "acquire")
	h, err := c.Locker.Acquire(ctx, r)
	return clumsyHold{h, c.at}, err
}

func (h clumsyHold) Extend(ctx context.Context, ttl time.Duration) error {
	trip(h.at, "extend")
	return h.Hold.Extend(ctx, ttl)
}

func (h clumsyHold) Release(ctx context.Context) error {
	trip(h.at, "release")
	return h.Hold.Release(ctx)
}

func TestHazard138APanicOfTheLibraryIsAFailedCall(t *testing.T) {
	profile := workload.Profile{
		Name: "x", TTL: time.Minute, Extend: 1, Hold: workload.Span{Min: time.Millisecond, Max: time.Millisecond},
	}
	for _, at := range []string{"acquire", "extend", "release"} {
		recorder := history.NewRecorder(workload.Monotonic)
		ctx, cancel := context.WithCancel(t.Context())
		w := workload.Worker{
			Locker: clumsy{&memory{}, at}, Sink: recorder, Profile: profile, Rand: rand.New(rand.NewPCG(1, 1)),
			Unexpected: func(string, error) { cancel() },
		}
		w.Run(ctx)
		cancel()
		failed := func(e history.Event) bool {
			return e.Outcome == history.Failed && e.Type.String() == at+"-return" &&
				strings.Contains(e.Note, "panicked: oh")
		}
		if !slices.ContainsFunc(recorder.Events(), failed) {
			t.Errorf("%s: no call failed", at)
		}
	}
}

func TestAShutGateStopsAWorkerUntilItOpens(t *testing.T) {
	var gate workload.Gate
	gate.Pass() // open
	gate.Shut()
	gate.Shut()
	passed := make(chan struct{})
	go func() { gate.Pass(); close(passed) }()
	select {
	case <-passed:
		t.Error("a worker passed a shut gate")
	case <-time.After(20 * time.Millisecond):
	}
	gate.Open()
	<-passed
	gate.Open()
}

func TestTheCheckingRegisterRefusesStaleTokens(t *testing.T) {
	recorder := history.NewRecorder(func() int64 { return 0 })
	checked, unchecked := workload.NewRegister(recorder, true), workload.NewRegister(recorder, false)
	for _, r := range []*workload.Register{checked, unchecked} {
		if _, ok := r.Read(1, 1, "k", 5); !ok {
			t.Error("a first token was refused")
		}
		if _, ok := r.Read(2, 2, "k", 7); !ok {
			t.Error("a greater token was refused")
		}
		stale := r.Write(1, 1, "k", 5, 1)
		if !r.Write(2, 2, "k", 7, 2) {
			t.Error("the token in force was refused")
		}
		if stale != (r == unchecked) {
			t.Errorf("a stale write was accepted: %v", stale)
		}
		if v, ok := r.Read(3, 3, "k", 8); v != 2 || !ok {
			t.Errorf("read %d, %v", v, ok)
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want history.Outcome
	}{
		{t.Context(), nil, history.Acquired},
		{over, nil, history.Acquired},
		{over, workload.ErrHeld, history.Cancelled},
		{t.Context(), fmt.Errorf("x: %w", workload.ErrHeld), history.Held},
		{t.Context(), workload.ErrLost, history.Held},
		{t.Context(), workload.ErrNoQuorum, history.NoQuorum},
		{t.Context(), workload.ErrExpired, history.Expired},
		{t.Context(), os.ErrClosed, history.Failed},
	} {
		if got := workload.Classify(tt.ctx, tt.err); got != tt.want {
			t.Errorf("%v is %v, want %v", tt.err, got, tt.want)
		}
	}
}

// silent in the environment makes this program one that does not know that it may be started as a client.
const silent = "REDLOCK_CHAOS_TEST_SILENT"

func TestAProcessThatIsNoClientIsASetUpError(t *testing.T) {
	recorder := history.NewRecorder(func() int64 { return 0 })
	t.Run("no Main", func(t *testing.T) {
		t.Setenv(silent, "1")
		_, err := workload.StartChild(recorder, workload.ChildOptions{Subject: "memory"})
		if !errors.Is(err, workload.ErrNoHello) || !strings.Contains(err.Error(), "workload.Main") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no such subject", func(t *testing.T) {
		_, err := workload.StartChild(recorder, workload.ChildOptions{Subject: "nobody's"})
		if err == nil || errors.Is(err, workload.ErrNoHello) || !strings.Contains(err.Error(), "nobody's") {
			t.Errorf("error %v", err)
		}
	})
	if n := len(recorder.Events()); n != 0 {
		t.Errorf("%d events of processes that are no clients", n)
	}
}

// keeper starts this test as a client with so many workers. The first worker with the lock keeps it.
func keeper(t *testing.T, client, nth, workers int) (*workload.Child, *history.Recorder) {
	t.Helper()
	origin := workload.Monotonic()
	recorder := history.NewRecorder(func() int64 { return workload.Monotonic() - origin })
	child, err := workload.StartChild(recorder, workload.ChildOptions{
		Subject: "memory", Client: client, Origin: origin, Nth: nth,
		Profile: workload.Profile{
			Name: "x", TTL: time.Hour, Hold: workload.Span{Min: time.Hour, Max: time.Hour}, Workers: workers,
			Wait: time.Hour,
		},
	})
	must(t, err)
	return child, recorder
}

// TestTheHoldOfAKilledChildHasNoHolder starts this test as a client, stops it, resumes it, kills
// it, and reads its events.
func TestTheHoldOfAKilledChildHasNoHolder(t *testing.T) {
	child, recorder := keeper(t, 3, 1, 2)
	has := func(typ history.Type) func() bool {
		return func() bool {
			for _, e := range recorder.Events() {
				if e.Type == typ && e.Client == 3 {
					return true
				}
			}
			return false
		}
	}
	eventually(t, func() bool { // one has it, and one waits
		return has(history.AcquireReturn)() && len(history.NewView(recorder.Events()).Attempts) == 2
	})
	must(t, errors.Join(child.Pause(), child.Resume()))
	if !child.Alive() || !has(history.Paused)() || !has(history.Resumed)() {
		t.Error("the pause was not recorded, or ended the child")
	}
	child.Kill()
	v := history.NewView(recorder.Events())
	if child.Alive() || len(v.Attempts) != 2 {
		t.Fatalf("alive %v, attempts %+v", child.Alive(), v.Attempts)
	}
	a, waits := v.Attempts[0], v.Attempts[1]
	if waits.Granted() {
		a, waits = waits, a
	}
	if waits.Return != history.Never || waits.Stopped == history.Never {
		t.Errorf("the attempt that waited: %+v", waits)
	}
	if !a.Granted() || a.Stopped == history.Never || a.ReleaseCall != history.Never || a.ID>>32 != 2 ||
		a.Call > a.Stopped {
		t.Errorf("attempt %+v", a)
	}
	if now := recorder.Now(); a.Call < 0 || a.Call > now {
		t.Errorf("the child's time %d is not within the parent's %d", a.Call, now)
	}
}

func TestAStoppedChildReleases(t *testing.T) {
	child, recorder := keeper(t, 0, 0, 1)
	eventually(t, func() bool { return len(recorder.Events()) >= 2 })
	child.Stop(10 * time.Second)
	v := history.NewView(recorder.Events())
	if child.Alive() || !v.Attempts[0].Released {
		t.Errorf("alive %v, attempts %+v", child.Alive(), v.Attempts)
	}
}

// overtaken is a register that serves a client with a greater token after each read, as if the reader had been stopped.
type overtaken struct{ *workload.Register }

func (r overtaken) Read(attempt uint64, client int, key string, token uint64) (int64, bool) {
	value, ok := r.Register.Read(attempt, client, key, token)
	r.Register.Read(attempt+1000, client+1, key, token+1)
	return value, ok
}

// A client in another process uses the registers of its parent, which refuse it like any other client.
func TestAChildThatWritesTooLateIsRefusedByTheRegisterThatChecks(t *testing.T) {
	recorder := history.NewRecorder(func() int64 { return 0 })
	child, err := workload.StartChild(recorder, workload.ChildOptions{
		Subject: "memory", Checked: overtaken{workload.NewRegister(recorder, true)},
		Unchecked: workload.NewRegister(recorder, false),
		Profile: workload.Profile{
			Name: "x", Keys: 1, Kind: history.Fenced, TTL: time.Hour, Register: true, Late: true, Workers: 1,
		},
	})
	must(t, err)
	outcomes := func() map[string]history.Outcome {
		out := make(map[string]history.Outcome)
		for _, e := range recorder.Events() {
			if e.Type == history.RegisterWrite {
				out[e.Key] = e.Outcome
			}
		}
		return out
	}
	eventually(t, func() bool { return len(outcomes()) == 2 })
	child.Stop(10 * time.Second)
	want := map[string]history.Outcome{
		"redlock-chaos:x:0/checked": history.Held, "redlock-chaos:x:0/unchecked": history.Acquired,
	}
	if got := outcomes(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
