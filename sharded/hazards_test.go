package sharded_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

// outage is the way in which a master fails.
type outage int32

const (
	none     outage = iota
	refusing        // nothing reaches it, and that is known at once
	silent          // nothing that reaches it has an effect or an answer
)

// fragile is a master in memory that can be broken.
type fragile struct {
	*Fake
	outage    atomic.Int32
	processes uint64 // that have been made over it
}

func (m *fragile) Do(ctx context.Context, batch []*single.Call) {
	if outage(m.outage.Load()) != refusing {
		m.Fake.Do(ctx, batch)
		return
	}
	for _, c := range batch {
		c.Reply, c.Err, c.Sent = single.Reply{}, errors.New("connection refused"), false
	}
}

func (m *fragile) suffer(o outage) {
	m.outage.Store(int32(o))
	m.Behave(nil)
	if o == silent {
		m.Behave(func(*single.Request) Act { return Act{Lost: true} })
	}
}

// twoGroups are the masters of groups "a" and "b", in memory.
type twoGroups map[string][]*fragile

func newTwoGroups(n int) twoGroups {
	g := make(twoGroups)
	for _, name := range []string{"a", "b"} {
		for i := range n {
			g[name] = append(g[name], &fragile{Fake: NewFake(name + string(rune('1'+i)) + ":6379")})
		}
	}
	return g
}

// process makes the Locker of one process, and closes it with the test. The Locker draws the same pauses in every run
// of the test, because the wait of a process that competes with others depends on luck.
func (g twoGroups) process(t *testing.T, opts sharded.Options, names ...string) *sharded.Locker {
	t.Helper()
	groups := make([]sharded.Group, len(names))
	for i, name := range names {
		var masters []redlock.Master
		for _, m := range g[name] {
			masters = append(masters, m)
		}
		g[name][0].processes++
		opts := redlock.Options{Clock: NewClock(), Jitter: drawn(g[name][0].processes)}
		groups[i] = sharded.Group{Name: name, Masters: masters, Options: opts}
	}
	s, err := sharded.New(groups, opts)
	Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
		defer cancel()
		Must(t, s.Close(ctx))
	})
	return s
}

// drawn is a Jitter that draws from a seed.
func drawn(seed uint64) func(time.Duration) time.Duration {
	var mu sync.Mutex
	draw := rand.New(rand.NewPCG(seed, 78))
	return func(most time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(draw.Int64N(int64(most)))
	}
}

// wantsIt plays a process that waits for a key and holds it for a moment. It leaves the key to others for a little
// longer than the longest pause of a waiter, and then waits again. giveUp ends this and returns how often the process
// had the key.
func wantsIt(s *sharded.Locker, k string) (giveUp func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	had := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if lock, err := s.Acquire(ctx, k, lockedOut); err == nil {
				n++
				Pass(100 * time.Millisecond)
				_ = lock.Release(context.WithoutCancel(ctx)) // a minority may be away
				Pass(300 * time.Millisecond)
			}
		}
		had <- n
	}()
	return func() int { cancel(); return <-had }
}

// use acquires and releases, and returns how long it had to wait.
func use(t *testing.T, s *sharded.Locker, k string, patience time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	lock, err := s.Acquire(ctx, k, lockedOut)
	took := time.Since(began)
	if err == nil {
		_ = lock.Release(context.Background()) // the masters that are away do not answer
	}
	return took, err
}

// lockedOut is the ttl of these locks: a key that is left on a majority keeps everybody out for as long.
const lockedOut = 10 * time.Minute

// reach is the longest time to get a key while another process tries that can win only a minority. If masters do not
// answer, each of its attempts keeps that minority for a request timeout, a second here.
var reach = map[outage]time.Duration{refusing: 3 * time.Second, silent: 2 * time.Minute}

// While any one master of each group is down, each group has a majority. Then processes of the transition get the key
// as often as processes of the configurations before and after.
func TestHazard78ATransitionGetsTheKeyWhileAMasterOfEachGroupIsDown(t *testing.T) {
	for name, o := range map[string]outage{"refused": refusing, "silent": silent} {
		for _, group := range []string{"a", "b"} {
			RunVirtual(t, name+", in "+group, func(t *testing.T) {
				g := newTwoGroups(3)
				during := g.process(t, transition, "a", "b")
				names := map[string][]string{"a": {"a"}, "b": {"a", "b"}}[group]
				other := g.process(t, sharded.Options{}, names...)
				k := keyIn(t, g.process(t, sharded.Options{}, "a", "b"), "b")
				g["a"][0].suffer(o)
				g["b"][1].suffer(o)
				stop := wantsIt(during, k)
				Settle(3 * time.Second)
				for range 5 {
					if took, err := use(t, other, k, lockedOut); err != nil || took > reach[o] {
						t.Errorf("group %s has two of three masters, and its key came after %v: %v", group, took,
							err)
					}
					Settle(time.Second)
				}
				if n := stop(); n < 5 {
					t.Errorf("the transition had the key %d times, though each group has two of three masters", n)
				}
			})
		}
	}
}

