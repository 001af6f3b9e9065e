package hold_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestALockContinuesInAnotherProcess(t *testing.T) {
	servers := redistest.StartN(t, 3)
	before, after := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	lock := Take(t, before, "job", time.Minute, redlock.Fenced(), redlock.AutoRenew())
	ctx := lock.Context(t.Context())
	h := handover(t, lock)
	if ctx.Err() == nil || !errors.Is(lock.Err(), redlock.ErrNotHeld) || len(before.Held()) > 0 {
		t.Errorf("handed over, and held here: %v", lock.Err())
	}
	Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
	Is(t, Try(t, after, "job"), redlock.ErrHeld)
	next := attach(t, after, h, time.Minute, redlock.AutoRenew())
	if next.Token() <= lock.Token() || next.ID() == lock.ID() || next.Remaining() < 30*time.Second {
		t.Errorf("token %d and then %d, for %v", lock.Token(), next.Token(), next.Remaining())
	}
	Must(t, next.Verify(t.Context()))
	Must(t, next.Extend(t.Context(), 2*time.Minute))
	again := handover(t, next)
	last := attach(t, before, again, time.Minute)
	Must(t, last.Release(t.Context()))
	third := Take(t, after, "job", time.Minute, redlock.Fenced())
	if third.Token() <= last.Token() {
		t.Errorf("token %d and then %d", last.Token(), third.Token())
	}
	_, err := before.Attach(t.Context(), again, time.Minute)
	Is(t, err, redlock.ErrNotHeld)
	Must(t, third.Verify(t.Context()))
	Must(t, third.Release(t.Context()))
	_, err = before.Attach(t.Context(), again, time.Minute)
	Is(t, err, redlock.ErrNotHeld)
}

func TestOnlyOneProcessCanAttach(t *testing.T) {
	_, l := Started(t, 3)
	lock := Take(t, l, "job", time.Minute, redlock.Fenced())
	h := handover(t, lock)
	first := attach(t, l, h, time.Minute)
	_, err := l.Attach(t.Context(), h, time.Minute)
	Is(t, err, redlock.ErrNotHeld)
	Must(t, first.Verify(t.Context())) // which has taken nothing away
	Must(t, first.Release(t.Context()))
}

func TestAttachFailsWithoutAQuorumThatHasTheLock(t *testing.T) {
	servers, l := Started(t, 3)
	lock := Take(t, l, "job", time.Minute, redlock.Fenced())
	h := handover(t, lock)
	TellAll(t, servers[:2], "del", "job")
	_, err := l.Attach(t.Context(), h, time.Minute)
	Is(t, err, redlock.ErrNotHeld)
}

func TestNoTextShowsTheSecretOfAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MemLocker(t, memmaster.New(3))
		for what, opts := range map[string][]redlock.Option{"plain": nil, "shared": {redlock.Exclusive()}} {
			lock, err := l.Acquire(t.Context(), what, time.Minute, opts...)
			if err == nil {
				if _, err := lock.Handover(); !errors.Is(err, redlock.ErrInvalid) || lock.Err() != nil {
					t.Errorf("%s: %v, and then %v", what, err, lock.Err())
				}
				Must(t, lock.Release(t.Context()))
			}
		}
		lock := Take(t, l, "job", time.Minute, redlock.Fenced())
		owner := lock.Owner()
		secret := owner[strings.LastIndex(owner, "/")+1:]
		h := handover(t, lock)
		type inside struct {
			Shown  redlock.Handover
			hidden redlock.Handover
			at     *redlock.Handover
			all    []redlock.Handover
			what   any
		}
		in := inside{h, h, &h, []redlock.Handover{h}, h}
		var b strings.Builder
		for _, value := range []any{h, &h, in, &in, []inside{in}, map[string]inside{"x": in}} {
			slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "h", value)
			slog.New(slog.NewTextHandler(&b, nil)).Info("x", "h", value)
			fmt.Fprintf(&b, "%v %+v %#v %s %q %d %x", value, value, value, value, value, value, value)
			text, err := json.Marshal(value)
			if !errors.Is(err, redlock.ErrInvalid) {
				t.Errorf("%T as JSON: %s, %v: the other process would not notice that the Handover is empty", value,
					text, err)
			}
			fmt.Fprintf(&b, "%s %v", text, err)
		}
		for _, form := range secretForms(owner, secret) {
			if strings.Contains(b.String(), form) {
				t.Errorf("%s is shown: %s", form, b.String())
			}
		}
		message, err := json.Marshal(map[string]string{"Shown": h.Secret()})
		Must(t, err)
		var received inside
		if err := json.Unmarshal(message, &received); err != nil || received.Shown.Secret() != h.Secret() {
			t.Errorf("the other process has %v, %v", received.Shown, err)
		}
		if h.Key() != "job" || h.Token() != lock.Token() {
			t.Errorf("%v", h)
		}
		_, err = lock.Handover()
		Is(t, err, redlock.ErrNotHeld)
		for _, text := range []string{
			"", "hunter2", "redlock-handover-3:", "redlock-handover-3:{}", `redlock-handover-3:{"key":"hunter2"}`,
			`redlock-handover-3:{"key":"redlock:x","owner":"hunter2","token":1,"masters":["m"]}`,
			`redlock-handover-3:{"key":"k","owner":"hunter2","token":9007199254740991,"masters":["m"]}`,
			`redlock-handover-3:{"key":"k","owner":"hunter2","token":1}`,
			// which does not say on which masters the lock is
			strings.Replace(h.Secret(), "redlock-handover-3:", "redlock-handover-2:", 1),
		} {
			var h redlock.Handover
			if err := h.UnmarshalText([]byte(text)); !errors.Is(err, redlock.ErrInvalid) ||
				strings.Contains(err.Error(), `owner":"hunter2`) {
				t.Errorf("%s: %v", text, err)
			}
		}
		_, err = l.Attach(t.Context(), redlock.Handover{}, time.Minute)
		Is(t, err, redlock.ErrInvalid)
		if text := (redlock.Handover{}).Secret(); text != "" || (redlock.Handover{}).Key() != "" ||
			(redlock.Handover{}).Token() != 0 {
			t.Errorf("an empty Handover as text: %s", text)
		}
		_, err = l.Attach(t.Context(), h, time.Minute, redlock.MaxOutage(time.Second))
		Is(t, err, redlock.ErrInvalid)
		Pass(2 * time.Minute)
		_, err = l.Attach(t.Context(), h, time.Minute)
		Is(t, err, redlock.ErrNotHeld)
		var none *redlock.Lock
		_, err = none.Handover()
		Is(t, err, redlock.ErrNotHeld)
	})
}

// secretForms lists the forms of an owner value in the formats above.
func secretForms(owner, secret string) []string {
	return []string{
		secret, base64.StdEncoding.EncodeToString([]byte(owner)), fmt.Sprintf("%x", secret),
		fmt.Sprintf("%d", []byte(secret)),
		strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]"),
		strings.TrimPrefix(fmt.Sprintf("%#v", []byte(secret)), "[]byte{"),
	}
}

// handedHolders judges locks of one key: no two are held at once, and tokens grow in the order of acquisition.
type handedHolders struct {
	mu     sync.Mutex
	held   map[string]*redlock.Lock // by who took it
	last   uint64
	taken  int
	faults []string
}

func (h *handedHolders) took(who string, lock *redlock.Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken++
	if lock.Token() <= h.last {
		h.faults = append(h.faults, fmt.Sprintf("%s has token %d after %d", who, lock.Token(), h.last))
	}
	h.last = lock.Token()
	h.held[who] = lock
	h.judgeLocked()
}

