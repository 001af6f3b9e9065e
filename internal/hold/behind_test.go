package hold_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// slow is a master that takes its time for every request and performs one after the other, so that it can be outrun.
type slow struct {
	*Fake
	each time.Duration
	turn chan struct{} // of capacity 1
}

func (m *slow) Do(ctx context.Context, batch []*single.Call) {
	deadline, _ := ctx.Deadline()
	select {
	case m.turn <- struct{}{}:
		Pass(m.each * time.Duration(len(batch))) // a waiter that has given up does not make it quicker
		m.Fake.Do(context.Background(), batch)
		<-m.turn
		if time.Now().Before(deadline) {
			return
		}
	case <-time.After(time.Until(deadline)):
	}
	for _, c := range batch {
		c.Reply, c.Err, c.Sent = single.Reply{}, ErrSilent, true
	}
}

// asksFor counts the requests of this kind for one key that have arrived.
func asksFor(m *Fake, op single.Op, key string) int {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	n := 0
	for i := range m.Asked {
		if m.Asked[i].Op == op && m.Asked[i].Keys[0] == key {
			n++
		}
	}
	return n
}

// votes counts the replies to one kind of request, from the events that an observer receives.
type votes struct {
	mu     sync.Mutex
	op     string
	asked  map[string]int // by key
	by     map[string]int // by master
	silent map[string]int // of these: there was no answer in time
	spared map[string]int // votes that were not asked for, by key
}

func newVotes(op string) *votes {
	counts := func() map[string]int { return make(map[string]int) }
	return &votes{op: op, asked: counts(), by: counts(), silent: counts(), spared: counts()}
}

func (v *votes) observe(e redlock.Event) {
	if e.Kind != redlock.EventVote || e.Op != v.op {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if errors.Is(e.Err, single.ErrBehind) {
		v.spared[e.Key]++
		return
	}
	v.asked[e.Key]++
	v.by[e.Master]++
	if e.Err != nil {
		v.silent[e.Master]++
	}
}

const (
	// The tests' load asks for another lock every loadEvery, loadN times.
	loadEvery = 2 * time.Millisecond
	loadN     = 500
)

// load is a test's load.
type load struct {
	each    []time.Duration                                      // how long each master takes for a request
	remote  bool                                                 // it is the way that takes long, for any number
	timeout time.Duration                                        // of a request; 0: a second
	joint   bool                                                 // the first half are the old masters
	toomuch bool                                                 // for a quorum too, so that locks are not granted
	during  func(t *testing.T, l *redlock.Locker, masters Fakes) // called once the slow ones have fallen behind
}

// run takes and releases one lock after the other, and returns the votes on acquisitions and on releases.
func (c load) run(t *testing.T) (acquires, releases *votes) {
	t.Helper()
	acquires, releases = newVotes("acquire"), newVotes("release")
	Bubble(t, len(c.each), func(t *testing.T, masters Fakes) {
		voters := make([]redlock.Master, len(masters))
		for i, m := range masters {
			voters[i] = &slow{m, c.each[i], make(chan struct{}, 1)}
			if c.remote {
				voters[i] = &remote{m, c.each[i]}
			}
		}
		opts := redlock.Options{Clock: NewClock(), RequestTimeout: cmp.Or(c.timeout, time.Second)}
		opts.Observer = func(e redlock.Event) {
			acquires.observe(e)
			releases.observe(e)
		}
		l, err := redlock.New(voters, opts)
		if half := len(voters) / 2; c.joint {
			l, err = redlock.NewJoint(voters[:half], voters[half:], opts)
		}
		Must(t, err)
		for i := range loadN {
			go func() {
				lock, err := l.TryAcquire(t.Context(), fmt.Sprint("load:", i), LongTTL)
				if err == nil {
					err = lock.Release(t.Context())
				}
				if err != nil && !c.toomuch {
					t.Errorf("lock %d: %v", i, err)
				}
			}()
			Pass(loadEvery)
			synctest.Wait()
			if i == loadN/2 && c.during != nil {
				c.during(t, l, masters)
			}
		}
		ended, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
		defer cancel()
		Must(t, l.Close(ended)) // not before every master has confirmed every release, which takes a slow one its time
	})
	return acquires, releases
}

const lag = 10 * time.Millisecond // of a slow master: a hundred requests a second, of a thousand that come

func TestSlowMastersGetFewerRequestsAndStillVote(t *testing.T) {
	for _, lags := range [][2]time.Duration{{lag, lag}, {lag / 2, 2 * lag}} {
		each := []time.Duration{0, 0, 0, lags[0], lags[1]}
		acquires, releases := load{each: each}.run(t)
		total := 0
		for _, spared := range acquires.spared {
			total += spared
		}
		for _, asked := range acquires.by {
			total += asked
		}
		if total != loadN*len(each) {
			t.Errorf("the observer got %d votes for %d locks of %d masters", total, loadN, len(each))
		}
		for i := range each {
			master := fmt.Sprintf("m%d:6379", i+1)
			asked, silent := acquires.by[master], acquires.silent[master]+releases.silent[master]
			if i < 3 && asked != loadN {
				t.Errorf("%s, which keeps up, was asked for %d locks of %d", master, asked, loadN)
			}
			if i >= 3 && (asked < loadN/100 || asked > loadN/3) {
				t.Errorf("%s, which takes %v, was asked for %d locks of %d", master, each[i], asked, loadN)
			}
			if silent > 0 {
				t.Errorf("%s, which takes %v, had no answer in time for %d requests: it collapsed", master, each[i],
					silent)
			}
			if released := releases.by[master]; released != asked {
				t.Errorf("%s was asked for %d locks and for %d releases", master, asked, released)
			}
		}
	}

	// The control: where all are equally slow none is spared, and they answer too late.
	acquires, releases := load{each: []time.Duration{lag, lag, lag, lag, lag}, toomuch: true}.run(t)
	for _, master := range []string{"m4:6379", "m5:6379"} {
		asked, silent := acquires.by[master]+releases.by[master], acquires.silent[master]+releases.silent[master]
		if acquires.by[master] < loadN*9/10 || silent < asked/2 {
			t.Errorf("%s was not to be spared: asked for %d locks of %d; no answer in time to %d requests of %d: "+
				"this test shows nothing",
				master, acquires.by[master], loadN, silent, asked)
		}
	}
}

// remote is a master that is far away, and answers any number of requests at a time.
type remote struct {
	*Fake
	away time.Duration
}

func (m *remote) Do(ctx context.Context, batch []*single.Call) {
	Pass(m.away)
	m.Fake.Do(ctx, batch)
}

// A distant master is not behind: an idle master far away answers late, but it answers in time.
func TestDistantMastersGetEveryRequest(t *testing.T) {
	const way = 100 * time.Millisecond
	acquires, _ := load{each: []time.Duration{0, 0, 0, way, way}, remote: true}.run(t)
	for master, asked := range acquires.by {
		if silent := acquires.silent[master]; asked < loadN*9/10 || silent > 0 {
			t.Errorf("%s was asked for %d locks of %d, and did not answer %d in time", master, asked, loadN, silent)
		}
	}
	if len(acquires.by) != 5 {
		t.Errorf("%d masters voted", len(acquires.by))
	}
}

func TestAQuorumOfMastersAlwaysGetsTheRequest(t *testing.T) {
	for _, each := range [][]time.Duration{
		{0, 0, 0, lag, lag},
		{0, 0, lag / 2, lag, 2 * lag}, // the quorum needs one of those that are behind
		{0, 0, lag},
		{0, lag},
	} {
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			acquires, _ := load{each: each, toomuch: true}.run(t)
			least := len(each)
			for i := range loadN {
				least = min(least, acquires.asked[fmt.Sprint("load:", i)])
			}
			if quorum := redlock.Quorum(len(each)); least < quorum {
				t.Errorf("for some lock only %d of %d masters were asked, and %d are a quorum", least, len(each),
					quorum)
			}
		})
	}
}

