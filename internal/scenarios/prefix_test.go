package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestBadPrefixesAreRefused(t *testing.T) {
	const maxPrefixSize, maxKeySize = 1 << 10, 64 << 10
	long := strings.Repeat("p", maxPrefixSize)
	for what, prefix := range map[string]string{
		"too long": long + "p", "reserved": "redlock:queue:", "all that is reserved": "redlock:",
	} {
		_, err := redlock.New(NewFakes(1).Masters(), redlock.Options{Prefix: prefix})
		if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), "Options.Prefix") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, c := range []struct {
		prefix, key string
		ok          bool
	}{
		{long, strings.Repeat("k", maxKeySize-len(long)), true},
		{long, strings.Repeat("k", maxKeySize-len(long)+1), false},
		{"red", "lock:free", false}, // with which the whole is reserved
		{"red", "lock", true},
		{"a:", "redlock:free", false}, // a key is what it is without a Prefix
		{"a:", "", false},
		{"\x00{", "}\xff", true},
	} {
		l, err := redlock.New(NewFakes(1).Masters(), redlock.Options{Prefix: c.prefix})
		Must(t, err)
		lock, acquired := l.TryAcquire(t.Context(), c.key, time.Minute)
		if errors.Is(acquired, redlock.ErrInvalid) == c.ok {
			t.Errorf("%.20q + %.20q: %v", c.prefix, c.key, acquired)
		}
		_, err = l.Holder(t.Context(), c.key)
		if errors.Is(err, redlock.ErrInvalid) == c.ok {
			t.Errorf("Holder of %.20q + %.20q: %v", c.prefix, c.key, err)
		}
		if acquired == nil {
			if got := lock.Key(); got != c.key {
				t.Errorf("the key %.20q became %.20q", c.key, got)
			}
			Give(t, lock)
		}
		CloseLocker(t, l)
	}
}

// names is one key on the masters, and the Prefixes of Lockers that use it by the rest of it.
type names struct {
	full   string
	splits []int
}

// Only the name on the masters identifies a lock. If Prefix and key of two Lockers make the same name, the Lockers
// exclude each other, see the same holder and order their tokens. Lockers with the same key and another Prefix do not
// affect each other.
func TestALockIsItsNameOnTheMasters(t *testing.T) {
	checks, enough := 0, soak.Or(60, 5000)
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks > enough {
			return
		}
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab:{}é")), 1, 6, -1)
		key := text.Draw(rt, "key")
		prefixes := rapid.SliceOfNDistinct(text, 2, 3, func(s string) string { return s }).Draw(rt, "prefixes")
		var all []names
		for _, p := range prefixes {
			all = append(all, names{p + key, []int{0, len(p), rapid.IntRange(0, len(p+key)-1).Draw(rt, "split")}})
		}
		steps := rapid.SliceOfN(rapid.IntRange(0, 9999), 10, 40).Draw(rt, "steps")
		var fault string
		synctest.Test(t, func(t *testing.T) { fault = playNames(t, all, steps) })
		if fault != "" {
			rt.Fatalf("%+v: %s", all, fault)
		}
	})
}

// playNames lets Lockers of all names take and release locks, and returns the first fault.
func playNames(t *testing.T, all []names, steps []int) string {
	t.Helper()
	masters := redlocktest.New(t, redlocktest.Count(3))
	lockers := make(map[[2]int]*redlock.Locker)
	for i, n := range all {
		for j, at := range n.splits {
			lockers[[2]int{i, j}] = masters.Locker(t, redlock.Options{Prefix: n.full[:at]})
		}
	}
	held, tokens := make([]*redlock.Lock, len(all)), make([]uint64, len(all))
	for _, step := range steps {
		i, j := step%len(all), step/10%3
		n := all[i]
		key, l := n.full[n.splits[j]:], lockers[[2]int{i, j}]
		if h, err := l.Holder(t.Context(), key); err != nil || h.Held != (held[i] != nil) || h.Held &&
			h.ID != held[i].ID() {
			return fmt.Sprintf("Holder of %q behind %q: %+v, %v; it is held: %t", key, n.full[:n.splits[j]], h, err,
				held[i] != nil)
		}
		if step/100%2 == 0 && held[i] != nil {
			if err := held[i].Release(t.Context()); err != nil {
				return err.Error()
			}
			held[i] = nil
			synctest.Wait()
			continue
		}
		lock, err := l.TryAcquire(t.Context(), key, time.Hour, redlock.Fenced())
		synctest.Wait()
		switch {
		case held[i] != nil && !errors.Is(err, redlock.ErrHeld):
			return fmt.Sprintf("%q behind %q is held, and was taken: %v", key, n.full[:n.splits[j]], err)
		case held[i] == nil && err != nil:
			return fmt.Sprintf("%q behind %q is free: %v", key, n.full[:n.splits[j]], err)
		case err == nil && lock.Token() <= tokens[i]:
			return fmt.Sprintf("token %d after %d", lock.Token(), tokens[i])
		case err == nil && lock.Key() != key:
			return fmt.Sprintf("the key %q became %q", key, lock.Key())
		case err == nil:
			held[i], tokens[i] = lock, lock.Token()
		}
	}
	return ""
}

