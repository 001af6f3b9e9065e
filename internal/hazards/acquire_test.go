package hazards_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// The hazards are mistakes that other lock libraries have made. Where this project can make the mistake on purpose
// (a mutant, see TestTheTestsNoticeMutants, or a master that misbehaves), it shows that the test would notice.

// If the context of an attempt has expired, the clean-up uses another context.
func TestHazard01CleanupSurvivesAnExpiredContext(t *testing.T) {
	servers := redistest.StartN(t, 5)
	const timeout = 2 * time.Second
	l := Dial(t, servers, redlock.Options{RequestTimeout: timeout})
	Must(t, Acquire(t, l, LongTTL).Release(t.Context())) // connections are made
	for _, s := range servers[:3] {
		Must(t, s.Pause())
	}
	began := time.Now()
	_, err := l.Acquire(Within(t, 30*time.Millisecond), Key, LongTTL)
	Is(t, err, context.DeadlineExceeded)
	if took := time.Since(began); took > timeout/2 {
		t.Errorf("the caller got its error after %v, its context had 30ms", took)
	}
	for _, s := range servers[:3] {
		Must(t, s.Resume())
	}
	redistest.Eventually(t, Promptly, func() bool { return Holders(t, servers, "") == 0 },
		"every key of the failed attempt to be removed, long before its ttl")
}

// lateGrant wins an acquisition while one master is stopped, releases the lock, and then continues the stopped
// master. When all requests have ended, it returns the key's value on that master.
func lateGrant(t *testing.T) string {
	t.Helper()
	servers := redistest.StartN(t, 5)
	l, err := redlock.Dial(t.Context(), URLs(servers), redlock.Options{RequestTimeout: Promptly})
	Must(t, err)
	Give(t, Take(t, l, "warm", LongTTL)) // connections are made
	sets := func() int { return Calls(t, servers[4:], "set") }
	redistest.Eventually(t, Promptly, func() bool { return sets() == 1 }, "every master to have been used")
	Must(t, servers[4].Pause())
	lock := Acquire(t, l, LongTTL)
	Must(t, lock.Release(t.Context()))
	Must(t, servers[4].Resume())
	redistest.Eventually(t, Promptly, func() bool { return sets() == 2 }, "the late acquire to land")
	CloseLocker(t, l) // waits for all that is in flight, and for the release of all that landed
	return Value(t, servers[4])
}

// If a vote arrives after its round was decided, the Locker still reads it and releases the key.
func TestHazard02StragglersAreReleasedWhenTheyLand(t *testing.T) {
	if left := lateGrant(t); left != "" {
		t.Errorf("the master that was stopped keeps the key for %q", left)
	}
}

// overtaken lets one master perform an acquisition later than all others, releases the lock before that, and returns
// how many keys are left in the end.
func overtaken(t *testing.T) (left int) {
	t.Helper()
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: time.Second})
		Far(t, l, masters)
		masters[4].Behave(func(r *single.Request) Act {
			if r.Op == single.Acquire {
				return Act{Before: 100 * time.Millisecond, After: 2 * time.Millisecond}
			}
			return Act{Before: 2 * time.Millisecond, After: 2 * time.Millisecond}
		})
		lock := Acquire(t, l, LongTTL)
		Must(t, lock.Release(t.Context()))
		Settle(2 * time.Second)
		left = masters.Holders("")
	})
	return left
}

// A release is not sent before its own acquisition has been answered.
func TestHazard03AReleaseNeverOvertakesItsAcquire(t *testing.T) {
	if left := overtaken(t); left != 0 {
		t.Errorf("the key is left on %d masters", left)
	}
}

// One hung master does not slow down anything, with clients of default settings.
func TestHazard04OneHungMasterBlocksNeitherAcquireNorRelease(t *testing.T) {
	servers := redistest.StartN(t, 5)
	l, err := redlock.New(WrapEach(servers, func(_ int, s *redistest.Server) redlock.Master {
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		m, err := redlock.NewMaster(client)
		Must(t, err)
		return m
	}), redlock.Options{})
	Must(t, err)
	t.Cleanup(func() { CloseLocker(t, l) })
	Must(t, servers[2].Pause())
	for range 20 {
		began := time.Now()
		lock := Acquire(t, l, LongTTL)
		Must(t, lock.Extend(t.Context(), LongTTL))
		Must(t, lock.Release(t.Context()))
		if took := time.Since(began); took > time.Second { // the hung master alone would take that
			t.Errorf("a cycle took %v", took)
		}
	}
	Must(t, servers[2].Resume())
}

// twice is a master with a client that retries: it performs every batch twice and loses the first reply.
type twice struct{ redlock.Master }

func (m twice) Do(ctx context.Context, batch []*single.Call) {
	m.Master.Do(ctx, batch)
	m.Master.Do(ctx, batch)
}