// Requests for a lock that is held go to a master however busy it is.
func TestExtensionsAndReleasesGoToSlowMastersToo(t *testing.T) {
	c := load{each: []time.Duration{0, 0, 0, lag, lag}}
	c.during = func(t *testing.T, l *redlock.Locker, masters Fakes) {
		behind := masters[4]
		acquired, released := asksFor(behind, single.Acquire, Key), asksFor(behind, single.Release, Key)
		lock := Acquire(t, l, LongTTL)
		Must(t, lock.Extend(t.Context(), LongTTL))
		Must(t, lock.Release(t.Context()))
		Settle(10 * time.Second) // until it has caught up
		if n := asksFor(behind, single.Acquire, Key) - acquired; n != 0 {
			t.Fatalf("the master was asked for the lock, so it was not behind, and this test shows nothing")
		}
		if n := asksFor(behind, single.Extend, Key); n != 1 {
			t.Errorf("the master got %d extensions, want one", n)
		}
		if n := asksFor(behind, single.Release, Key) - released; n != 1 {
			t.Errorf("the master got %d releases of the extended key, want one", n)
		}
	}
	c.run(t)
}

func TestAnErrorNamesTheMasterThatIsTooSlow(t *testing.T) {
	c := load{each: []time.Duration{0, 0, 0, lag, lag}}
	c.during = func(t *testing.T, l *redlock.Locker, masters Fakes) {
		masters.Take("other", LongTTL)
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrHeld)
		IsNot(t, err, single.ErrBehind) // one master's answer is not the majority's decision
		quorum, ok := errors.AsType[*redlock.QuorumError](err)
		if !ok {
			t.Fatalf("%v is no QuorumError", err)
		}
		for _, node := range quorum.Nodes[3:] {
			if node.Vote != redlock.Unknown || !errors.Is(node.Err, single.ErrBehind) {
				t.Errorf("%s: %v, %v", node.Master, node.Vote, node.Err)
			}
			if says := node.Master + ": single: master is behind the others"; !strings.Contains(err.Error(), says) {
				t.Errorf("%q does not say %q", err, says)
			}
		}
	}
	c.run(t)
}
