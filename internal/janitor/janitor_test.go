package janitor_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/growth"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errSilent = errors.New("no answer")

// masters give every request the same error, or none.
type masters struct {
	began time.Time

	mu    sync.Mutex
	err   error
	down  bool // the first, until one has answered
	asked int
	keys  []string // that they were asked for
	times []time.Time
	told  []janitor.Kind
}

func (m *masters) janitor(n int) *janitor.Janitor {
	return janitor.New(janitor.Config{
		Masters: n,
		Now:     func() time.Duration { return time.Since(m.began) },
		After:   func(d time.Duration, f func()) schedule.Timer { return time.AfterFunc(d, f) },
		Send: func(c *lane.Call) {
			m.mu.Lock()
			m.asked++
			m.keys = append(m.keys, c.Request.Keys[0])
			m.times = append(m.times, time.Now())
			c.Err = m.err
			m.down = m.down && m.err != nil
			m.mu.Unlock()
			c.To.Ended(c)
		},
		Down: func(i int) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.down && i == 0
		},
		Timeout: func(time.Duration) time.Duration { return time.Second },
		Lapsed:  func(now, ttl time.Duration) time.Duration { return now + ttl },
		Observe: func(kind janitor.Kind, _ int, _ *single.Request) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.told = append(m.told, kind)
		},
	})
}

// answer sets the masters' answer from now on, and resets the counts.
func (m *masters) answer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err, m.asked = nil, 0
}

// seen returns how many requests the masters got, and which events were observed.
func (m *masters) seen() (asked int, told []janitor.Kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked, slices.Clone(m.told)
}

func release(master int) *lane.Call {
	request := &single.Request{Op: single.Release, Keys: []string{"key"}, Owner: "owner", TTL: time.Minute}
	return &lane.Call{Call: single.Call{Request: request, Err: errSilent}, Index: master}
}

// settle waits until just before the next sweep.
func settle(intervals int) {
	<-time.After(time.Duration(intervals)*janitor.Interval + janitor.Interval/2)
	synctest.Wait()
}

func TestAMasterIsAskedUntilItConfirms(t *testing.T) {
	for unsure, confirmations := range map[bool]int{false: 1, true: 2} {
		synctest.Test(t, func(t *testing.T) {
			m := &masters{began: time.Now(), err: errSilent}
			j := m.janitor(1)
			defer j.Close()
			j.Adopt(release(0), unsure, time.Minute, 0)
			settle(10)
			if asked, _ := m.seen(); asked != 10 || j.Pending() != 1 {
				t.Errorf("unsure %t: asked %d times in ten intervals, %d pending", unsure, asked, j.Pending())
			}
			m.answer()
			settle(10)
			asked, told := m.seen()
			if asked != confirmations || j.Pending() != 0 {
				t.Errorf("unsure %t: asked %d times since the master answers, %d pending", unsure, asked, j.Pending())
			}
			if want := []janitor.Kind{janitor.Adopted, janitor.Settled}; !slices.Equal(told, want) {
				t.Errorf("observed %v, want %v", told, want)
			}
		})
	}
}

func TestAReleaseLapsesWithItsTTLUnlessItsKeyMayStillBeSet(t *testing.T) {
	for unsure, left := range map[bool]int{false: 0, true: 1} {
		synctest.Test(t, func(t *testing.T) {
			m := &masters{began: time.Now(), err: errSilent}
			j := m.janitor(1)
			defer j.Close()
			j.Adopt(release(0), unsure, time.Minute, 0)
			<-time.After(time.Hour)
			if j.Pending() != left {
				t.Errorf("unsure %t: %d pending after an hour, want %d", unsure, j.Pending(), left)
			}
		})
	}
}