func (h *handedHolders) judgeLocked() {
	var who []string
	for name, lock := range h.held {
		if lock.Err() == nil {
			who = append(who, name)
		}
	}
	if len(who) > 1 {
		h.faults = append(h.faults, fmt.Sprintf("%q hold the lock at once", who))
	}
}

// handing is a schedule of processes that hand a lock over.
type handing struct {
	Renews   bool
	Pauses   []time.Duration // before each hand-over
	Attaches []time.Duration // when each of those who attach does so
	Delays   [][2]int        // ms until each master's request is performed, and until its answer, in turn
	Rival    time.Duration   // how often somebody else asks
}

func drawHanding(t *rapid.T) handing {
	ms := func(most int, name string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Millisecond
	}
	s := handing{Renews: rapid.Bool().Draw(t, "renews"), Rival: ms(300, "rival") + 10*time.Millisecond}
	for range rapid.IntRange(1, 3).Draw(t, "hand-overs") {
		s.Pauses = append(s.Pauses, ms(1500, "pause"))
	}
	for range 3 {
		s.Attaches = append(s.Attaches, ms(rapid.SampledFrom([]int{2, 100, 1500}).Draw(t, "within"), "attaches after"))
	}
	for range 7 {
		most := rapid.SampledFrom([]int{3, 3, 60, 1500}).Draw(t, "slow")
		s.Delays = append(s.Delays,
			[2]int{rapid.IntRange(0, most).Draw(t, "before"), rapid.IntRange(0, most).Draw(t, "after")})
	}
	return s
}

// play runs the schedule. It returns the faults that it found and the number of attachments.
func (s handing) play(t *testing.T) (faults []string, attached int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { Settle(10 * time.Second) }) // what is on its way to masters in the end
		masters := memmaster.New(3)
		const ttl = time.Second
		rival := MemLocker(t, masters)
		// so that it raises counters also where it is refused
		first := Take(t, rival, Key, ttl, redlock.Fenced())
		Pass(time.Millisecond)
		Must(t, first.Release(t.Context()))
		Pass(time.Millisecond)
		n := 0
		var mu sync.Mutex
		masters.Behave(func(*single.Request) memmaster.Fate {
			mu.Lock()
			defer mu.Unlock()
			n++
			d := s.Delays[n%len(s.Delays)]
			return memmaster.Fate{
				Before: time.Duration(d[0]) * time.Millisecond, After: time.Duration(d[1]) * time.Millisecond,
			}
		})
		h := &handedHolders{held: make(map[string]*redlock.Lock)}
		opts := []redlock.Option{redlock.Fenced()}
		if s.Renews {
			opts = append(opts, redlock.AutoRenew())
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			for ctx.Err() == nil {
				if lock, err := rival.TryAcquire(ctx, Key, ttl, redlock.Fenced()); err == nil {
					h.took("rival", lock)
					Pass(50 * time.Millisecond)
					_ = lock.Release(ctx)
				}
				Pass(s.Rival)
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				h.mu.Lock()
				h.judgeLocked()
				h.mu.Unlock()
				Pass(7 * time.Millisecond)
			}
		})
		lock, err := MemLocker(t, masters).Acquire(Within(t, 20*time.Second), Key, ttl, opts...)
		pauses := s.Pauses
		if err != nil { // masters may be so slow that nobody ever gets it
			pauses, lock = nil, nil
		} else {
			h.took("first", lock)
		}
		for round, pause := range pauses {
			Pass(pause)
			handed, err := lock.Handover()
			if err != nil {
				break // it was lost before
			}
			won := make(chan *redlock.Lock, len(s.Attaches))
			for i, after := range s.Attaches {
				l := MemLocker(t, masters)
				all.Go(func() {
					Pass(after)
					next, err := l.Attach(ctx, handed, ttl, opts[1:]...)
					if err == nil {
						h.took(fmt.Sprintf("%d attached in round %d", i, round), next)
					}
					won <- next
				})
			}
			lock = nil
			for range s.Attaches {
				if next := <-won; next != nil {
					lock = next
					attached++
				}
			}
			if lock == nil {
				break
			}
		}
		Pass(ttl)
		if lock != nil {
			_ = lock.Release(ctx)
		}
		stop()
		all.Wait()
		faults = h.faults
	})
	return faults, attached
}

