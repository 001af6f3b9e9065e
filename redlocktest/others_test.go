package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestAKeyHeldByOthersIsRefusedUntilItsRelease(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		masters[4].Stop() // Lockers go on without it
		masters.Hold(key)
		masters.Hold(key)
		for _, opts := range [][]redlock.Option{
			nil, {redlock.Fenced()}, {redlock.Shared()}, {redlock.Exclusive()}, {redlock.AndKeys("a", "z")},
		} {
			_, err := locker.TryAcquire(t.Context(), key, ttl, opts...)
			is(t, err, redlock.ErrHeld)
		}
		pass(24 * time.Hour)
		masters[4].Start()
		if held := masters[4:].Held(); !slices.Equal(held, []string{key}) {
			t.Errorf("the stopped master has %q", held)
		}
		_, err := locker.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrHeld)
		masters.Release(key)
		must(t, try(t, locker).Release(t.Context()))

		masters.HoldShared(key)
		must(t, try(t, locker, redlock.Shared()).Release(t.Context()))
		_, err = locker.TryAcquire(t.Context(), key, ttl, redlock.Exclusive())
		is(t, err, redlock.ErrHeld)
		masters.Release(key)
		must(t, try(t, locker, redlock.Exclusive()).Release(t.Context()))
	})
}

// Hold takes the lock over. Its token is above the previous holder's and below the next holder's.
func TestHoldRaisesTheToken(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		first := try(t, locker, redlock.Fenced())
		masters.Lose(key)
		masters.Hold(key)
		masters.Release(key)
		second := try(t, masters.Locker(t, redlock.Options{}), redlock.Fenced())
		if second.Token() <= first.Token()+1 {
			t.Errorf("%d comes after %d and one in between", second.Token(), first.Token())
		}
	})
}

// A quorum decides a release. A key that remains on a minority is no lock, so Hold can still take it.
func TestHoldTakesOverAKeyOnAMinorityOfMasters(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		few := try(t, masters[:2].Locker(t, redlock.Options{}))
		must(t, try(t, locker).Release(t.Context())) // the other masters are the quorum
		synctest.Wait()
		masters.Hold(key)
		is(t, few.Verify(t.Context()), redlock.ErrNotHeld)
		_, err := masters[:3].Locker(t, redlock.Options{}).TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrHeld)
	})
}

// recorder is a TB that records failures. Fatalf ends its goroutine.
type recorder struct {
	said     []string
	cleanups []func()
}