// A retried acquire recognises its own owner.
func TestHazard05ARetriedAcquireIsNotRefusedByItself(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l := Wrapped(t, servers, redlock.Options{}, func(_ int, m redlock.Master) redlock.Master { return twice{m} })
	lock, err := l.TryAcquire(t.Context(), Key, LongTTL)
	Must(t, err)
	Must(t, lock.Extend(t.Context(), LongTTL))
	if n := Holders(t, servers, lock.Owner()); n < 2 {
		t.Errorf("%d masters have the key", n)
	}
	_, err = l.TryAcquire(t.Context(), Key, LongTTL)
	Is(t, err, redlock.ErrHeld) // others are refused all the same
	// The client sends each release twice. The second finds nothing, and its reply is the one the Locker sees.
	Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
}

// slowWin wins a lock of 50 ms by a quorum that answers after 48.5 ms, when its validity is over.
func slowWin(t *testing.T) (left int, err error) {
	t.Helper()
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 49 * time.Millisecond})
		masters.Behave(On(single.Acquire, Act{After: 48500 * time.Microsecond}))
		_, err = l.TryAcquire(t.Context(), Key, 50*time.Millisecond)
		masters.Behave(nil)
		Pass(time.Millisecond)
		left = masters.Holders("")
		Settle(time.Second)
	})
	return left, err
}

// A quorum whose validity is used up is a loss, and its keys are released.
func TestHazard06AWinWithoutValidityIsALoss(t *testing.T) {
	left, err := slowWin(t)
	OnlyIs(t, err, redlock.ErrExpired)
	if left != 0 {
		t.Errorf("the key was left on %d masters", left)
	}
}

// An even split is no refusal. If the other half keeps its keys, the acquisition is refused within the request
// timeout.
func TestHazard07AnEvenSplitGrantsNoLockAndIsResolved(t *testing.T) {
	Bubble(t, 4, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 100 * time.Millisecond})
		masters[:2].Take("other", time.Second)
		began := time.Now()
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrHeld)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the refusal took %v", took)
		}
		lock, err := l.Acquire(Within(t, 2*time.Second), Key, LongTTL)
		Must(t, err)
		Must(t, lock.Release(t.Context()))
	})
}

// forgetful is a master that confirms releases without performing them.
type forgetful struct{ *Fake }

func (m forgetful) Do(ctx context.Context, batch []*single.Call) {
	var rest []*single.Call
	for _, c := range batch {
		if c.Request.Op == single.Release {
			c.Reply.Outcome, c.Sent = single.Granted, true
			continue
		}
		rest = append(rest, c)
	}
	m.Fake.Do(ctx, rest)
}

// secondAttempt makes a first attempt that gets two masters of five, and then a second attempt that needs these two
// for a quorum.
func secondAttempt(t *testing.T, wrap func(*Fake) redlock.Master) (err error) {
	t.Helper()
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		voters := WrapEach(masters, func(_ int, m *Fake) redlock.Master { return wrap(m) })
		l := LockerOver(t, voters, redlock.Options{Clock: NewClock()})
		masters[2].Take("other", 100*time.Millisecond)
		masters[3].Take("other", LongTTL)
		masters[4].Take("other", LongTTL)
		var lock *redlock.Lock
		if lock, err = l.Acquire(Within(t, LongTTL/2), Key, LongTTL); err == nil {
			err = lock.Release(t.Context())
		}
		Settle(2 * LongTTL)
	})
	return err
}

// A failed attempt releases its keys, so that they do not refuse the next attempt.
func TestHazard08ARetryIsNotBlockedByItsOwnKey(t *testing.T) {
	Must(t, secondAttempt(t, func(m *Fake) redlock.Master { return m }))
	if err := secondAttempt(t, func(m *Fake) redlock.Master { return forgetful{m} }); err == nil {
		t.Error("nor is it when nothing is released: this test shows nothing")
	}
}

// Owners are compared in full.
func TestHazard09OwnersAreComparedInFull(t *testing.T) {
	servers, l := Started(t, 3)
	for _, change := range []func(owner string) string{
		func(o string) string { return o + "0" },
		func(o string) string { return o[:len(o)-1] },
		strings.ToUpper,
	} {
		lock := Acquire(t, l, LongTTL)
		foreign := change(lock.Owner())
		if foreign == lock.Owner() {
			continue // no letter in it
		}
		Everywhere(t, servers, lock)
		TellAll(t, servers, "set", Key, foreign, "px", LongTTL.Milliseconds())
		Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
		Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
		if n := Holders(t, servers, foreign); n != 3 {
			t.Errorf("%q has %d masters left after the release by %q", foreign, n, lock.Owner())
		}
		TellAll(t, servers, "del", Key)
	}
}

// Orphans on a minority of masters keep no owner out.
func TestHazard10OrphansOnAMinorityDoNotBlock(t *testing.T) {
	servers, l := Started(t, 5)
	SetByHand(t, servers[:2], "orphan", LongTTL)
	lock, err := l.TryAcquire(t.Context(), Key, LongTTL)
	Must(t, err)
	Must(t, lock.Release(t.Context()))
	if n := Holders(t, servers, "orphan"); n != 2 {
		t.Errorf("another owner's key is left on %d masters, want 2", n)
	}
}