// unheard is a Master that can't send notifications.
type unheard struct{ redlock.Master }

// A waiter that uses one name of a lock is notified when the lock is released under another name. Waiters for both
// names are in the same queue.
func TestWaitersAreNotifiedByKeyWithAndWithoutPrefix(t *testing.T) {
	for name, c := range map[string]struct {
		holder, waiter string // prefixes
		deaf           bool
	}{
		"with a Prefix by one without": {"", "a:", false},
		"without by one with":          {"a:", "", false},
		"with another split":           {"a:b", "a", false},
		"by nobody":                    {"", "a:", true},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			const full = "a:b:c"
			masters := redlocktest.New(t, redlocktest.Count(3))
			waiter := masters.Locker(t, redlock.Options{Prefix: c.waiter})
			if c.deaf {
				var all []redlock.Master
				for _, m := range masters {
					all = append(all, unheard{m})
				}
				l := LockerOver(t, all, redlock.Options{Prefix: c.waiter, Clock: masters.Clock()})
				waiter = l
			}
			held := Take(t, masters.Locker(t, redlock.Options{Prefix: c.holder}), full[len(c.holder):], time.Hour)
			w := Wait(t, t.Context(), waiter, full[len(c.waiter):], time.Hour)
			Pass(time.Minute + 7*time.Millisecond) // it tries seldom by now
			began := time.Now()
			Give(t, held)
			<-w.Ended
			Must(t, w.Err)
			if took := w.At.Sub(began); took == 0 == c.deaf {
				t.Errorf("the waiter had the lock after %v", took)
			}
			Give(t, w.Lock)
		})
	}
}

// A waiter for several keys moves to the queue of the key that is held, and leaves the queue of a free key.
func TestAWaiterForSeveralKeysWithAPrefixQueuesForTheHeldKey(t *testing.T) {
	for _, prefix := range []string{"", "a:"} {
		InMemory(t, func(t *testing.T, masters redlocktest.Masters, _ *redlock.Locker) {
			l := masters.Locker(t, redlock.Options{Prefix: prefix})
			held := Take(t, masters.Locker(t, redlock.Options{}), prefix+"y", time.Hour)
			both := Wait(t, t.Context(), l, "x", time.Hour, redlock.AndKeys("y"))
			synctest.Wait()
			began := time.Now()
			Give(t, Take(t, l, "x", time.Hour, redlock.Fenced()))
			if took := time.Since(began); took > 0 {
				t.Errorf("%q: it waited %v behind one that waits for another key", prefix, took)
			}
			_, err := l.TryAcquire(t.Context(), "y", time.Hour, redlock.AndKeys("x"))
			q, ok := errors.AsType[*redlock.QuorumError](err)
			if !ok || q.Key != "x,y" || !slices.ContainsFunc(q.Nodes, func(n redlock.NodeResult) bool {
				return n.Key == "y"
			}) {
				t.Errorf("%q: %+v", prefix, err)
			}
			Give(t, held)
			<-both.Ended
			Must(t, both.Err)
			Give(t, both.Lock)
		})
	}
}

// marker is a Prefix that must be seen on masters only.
const marker = "<prefix>"

// seen collects everything that a Locker shows.
type seen struct {
	mu   sync.Mutex
	text []string
	kind map[redlock.EventKind]bool
}

func (s *seen) add(what any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, fmt.Sprintf("%+v", what))
	if e, ok := what.(redlock.Event); ok {
		s.kind[e.Kind] = true
	}
}

// Only the masters see the Prefix. No error, no event and no key of a lock shows it.
func TestOnlyMastersSeeThePrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &seen{kind: make(map[redlock.EventKind]bool)}
		masters := redlocktest.New(t, redlocktest.Count(3))
		opts := redlock.Options{Prefix: marker, Observer: func(e redlock.Event) { s.add(e) }}
		l, other := masters.Locker(t, opts), masters.Locker(t, redlock.Options{Prefix: marker})
		showAll(t, s, masters, l, other)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, text := range s.text {
			if strings.Contains(text, marker) {
				t.Error(text)
			}
		}
		for kind := redlock.EventKind(0); kind.String() != "unknown"; kind++ {
			if !s.kind[kind] && kind.String() != "lapsed" {
				t.Errorf("there was no event %v", kind)
			}
		}
	})
}

