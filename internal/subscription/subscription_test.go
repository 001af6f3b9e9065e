package subscription_test

import (
	"math/bits"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/internal/subscription"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// master counts the subscriptions to it.
type master struct {
	begun, ended int
	ready        func()
	notified     func(string)
}

func (m *master) listen(ready func(), notified func(string)) func() {
	m.begun++
	m.ready, m.notified = ready, notified
	return func() { m.ended++ }
}

// atLeast says that any quorum masters are a majority.
func atLeast(quorum int) func(masters uint64) bool {
	return func(masters uint64) bool { return bits.OnesCount64(masters) >= quorum }
}

func after(d time.Duration, f func()) schedule.Timer { return time.AfterFunc(d, f) }

func TestWaitersShareOneSubscriptionThatLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var masters [3]master
		var became atomic.Int64
		keys := ""
		s := subscription.New(subscription.Config{
			Masters: []subscription.Listen{masters[0].listen, nil, masters[2].listen}, Majority: atLeast(2),
			After: after,
			Ready: func() { became.Add(1) }, Notified: func(key string, _ int) { keys += key },
		})
		s.Enter()
		s.Enter()
		masters[0].ready()
		if s.Subscribed() || became.Load() != 0 {
			t.Error("one of two required masters is a quorum")
		}
		masters[2].ready()
		masters[2].ready() // again, after it had broken off
		if !s.Subscribed() || became.Load() != 1 {
			t.Errorf("a quorum became ready %d times, want once", became.Load())
		}
		<-time.After(subscription.Gather + 1)
		synctest.Wait()
		if became.Load() != 2 {
			t.Errorf("a reconnection caused %d looks, want one", became.Load()-1)
		}
		masters[0].notified("a")
		masters[2].notified("b")
		if keys != "ab" {
			t.Errorf("notified of %q", keys)
		}
		s.Leave()
		<-time.After(2 * subscription.Linger)
		s.Leave()
		<-time.After(subscription.Linger / 2)
		s.Enter() // in time
		<-time.After(2 * subscription.Linger)
		if masters[0].begun != 1 || masters[0].ended != 0 {
			t.Errorf("begun %d times and ended %d times while waiters are there", masters[0].begun, masters[0].ended)
		}
		s.Leave()
		<-time.After(2 * subscription.Linger)
		synctest.Wait()
		if masters[0].ended != 1 || masters[2].ended != 1 || s.Subscribed() {
			t.Error("it goes on without waiters")
		}
		s.Enter()
		if masters[0].begun != 2 || s.Subscribed() {
			t.Error("it does not begin anew")
		}
		s.Close()
		s.Enter()
		if masters[0].begun != 2 || masters[0].ended != 2 {
			t.Errorf("after Close: begun %d times, ended %d times", masters[0].begun, masters[0].ended)
		}
	})
}

// A subscription is ending because no waiter is left; on a hanging master that takes a while. Close waits for it,
// because the owner of the master closes the master next.
func TestCloseWaitsForASubscriptionThatIsEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		slow := func(func(), func(string)) func() {
			return func() { <-time.After(time.Minute); ended = true }
		}
		s := subscription.New(subscription.Config{
			Masters: []subscription.Listen{slow}, Majority: atLeast(1), After: after,
		})
		s.Enter()
		s.Leave()
		<-time.After(subscription.Linger + time.Second)
		s.Close()
		if !ended {
			t.Error("the master is still being listened to")
			<-time.After(time.Hour)
		}
	})
}

// A fault that breaks many subscriptions causes one look, on any masters. A first subscription was not away, so it
// causes none.
func TestSimultaneousReconnectionsCauseOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var masters [5]master
		var looks atomic.Int64
		c := subscription.Config{Majority: atLeast(3), After: after, Ready: func() { looks.Add(1) }}
		for i := range masters {
			c.Masters = append(c.Masters, masters[i].listen)
		}
		s := subscription.New(c)
		s.Enter()
		for i := range masters {
			masters[i].ready()
		}
		<-time.After(time.Second)
		synctest.Wait()
		if looks.Load() != 1 {
			t.Errorf("%d looks for five subscriptions that were made, want that of the quorum", looks.Load())
		}
		for _, again := range [][]int{{0, 1, 2, 3, 4}, {2}, {4, 4, 4}} {
			before := looks.Load()
			for _, i := range again {
				masters[i].ready()
			}
			<-time.After(time.Second)
			synctest.Wait()
			if looks.Load() != before+1 {
				t.Errorf("%d looks for the reconnections of %v, want one", looks.Load()-before, again)
			}
		}
		masters[0].ready()
		s.Close() // before it looks
		<-time.After(time.Second)
		synctest.Wait()
		if looks.Load() != 4 {
			t.Errorf("it has looked %d times, want none when it is closed", looks.Load())
		}
	})
}