// Masters fail and come back in any order. While each group has a majority, processes with the old configuration and
// processes of the transition get the key soon.
func TestHazard78ATransitionSurvivesAnyMinorityOfFailedMasters(t *testing.T) {
	for seed := range soak.Or(uint64(10), 25) {
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 78))
			n := 3 + 2*draw.IntN(2)
			g := newTwoGroups(n)
			first, second := g.process(t, transition, "a", "b"), g.process(t, transition, "a", "b")
			before := g.process(t, sharded.Options{}, "a")
			k := keyIn(t, first, "b")
			stops := []func() int{wantsIt(first, k), wantsIt(second, k)}
			for range 8 {
				for _, group := range []string{"a", "b"} { // in each of which a minority is down
					for i, at := range draw.Perm(n) {
						g[group][at].suffer(none)
						if i < n/2 {
							g[group][at].suffer([]outage{refusing, silent}[draw.IntN(2)])
						}
					}
				}
				Settle(time.Duration(draw.IntN(3000)) * time.Millisecond)
				if took, err := use(t, before, k, lockedOut); err != nil || took > reach[silent] {
					t.Errorf("seed %d: the key of a group with a majority came after %v: %v", seed, took, err)
				}
			}
			for _, stop := range stops {
				if stop() < 1 {
					t.Errorf("seed %d: a process of the transition never had the key of two groups with a majority",
						seed)
				}
			}
			for _, group := range []string{"a", "b"} {
				for _, m := range g[group] {
					m.suffer(none)
				}
			}
		})
	}
}

// Tokens of a key that moves are in order if the transition acquires it after the last acquisition by a process of
// before. That it did so earlier is not enough.
func TestHazard79TokensAreInOrderAfterTheLastAcquisitionOfBefore(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	fast := redlock.Options{Clock: HourAhead()}
	_, during, after := f.oldTransitionNew(t, redlock.Options{})
	before, _, _ := f.oldTransitionNew(t, fast) // its proposals are ahead of those of all others
	sequence := func(k string, steps ...*sharded.Locker) (inOrder bool, tokens []uint64) {
		for _, s := range steps {
			tokens = append(tokens, tokenOf(t, s, k))
		}
		for i := range tokens[1:] {
			if tokens[i+1] <= tokens[i] {
				return false, tokens
			}
		}
		return true, tokens
	}
	k := keyIn(t, after, "b")
	Must(t, f["a"][0].Kill())
	Must(t, f["b"][1].Kill()) // each group has a majority
	if ok, tokens := sequence(k, before, during, before, during, after); !ok {
		t.Errorf("the transition acquired the key after the last process with the old configuration: tokens %d", tokens)
	}
	// The danger is real: a process with the old configuration acquires another key after the transition.
	_, during, after = f.oldTransitionNew(t, redlock.Options{}) // which have seen no tokens
	other := "{" + k + "}again"
	for i := 0; after.GroupOf(other) != "b" || other == k; i++ {
		other = keyIn(t, after, "b") + string(rune('a'+i))
	}
	if ok, tokens := sequence(other, during, before, after); ok {
		t.Errorf("acquired by before after the transition: %d; this test shows nothing", tokens)
	}
}

// Close ends all groups at the same time. If one group has to wait for a lock, the others have no less time, and none
// takes a new lock until then. The same holds with a master down in each group.
func TestHazard80CloseOfAShardedLockerClosesEveryGroup(t *testing.T) {
	g := newTwoGroups(3)
	g["a"][0].suffer(refusing)
	g["b"][1].suffer(refusing)
	during, after := g.process(t, transition, "a", "b"), g.process(t, sharded.Options{}, "a", "b")
	moving, staying := keyIn(t, after, "b"), keyIn(t, after, "a")
	var locks []*redlock.Lock
	for _, k := range []string{moving, staying} {
		locks = append(locks, takeIn(t, during, k))
	}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- during.Close(Within(t, Promptly)) }()
	for _, k := range []string{moving, staying} {
		redistest.Eventually(t, Promptly/2, func() bool {
			lock, err := during.TryAcquire(t.Context(), k+"{}", LongTTL)
			if err == nil {
				_ = lock.Release(t.Context())
			}
			return errors.Is(err, redlock.ErrClosed)
		}, "no lock to be taken while others are waited for")
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err := during.Close(ctx) // waits for the first no longer than that
	Is(t, err, context.Canceled)
	Is(t, err, why)
	go func() { second <- during.Close(t.Context()) }()
	for _, lock := range locks {
		Must(t, lock.Err())
		Must(t, lock.Release(t.Context()))
	}
	Must(t, <-first)
	Must(t, <-second)
	Must(t, during.Close(ctx)) // nothing is left to wait for
}