// showAll makes l show everything that it can show about keys.
func showAll(t *testing.T, s *seen, masters redlocktest.Masters, l, other *redlock.Locker) {
	t.Helper()
	ctx := t.Context()
	fails := func(err error) {
		t.Helper()
		if s.add(err); err == nil {
			t.Error("no error to look at")
		}
	}
	lock := Take(t, l, "k", 10*time.Second, redlock.AndKeys("m"))
	if held := masters.Held(); !slices.Equal(held, []string{marker + "k", marker + "m"}) {
		t.Errorf("the masters have %q", held)
	}
	for _, what := range []any{lock.Key(), lock.Keys(), l.Held(), lock} {
		if _, isLock := what.(*redlock.Lock); !isLock {
			s.add(what)
		}
	}
	_, err := other.TryAcquire(ctx, "z", time.Minute, redlock.AndKeys("m"))
	fails(err)
	_, err = l.TryAcquire(lock.Context(ctx), "k", time.Minute)
	fails(err) // ErrAlreadyHeld
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = l.Acquire(short, "k", time.Minute)
	fails(err) // gave up
	masters.Fail(ReplyError("NOPERM no right"))
	_, err = l.Acquire(ctx, "complained", time.Minute, redlock.MaxOutage(time.Second))
	fails(err)
	masters.Fail(nil)
	Must(t, lock.Verify(ctx))
	Must(t, lock.Extend(ctx, time.Minute))
	masters.Lose(marker+"k", marker+"m")
	fails(lock.Verify(ctx))
	fails(lock.Extend(ctx, time.Minute))
	fails(lock.Release(ctx))
	lost := Take(t, l, "k", 3*time.Second, redlock.AutoRenew())
	masters.Lose(marker + "k")
	<-lost.Done()
	fails(lost.Err())
	fails(lost.Release(ctx))

	held := Take(t, other, "k", time.Minute)
	first, second := Wait(t, ctx, l, "k", time.Minute), Wait(t, ctx, l, "k", time.Minute)
	synctest.Wait()
	Give(t, held)
	for range 2 { // whichever was first passes it on to the other
		select {
		case <-first.Ended:
			Give(t, first.Lock)
			first.Ended = nil
		case <-second.Ended:
			Give(t, second.Lock)
			second.Ended = nil
		}
	}

	fenced := Take(t, l, "k", time.Minute, redlock.Fenced())
	h, err := fenced.Handover()
	Must(t, err)
	s.add(h)
	s.add(h.Key())
	next, err := other.Attach(ctx, Sent(t, h), time.Minute)
	Must(t, err)
	s.add(next.Keys())
	_, err = l.Attach(ctx, h, time.Minute)
	fails(err)
	_, err = l.Holder(ctx, "redlock:x")
	fails(err)
	holder, err := l.Holder(ctx, "k")
	Must(t, err)
	s.add(holder)
	Give(t, next)
	synctest.Wait() // until no master has it, so that none refuses what follows

	kept := Take(t, l, "k", time.Minute)
	synctest.Wait()   // until all masters have it, not only a quorum
	masters[0].Stop() // which does not confirm
	Give(t, kept)
	Pass(10 * time.Second)
	masters[0].Start()
	Pass(10 * time.Second)
	masters[:2].Stop()
	_, err = l.TryAcquire(ctx, "k", time.Minute)
	fails(err)
	_, err = l.Holder(ctx, "k")
	fails(err)
	masters[:2].Start()
	Pass(time.Minute)
}

func TestAHandoverIsForTheSamePrefix(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, without *redlock.Locker) {
		with := masters.Locker(t, redlock.Options{Prefix: "a:"})
		lock := Take(t, with, "b", time.Minute, redlock.Fenced())
		h, err := lock.Handover()
		Must(t, err)
		_, err = without.Attach(t.Context(), Sent(t, h), time.Minute)
		if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), "Options.Prefix") ||
			!strings.Contains(err.Error(), `"a:"`) {
			t.Errorf("another Prefix: %v", err)
		}
		next, err := masters.Locker(t, redlock.Options{Prefix: "a:"}).Attach(t.Context(), Sent(t, h), time.Minute)
		Must(t, err) // nothing was sent before
		if next.Key() != "b" {
			t.Errorf("the key b became %q", next.Key())
		}
		Give(t, next)
	})
}

// Other implementations know the lock by the name that it has on the masters.
func TestAPrefixIsPartOfTheKeyThatServersHave(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l := Dial(t, servers, redlock.Options{Prefix: "orders:"}) // key is orders:42
	SetByHand(t, servers, "by hand", LongTTL)
	Is(t, Try(t, l, "42"), redlock.ErrHeld)
	for _, s := range servers {
		releaseByHand(t, s, "by hand")
	}
	// A request of the refused attempt may arrive at a master after the release by hand. The master would then refuse
	// the next attempt.
	Must(t, l.Close(Within(t, Promptly)))
	l = Dial(t, servers, redlock.Options{Prefix: "orders:"})
	lock := Take(t, l, "42", LongTTL, redlock.Published("here"))
	redistest.Eventually(t, Promptly, func() bool { return Holders(t, servers, lock.Owner()) == 3 },
		"every master to have it")
	if h, err := Dial(t, servers, redlock.Options{}).Holder(t.Context(), Key); err != nil || h.Value != "here" ||
		h.ID != lock.ID() {
		t.Errorf("without a Prefix, Holder returned %+v, %v", h, err)
	}
	for _, s := range servers {
		if n := s.Client().Exists(t.Context(), single.CounterKey(Key)).Val(); n != 1 {
			t.Errorf("%d counters", n)
		}
	}
	Give(t, lock)
	Nowhere(t, servers, Key)
}