// After its return a master keeps a key for an interval at most, although the masters' releases fail at different
// moments. A few sweeps take them all.
func TestEachMasterIsAskedAgainWithinAnInterval(t *testing.T) {
	for _, apart := range []time.Duration{100 * time.Microsecond, janitor.Interval / 5, janitor.Interval * 9 / 10} {
		synctest.Test(t, func(t *testing.T) {
			m := &masters{began: time.Now()}
			var adopted []time.Time
			j := m.janitor(5)
			defer j.Close()
			for i := range 5 {
				adopted = append(adopted, time.Now())
				j.Adopt(release(i), false, time.Minute, 0)
				<-time.After(apart)
			}
			settle(2)
			m.mu.Lock()
			asked := slices.Clone(m.times)
			m.mu.Unlock()
			if len(asked) != 5 || j.Pending() != 0 {
				t.Fatalf("%v apart: %d masters were asked again, %d releases are pending", apart, len(asked),
					j.Pending())
			}
			for i := range asked {
				if after := asked[i].Sub(adopted[i]); after > janitor.Interval || after < janitor.Interval/2 {
					t.Errorf("%v apart: master %d was asked again after %v", apart, i, after)
				}
			}
		})
	}
}

// However many releases fail, each at a separate moment, an interval has few sweeps.
func TestAnIntervalHasFewSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &masters{began: time.Now(), err: errSilent}
		j := m.janitor(1)
		defer j.Close()
		for range 1000 {
			j.Adopt(release(0), false, time.Hour, 0)
			<-time.After(time.Millisecond)
		}
		began := time.Now()
		settle(10)
		m.mu.Lock()
		defer m.mu.Unlock()
		sweeps := slices.Compact(slices.DeleteFunc(m.times, func(at time.Time) bool { return at.Before(began) }))
		if n := len(sweeps); n < 10 || n > 90 {
			t.Errorf("%d sweeps in ten intervals", n)
		}
	})
}

// A stopped master has not read a request yet. Its ttl begins when the master answers, because it may read the
// request just then.
func TestAnUnreadRequestLapsesATTLAfterTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &masters{began: time.Now(), err: errSilent}
		j := m.janitor(1)
		defer j.Close()
		j.Adopt(release(0), true, time.Minute, 0)
		<-time.After(time.Hour + janitor.Interval/2)
		m.answer()
		<-time.After(janitor.Interval) // in which it is asked once
		m.mu.Lock()
		m.err = errSilent
		m.mu.Unlock()
		<-time.After(50 * time.Second)
		if j.Pending() != 1 {
			t.Errorf("%d pending within a ttl of the first answer", j.Pending())
		}
		<-time.After(20 * time.Second)
		if j.Pending() != 0 {
			t.Errorf("%d pending when the ttl is over", j.Pending())
		}
	})
}

// A master that is down gets one pending release an interval, each in its turn. After its first answer it gets the
// rest.
func TestAMasterThatIsDownGetsOnePendingReleaseAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &masters{began: time.Now(), err: errSilent, down: true}
		j := m.janitor(1)
		defer j.Close()
		want := []string{"a", "b", "c", "d", "e"}
		for _, key := range want {
			c := release(0)
			c.Request.Keys = []string{key}
			j.Adopt(c, false, time.Hour, 0)
		}
		settle(5) // and so between two sweeps from now on
		m.mu.Lock()
		asked := slices.Clone(m.keys)
		m.mu.Unlock()
		slices.Sort(asked)
		if !slices.Equal(asked, want) {
			t.Errorf("in five intervals it was asked for %v", asked)
		}
		m.answer()
		<-time.After(janitor.Interval)
		synctest.Wait()
		if j.Pending() != 0 {
			t.Errorf("%d pending after the interval with its answer", j.Pending())
		}
	})
}