func TestHandedOverLocksNeverHaveTwoHolders(t *testing.T) {
	attached, checks := 0, 0
	enough := soak.Or(40, 5000)
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks > enough {
			return
		}
		s := drawHanding(rt)
		faults, n := s.play(t)
		attached += n
		if len(faults) > 0 {
			rt.Fatalf("%+v: %q", s, faults)
		}
	})
	if attached < min(checks, enough)/4 {
		t.Errorf("%d in %d schedules attached: they show little", attached, checks)
	}
}

// Keys and published values may be any bytes, also such as are no text.
func TestAHandoverHasKeysAndValuesOfAnyBytes(t *testing.T) {
	for what, c := range map[string]struct {
		key string
		opt redlock.Option
	}{"value": {"job", redlock.Published("\xff\xfe")}, "key": {"job\xff", redlock.Fenced()}} {
		RunVirtual(t, what, func(t *testing.T) {
			masters := memmaster.New(3)
			a, b := MemLocker(t, masters), MemLocker(t, masters)
			got := handover(t, Take(t, a, c.key, time.Minute, c.opt))
			if got.Key() != c.key {
				t.Errorf("key %q became %q", c.key, got.Key())
			}
			_ = attach(t, b, got, time.Minute).Release(t.Context())
		})
	}
}

// A repair that the old process has sent may arrive late. Then it does not prove that the key was there all the time:
// neither to the new process nor to the old one.
func TestALateRepairOfTheOldProcessDoesNotCount(t *testing.T) {
	for name, handsOver := range map[string]bool{"handed over": true, "not handed over": false} {
		t.Run(name, func(t *testing.T) { lateRepair(t, handsOver) })
	}
}

func lateRepair(t *testing.T, handsOver bool) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { Settle(10 * time.Second) })
		masters := memmaster.New(3)
		a, b, rival := MemLocker(t, masters), MemLocker(t, masters), MemLocker(t, masters)
		const ttl = 20 * time.Second
		lock := Take(t, a, "job", ttl, redlock.Fenced())
		Pass(time.Millisecond) // until m3 has it, too
		masters[2].Forget()
		masters[2].Behave(func(r *single.Request) memmaster.Fate {
			if r.Repair {
				return memmaster.Fate{Before: 6 * time.Second}
			}
			return memmaster.Fate{}
		})
		Must(t, lock.Extend(t.Context(), ttl)) // repairs m3, slowly
		Pass(time.Second / 10)
		// m3 does not answer the new process for a while
		masters[2].Behave(memmaster.Always(memmaster.Fate{Lost: true}))
		next := lock
		if handsOver {
			next = attach(t, b, handover(t, lock), ttl)
		} else {
			Must(t, lock.Extend(t.Context(), ttl))
		}
		Pass(2 * time.Second)
		masters[2].Behave(nil)
		masters[0].Forget()
		other, err := rival.TryAcquire(t.Context(), "job", time.Second, redlock.Fenced())
		Must(t, err)
		Must(t, other.Release(t.Context()))
		Pass(6 * time.Second)
		if err := next.Extend(t.Context(), ttl); err == nil {
			t.Errorf("the attached lock (token %d) is extended although another owner had the key (token %d) in "+
				"between", next.Token(), other.Token())
		}
		_ = next.Release(t.Context())
	})
}