func (*recorder) Helper()            {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// run calls do in a new goroutine.
func (r *recorder) run(do func(tb redlocktest.TB)) {
	over := make(chan struct{})
	go func() { defer close(over); do(r) }()
	<-over
}

// end runs the clean-ups.
func (r *recorder) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

// failure calls do in a test and returns the test's failure text.
func failure(do func(tb redlocktest.TB)) string {
	var r recorder
	r.run(func(tb redlocktest.TB) { defer r.end(); do(tb) })
	return strings.Join(r.said, "\n")
}

func TestMisuseFailsTheTestAndSaysWhatWasWrong(t *testing.T) {
	held := func(tb redlocktest.TB) redlocktest.Masters {
		masters := redlocktest.New(tb)
		_, err := masters.Locker(tb, redlock.Options{Identity: "me"}).TryAcquire(context.Background(), key, ttl)
		if err != nil {
			tb.Fatalf("%v", err)
		}
		return masters
	}
	for want, do := range map[string]func(tb redlocktest.TB){
		"option 2 of 2 is nil": func(tb redlocktest.TB) { redlocktest.New(tb, redlocktest.Count(3), nil) },
		"Count is 0":           func(tb redlocktest.TB) { redlocktest.New(tb, redlocktest.Count(0)) },
		"Count is 65":          func(tb redlocktest.TB) { redlocktest.New(tb, redlocktest.Count(65)) },
		"RestartGuard is negative: -1s": func(tb redlocktest.TB) {
			redlocktest.New(tb, redlocktest.RestartGuard(-time.Second))
		},
		"a Locker over no masters": func(tb redlocktest.TB) {
			redlocktest.Masters{}.Locker(tb, redlock.Options{})
		},
		"DriftFactor is -1": func(tb redlocktest.TB) {
			redlocktest.New(tb).Locker(tb, redlock.Options{DriftFactor: -1})
		},
		"has no restart guard": func(tb redlocktest.TB) {
			redlocktest.New(tb).Locker(tb, redlock.Options{RestartGuard: ttl})
		},
		"Advance by -1s": func(tb redlocktest.TB) {
			redlocktest.New(tb).Advance(-time.Second)
		},
		"SlowDown by -1s": func(tb redlocktest.TB) {
			redlocktest.New(tb).SlowDown(-time.Second)
		},
		`Hold("")`: func(tb redlocktest.TB) { redlocktest.New(tb).Hold("") },
		`Hold("redlock:guard")`: func(tb redlocktest.TB) {
			redlocktest.New(tb).HoldShared("redlock:guard")
		},
		`Hold("orders:42"): me has it on`: func(tb redlocktest.TB) { held(tb).Hold(key) },
		`Hold("orders:42"): another kind of lock`: func(tb redlocktest.TB) {
			m := redlocktest.New(tb)
			m.HoldShared(key)
			m.Hold(key)
		},
		`Release("orders:42"), which Hold has not`: func(tb redlocktest.TB) { held(tb).Release(key) },
		`Release("orders:43"), which Hold has not`: func(tb redlocktest.TB) {
			m := redlocktest.New(tb)
			m.Hold(key)
			m.Release("orders:43")
		},
		`Release("orders:42"), which Hold has not t`: func(tb redlocktest.TB) {
			m := redlocktest.New(tb)
			m.Hold(key)
			m.Lose(key)
			m.Release(key)
		},
	} {
		t.Run(want, func(t *testing.T) {
			if said := failure(do); !strings.Contains(said, want) || !strings.HasPrefix(said, "redlocktest: ") {
				t.Errorf("it says %q", said)
			}
		})
	}
	if said := failure(func(tb redlocktest.TB) { m := held(tb); m.Lose(key); m.Hold(key); m.Release(key) }); said !=
		"" {
		t.Errorf("a correct call reports %q", said)
	}
	redlocktest.Masters{}.Advance(time.Second) // nothing to do, and no Locker to advance
	redlocktest.Masters{}.Release(key)
	redlocktest.Masters{}.Hold("")
}

// A test ends at once, whatever locks it leaves behind.
func TestATestThatEndsLeavesNothingRunning(t *testing.T) {
	began, waited := time.Now(), make(chan error, 1)
	said := failure(func(tb redlocktest.TB) {
		masters := redlocktest.New(tb)
		locker := masters.Locker(tb, redlock.Options{RequestTimeout: time.Hour})
		for i, opts := range [][]redlock.Option{nil, {redlock.AutoRenew()}, {redlock.Fenced(), redlock.AutoRenew()}} {
			if _, err := locker.TryAcquire(context.Background(), fmt.Sprint(i), 24*time.Hour, opts...); err != nil {
				tb.Errorf("%v", err)
			}
		}
		go func() {
			_, err := locker.Acquire(context.Background(), "0", 24*time.Hour)
			waited <- err
		}()
		go func() { _, _ = locker.TryAcquire(context.Background(), "slow", 24*time.Hour) }()
		masters[0].Stop()
		masters[1:3].SlowDown(10 * time.Hour)
		masters[3].Fail(errors.New("broken"))
	})
	if said != "" || time.Since(began) > 30*time.Second {
		t.Errorf("after %v: %s", time.Since(began), said)
	}
	is(t, <-waited, redlock.ErrClosed)
}

// With the race detector: all methods at the same time.
func TestAllMethodsAreSafeForConcurrentUse(t *testing.T) {
	masters := redlocktest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var workers, all sync.WaitGroup
	held := 0 // guarded by the distributed lock, which stays valid here
	const turns = 20
	for range 4 {
		locker := masters.Locker(t, redlock.Options{})
		workers.Go(func() {
			for range turns {
				lock, err := locker.Acquire(ctx, key, time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				held++
				_ = lock.Release(context.Background())
			}
		})
	}
	done := make(chan struct{})
	all.Go(func() {
		for {
			m := masters[rand.IntN(2)] // a majority is well
			m.Stop()
			m.SlowDown(time.Millisecond)
			m.FailNext(redlocktest.ReplyError("ERR no"))
			masters.Advance(time.Microsecond)
			masters.Held()
			m.Start()
			m.SlowDown(0)
			select {
			case <-done:
				return
			case <-time.After(100 * time.Microsecond):
			}
		}
	})
	workers.Wait()
	close(done)
	all.Wait()
	if held != 4*turns {
		t.Errorf("it was held %d times, want %d", held, 4*turns)
	}
}

// A master also works with package single alone.
func TestAMasterAnswersWithoutALocker(t *testing.T) {
	m := redlocktest.New(t, redlocktest.Count(1))[0]
	r := single.Request{Op: single.Acquire, Keys: []string{key}, Owner: "a", TTL: ttl}
	c := single.Call{Request: &r}
	m.Do(t.Context(), []*single.Call{&c})
	if c.Err != nil || c.Reply.Outcome != single.Granted || m.Name() != "redlocktest-1" {
		t.Errorf("%+v of %s", c, m.Name())
	}
	m.SlowDown(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	m.Do(ctx, []*single.Call{&c})
	is(t, c.Err, context.Canceled)
	if !c.Unsure() {
		t.Error("nobody knows what became of it")
	}
	m.Stop()
	synctest.Test(t, func(t *testing.T) {
		m := redlocktest.New(t)[0]
		m.SlowDown(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		m.Do(context.WithoutCancel(ctx), []*single.Call{&c}) // has no deadline either
		if took := time.Since(began); c.Err != nil || took != time.Hour {
			t.Errorf("%v after %v", c.Err, took)
		}
		m.Do(onlyDeadline{ctx}, []*single.Call{&c})
		if took := time.Since(began); !errors.Is(c.Err, os.ErrDeadlineExceeded) || took != time.Hour {
			t.Errorf("%v after %v, and the deadline has passed", c.Err, took)
		}
	})
}

// onlyDeadline is a context with a deadline and no Done channel, as a Locker's lanes use it.
type onlyDeadline struct{ context.Context }

func (onlyDeadline) Done() <-chan struct{} { return nil }

func TestMessagesReachTheirSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := redlocktest.New(t)[0]
		ask := func(r single.Request) {
			t.Helper()
			r.Keys, r.TTL = []string{key}, ttl
			c := single.Call{Request: &r}
			m.Do(t.Context(), []*single.Call{&c})
			must(t, c.Err)
		}
		var mu sync.Mutex
		var news []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			news = append(news, what)
		}
		listen := func(waiter string) func() {
			return m.Listen(single.ChannelPrefix+waiter, func() { note(waiter + " is ready") }, func(message string) {
				note(waiter + " is told of " + message)
			})
		}
		told := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(news)
			if !slices.Equal(news, want) {
				t.Errorf("%q, want %q", news, want)
			}
			news = nil
		}
		turn := func() { // the key passes from a to b, which waits as w1
			t.Helper()
			ask(single.Request{Op: single.Acquire, Owner: "a"})
			ask(single.Request{Op: single.Acquire, Owner: "b", Waiter: "w1"})
			ask(single.Request{Op: single.Release, Owner: "a", Reserve: time.Second})
			ask(single.Request{Op: single.Leave, Waiter: "w1", Reserve: time.Second})
		}
		stop := listen("w1")
		told("w1 is ready")
		defer listen("w2")()
		told("w2 is ready")
		turn()
		told("w1 is told of " + key)
		redlocktest.Masters{m}.Hold(key)
		ask(single.Request{Op: single.Acquire, Owner: "b", Waiter: "w1"})
		m.Stop()
		redlocktest.Masters{m}.Release(key)
		defer listen("w3")()
		told()
		m.Start()
		told("w1 is ready", "w2 is ready", "w3 is ready")
		stop()
		turn()
		told()
	})
}

func TestNewWithoutATestSaysSo(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "New without a test") {
			t.Errorf("it panics with %q", said)
		}
	}()
	redlocktest.New(nil)
}

func TestAMasterIsPrintedAsItsName(t *testing.T) {
	if got := fmt.Sprintf("%v %+v", redlocktest.New(t, redlocktest.Count(2)), redlocktest.New(t)[0]); got !=
		"[redlocktest-1 redlocktest-2] redlocktest-1" {
		t.Error(got)
	}
}