// Releases of other masters, which fail at other moments, are no reason to ask a master that is down.
func TestAMasterThatIsDownIsNotAskedWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &masters{began: time.Now(), err: errSilent, down: true}
		j := m.janitor(2)
		defer j.Close()
		for range 4 {
			c := release(0)
			c.Request.Keys = []string{"down"}
			j.Adopt(c, false, time.Hour, 0)
			j.Adopt(release(1), false, time.Hour, 0)
			<-time.After(janitor.Interval / 4)
		}
		<-time.After(10*janitor.Interval - janitor.Interval/8)
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		n := len(slices.DeleteFunc(slices.Clone(m.keys), func(key string) bool { return key != "down" }))
		if n < 9 || n > 11 || len(m.keys)-n < 38 {
			t.Errorf("in ten intervals it was asked %d times, and the other master %d times", n, len(m.keys)-n)
		}
	})
}

func TestPendingReleasesOfOneMasterAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &masters{began: time.Now(), err: errSilent}
		j := m.janitor(2)
		defer j.Close()
		for range janitor.MaxPending + 1 {
			j.Adopt(release(1), false, time.Minute, 0)
		}
		j.Adopt(release(0), false, time.Minute, 0)
		_, told := m.seen()
		if want := janitor.MaxPending + 1; j.Pending() != want || told[janitor.MaxPending] != janitor.Dropped {
			t.Errorf("%d pending, want %d, and the one above the bound was observed as %v", j.Pending(), want,
				told[janitor.MaxPending])
		}
		m.answer()
		settle(1)
		if j.Pending() != 0 {
			t.Errorf("%d pending when the masters answer", j.Pending())
		}
	})
}

// A master that once gives no answer to three leaves has been silent once.
func TestHazard159LeavesAreRepeatedAfterOneSilenceDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked, told atomic.Int64
		j := janitor.New(janitor.Config{
			Masters: 1,
			Now:     func() time.Duration { return time.Since(began) },
			After:   func(d time.Duration, f func()) schedule.Timer { return time.AfterFunc(d, f) },
			Send: func(c *lane.Call) {
				silent := asked.Add(1) <= 3
				time.AfterFunc(janitor.Interval/2, func() {
					if c.Err = nil; silent {
						c.Err = errSilent
					} else {
						told.Add(1)
					}
					c.To.Ended(c)
				})
			},
			Down:    func(int) bool { return false },
			Timeout: func(time.Duration) time.Duration { return janitor.Interval },
			Lapsed:  func(now, ttl time.Duration) time.Duration { return now + ttl },
		})
		defer j.Close()
		for _, key := range []string{"a", "b", "c"} {
			request := &single.Request{Op: single.Leave, Keys: []string{key}, Waiter: "waiter", TTL: time.Minute}
			call := &lane.Call{Call: single.Call{Request: request, Err: errSilent}}
			j.Adopt(call, false, time.Minute, 0)
		}
		j.Drain(t.Context())
		if told.Load() != 3 {
			t.Errorf("the master was asked %d times, and has answered %d of 3 leaves", asked.Load(), told.Load())
		}
	})
}

// BenchmarkGrowthPendingReleases has as few masters as can keep n pending releases, and sends all releases; no master
// answers. The time per item grows with the number of pending releases at its master, up to the bound.
func BenchmarkGrowthPendingReleases(b *testing.B) {
	growth.Run(b, func(n int) any {
		var sweep func()
		j := janitor.New(janitor.Config{
			Masters: n/janitor.MaxPending + 1,
			Now:     func() time.Duration { return time.Hour },
			After: func(_ time.Duration, f func()) schedule.Timer {
				sweep = f
				return stopped{}
			},
			Send: func(c *lane.Call) {
				c.Err = errSilent
				c.To.Ended(c)
			},
			Down:    func(int) bool { return false },
			Timeout: func(time.Duration) time.Duration { return time.Second },
			Lapsed:  func(now, ttl time.Duration) time.Duration { return now + ttl },
		})
		for i := range n {
			c := release(i / janitor.MaxPending)
			c.Request.Keys = []string{fmt.Sprint("key-", i)}
			j.Adopt(c, false, 2*time.Hour, 0)
		}
		sweep()
		return j
	})
}

// stopped is a timer that never fires.
type stopped struct{}

func (stopped) Stop() bool               { return true }
func (stopped) Reset(time.Duration) bool { return true }