// Two masters get the key by a repair that comes much later. By then the lock is over, and another owner has had it.
func TestARepairInFlightKeepsItsMasterInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
		a, b, d := MemLocker(t, masters), MemLocker(t, masters), MemLocker(t, masters)
		const ttl = 10 * time.Second
		for _, m := range masters[3:] { // a failed attempt of a process that died
			c := &single.Call{
				Request: &single.Request{
					Op: single.Acquire, Keys: []string{Key}, Owner: "dead", TTL: 500 * time.Millisecond,
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			m.Do(ctx, []*single.Call{c})
			cancel()
		}
		began := time.Now()
		at := func(s float64) { Pass(time.Duration(s*float64(time.Second)) - time.Since(began)) }
		lock := Acquire(t, a, ttl, redlock.Fenced())
		at(1)
		for _, m := range masters[3:] {
			once := false
			m.Behave(func(r *single.Request) memmaster.Fate {
				if r.Op == single.Extend && r.Repair && !once {
					once = true
					return memmaster.Fate{Before: 17 * time.Second}
				}
				return memmaster.Fate{}
			})
		}
		Must(t, lock.Extend(t.Context(), ttl))
		at(3)
		Must(t, lock.Extend(t.Context(), ttl))
		at(4)
		for i, m := range masters {
			m.Behave(func(r *single.Request) memmaster.Fate {
				if r.Op == single.Extend {
					return memmaster.Fate{Before: 8500 * time.Millisecond, Lost: i > 0}
				}
				return memmaster.Fate{}
			})
		}
		_ = lock.Extend(t.Context(), ttl)
		at(6)
		h := handover(t, lock)
		at(14)
		between := Acquire(t, d, time.Second, redlock.Fenced())
		Must(t, between.Release(t.Context()))
		at(20)
		on, err := b.Attach(t.Context(), h, ttl)
		if err == nil {
			t.Errorf("attached, token %d, though %d had the lock in between", on.Token(), between.Token())
			_ = on.Release(t.Context())
		}
	})
}

// A Locker whose masters can't have the lock refuses to attach, and leaves the lock to other Lockers. Two cases: a
// Locker of two sets, the new one with other masters, and a Locker with only other masters. Where the sets share a
// quorum, the lock goes over.
func TestHazard109AnAttachThatCannotSucceedLeavesTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		from, to int // the new masters; the old ones are the first three
		attaches bool
	}{
		"joint, other masters": {3, 6, false}, "joint, one in common": {2, 5, false},
		"joint, two in common": {1, 4, true},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := memmaster.New(6)
			lock, h := handedOver(t, masters[:3])
			var asked atomic.Int64
			masters.Behave(func(*single.Request) memmaster.Fate { asked.Add(1); return memmaster.Fate{} })
			l := MemJoint(t, masters[:3], masters[c.from:c.to])
			next, err := l.Attach(t.Context(), h, handedTTL)
			if c.attaches {
				Must(t, err)
				Must(t, next.Release(t.Context()))
				return
			}
			if Is(t, err, redlock.ErrInvalid); asked.Load() != 0 ||
				!strings.Contains(err.Error(), "m1:6379, m2:6379, m3:6379: they are no quorum of this Locker's "+
					"new masters") {
				t.Errorf("%d requests were sent, and the error is %v", asked.Load(), err)
			}
			for _, m := range masters[:3] {
				if m.Owner("job") != lock.Owner() {
					t.Errorf("%s has %q", m.Name(), m.Owner("job"))
				}
			}
			Must(t, attach(t, MemLocker(t, masters[:3]), h, handedTTL).Release(t.Context()))
		})
	}
}

// In the other direction a handover works: a joint Locker's locks are on both sets.
func TestAJointLockerHandsOverToEitherSet(t *testing.T) {
	for _, to := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			masters := memmaster.New(6)
			lock := Acquire(t, MemJoint(t, masters[:3], masters[3:]), handedTTL, redlock.Fenced())
			next := attach(t, MemLocker(t, masters[to:to+3]), handover(t, lock), handedTTL)
			Must(t, next.Release(t.Context()))
		})
	}
}