// Goroutines that acquire the same lock get separate holds. Each hold has a separate end, and an owner value that no
// other hold has at the same time. (A lock that was passed on inside the process keeps the owner value of the hold
// before it, which is over.)
func TestHazard13ConcurrentHoldsShareNothing(t *testing.T) {
	_, l := Started(t, 3)
	var inside, most atomic.Int32
	var owners sync.Map
	Concurrently(8, func(int) {
		for range 5 {
			lock, err := l.Acquire(t.Context(), Key, LongTTL)
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			if _, used := owners.LoadOrStore(lock.Owner(), true); used {
				t.Errorf("owner %s belongs to another lock", lock.Owner())
			}
			if err := lock.Err(); err != nil {
				t.Errorf("another owner's release ended this hold: %v", err)
			}
			inside.Add(-1)
			owners.Delete(lock.Owner())
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	if most.Load() != 1 {
		t.Errorf("%d holders at once", most.Load())
	}
}

// The masters count the ttl, so the date on this machine does not matter.
func TestHazard14ValidityIgnoresTheWallClock(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, date := range []time.Time{time.Unix(0, 0), time.Now().Add(100 * 365 * 24 * time.Hour)} {
		l := Dial(t, servers, redlock.Options{Clock: Dated(func() time.Time { return date })})
		lock := Acquire(t, l, LongTTL)
		Everywhere(t, servers, lock)
		for _, s := range servers {
			if left := s.Client().PTTL(t.Context(), Key).Val(); left > LongTTL || left < LongTTL-Promptly {
				t.Errorf("in %d the key lives for %v, want %v", date.Year(), left, LongTTL)
			}
		}
		Must(t, lock.Release(t.Context()))
		redistest.Eventually(t, Promptly, func() bool { return Holders(t, servers, "") == 0 }, "the keys to be removed")
	}
}

// Owners have 128 random bits.
func TestHazard15OwnersAre128RandomBits(t *testing.T) {
	masters := NewFakes(1)
	l := masters.Locker(t, redlock.Options{})
	const n = 256
	var ones [128]int
	seen := make(map[string]bool)
	for i := range n {
		lock, err := l.TryAcquire(t.Context(), strconv.Itoa(i), LongTTL)
		Must(t, err)
		_, owner, _ := strings.Cut(lock.Owner(), "/") // behind whose it is
		if len(owner) != 32 || seen[owner] {
			t.Fatalf("owner %q has %d digits, seen before: %t", owner, len(owner), seen[owner])
		}
		seen[owner] = true
		for half := range 2 {
			word, err := strconv.ParseUint(owner[16*half:16*half+16], 16, 64)
			Must(t, err)
			for ; word != 0; word &= word - 1 {
				ones[64*half+bits.TrailingZeros64(word)]++
			}
		}
		Must(t, lock.Release(t.Context()))
	}
	// A fair bit is set in 128 of 256 owners, give or take 8. Ten times that deviation practically never happens.
	for bit, set := range ones {
		if set < n/2-80 || set > n/2+80 {
			t.Errorf("bit %d is set in %d of %d owners", bit, set, n)
		}
	}
}

// Owner values and passwords stay out of every message.
func TestHazard34ErrorsShowNoSecrets(t *testing.T) {
	servers := redistest.StartN(t, 3, redistest.WithPassword("hunter2"))
	l := Dial(t, servers, redlock.Options{RequestTimeout: time.Second})
	lock := Acquire(t, l, LongTTL)
	_, held := l.TryAcquire(t.Context(), Key, LongTTL)
	Is(t, held, redlock.ErrHeld)
	for _, s := range servers {
		Must(t, s.Kill())
	}
	_, down := l.TryAcquire(t.Context(), Key, LongTTL)
	Is(t, down, redlock.ErrNoQuorum)
	released := lock.Release(t.Context())
	Is(t, released, redlock.ErrNoQuorum)
	for _, s := range servers {
		Must(t, s.Restart())
	}
	wrong := make([]string, len(servers))
	for i, s := range servers {
		wrong[i] = "redis://:hunter23@" + s.Addr()
	}
	stranger, err := redlock.Dial(t.Context(), wrong, redlock.Options{})
	Must(t, err)
	_, denied := stranger.TryAcquire(t.Context(), Key, LongTTL)
	Is(t, denied, redlock.ErrNoQuorum)
	_ = stranger.Close(Within(t, time.Millisecond))
	_, bad := redlock.Dial(t.Context(), []string{"redis://:hunter2@host:port"}, redlock.Options{})
	Is(t, bad, redlock.ErrInvalid)
	for _, err := range []error{held, down, released, denied, bad} {
		if text := fmt.Sprintf("%v %+v", err, errors.Unwrap(err)); strings.Contains(text, "hunter2") ||
			strings.Contains(text, lock.Owner()) {
			t.Errorf("a secret is shown: %s", text)
		}
	}
}
