package hold_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// tokens judges fencing tokens: every one is to be above all that had been given out before its acquisition began.
type tokens struct {
	mu     sync.Mutex
	given  map[uint64]bool
	newest uint64
	wrong  []string
}

// before is called when an acquisition begins.
func (h *tokens) before() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest
}

// after is called when it has got its token.
func (h *tokens) after(before, token uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.given == nil {
		h.given = make(map[uint64]bool)
	}
	switch {
	case token == 0:
		h.wrong = append(h.wrong, "a token is zero")
	case h.given[token]:
		h.wrong = append(h.wrong, fmt.Sprintf("%d was given twice", token))
	case token <= before:
		h.wrong = append(h.wrong, fmt.Sprintf("%d came after %d", token, before))
	}
	h.given[token] = true
	h.newest = max(h.newest, token)
}

// jumping is a clock with a time of day that jumps forwards and backwards all the time.
type jumping struct {
	*memmaster.Clock
	random *rand.Rand // for one goroutine at a time
	mu     *sync.Mutex
}

func (c jumping) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(time.Duration(c.random.Int64N(int64(2*time.Hour))) - time.Hour)
}

// Masters stop and lose requests and replies, a minority at a time. They keep their data.
func TestTokensAreUniqueAndInOrderWhateverHappensToMastersAndClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { Settle(time.Minute) }) // what is on its way to masters in the end
		const lockers, keys = 6, 3
		enough := soak.Or(int64(500), 20_000)
		masters := memmaster.New(5)
		c := jumping{memmaster.NewClock(0), rand.New(rand.NewPCG(1, 27)), new(sync.Mutex)}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		var history [keys]tokens
		var count atomic.Int64
		var all sync.WaitGroup
		for i := range lockers {
			l := LockerOver(t, masters.All(), redlock.Options{Clock: c})
			all.Go(func() {
				for n := i; ctx.Err() == nil; n++ {
					h := &history[n%keys]
					before := h.before()
					lock, err := l.Acquire(ctx, fmt.Sprint("key", n%keys), 2*time.Second, redlock.Fenced())
					if err != nil {
						continue
					}
					h.after(before, lock.Token())
					if count.Add(1) >= enough {
						stop()
					}
					_ = lock.Release(ctx) // a majority may be away
				}
			})
		}
		for random := rand.New(rand.NewPCG(2, 27)); ctx.Err() == nil; {
			fates := []memmaster.Fate{{Lost: true}, {Mute: true}, {Before: time.Second}}
			hurt := random.Perm(len(masters))[:2]
			for _, i := range hurt {
				masters[i].Behave(memmaster.Always(fates[random.IntN(len(fates))]))
			}
			Pass(30 * time.Millisecond)
			for _, i := range hurt {
				masters[i].Behave(memmaster.Always(
					memmaster.Fate{Before: 200 * time.Microsecond, After: 200 * time.Microsecond}))
			}
			Pass(50 * time.Millisecond)
		}
		all.Wait()
		t.Logf("%d acquisitions", count.Load())
		if count.Load() < enough {
			t.Errorf("%d acquisitions, want %d", count.Load(), enough)
		}
		for i := range history {
			if len(history[i].wrong) > 0 {
				t.Errorf("key%d: %d faults: %.1000v", i, len(history[i].wrong), history[i].wrong)
			}
		}
	})
}

// reaching makes a Locker without an idea of the time of day. A request reaches only the servers with a bit that is
// set at that time.
func reaching(t *testing.T, servers []*redistest.Server, bits *atomic.Uint64) *redlock.Locker {
	t.Helper()
	// At the beginning of the epoch, so that only counters determine tokens.
	opts := redlock.Options{Clock: Dated(func() time.Time { return time.Unix(0, 0) })}
	return Wrapped(t, servers, opts, func(i int, m redlock.Master) redlock.Master {
		return Cut(m, func(*single.Request) bool { return bits.Load()&(1<<i) == 0 })
	})
}

// shuffled lets Lockers take turns, each time with another majority of the masters, and judges the tokens.
func shuffled(t *testing.T) []string {
	t.Helper()
	servers := redistest.StartN(t, 5)
	var bits atomic.Uint64
	var history tokens
	for range 5 {
		a, b := reaching(t, servers, &bits), reaching(t, servers, &bits)
		for n := range 40 {
			order := rand.Perm(5)
			bits.Store(1<<order[0] | 1<<order[1] | 1<<order[2])
			before := history.before()
			lock := Take(t, []*redlock.Locker{a, b}[n%2], Key, LongTTL, redlock.Fenced())
			history.after(before, lock.Token())
			Give(t, lock)
		}
		bits.Store(31)
	}
	return history.wrong
}

// Hazard 27: the greatest of the masters' own counters is no fencing token, since majorities see different ones.
func TestHazard27TokensFollowTheOrderOfMajorities(t *testing.T) {
	if wrong := shuffled(t); len(wrong) > 0 {
		t.Errorf("%d faults: %v", len(wrong), wrong)
	}
}

// The very case of the hazard: failed attempts have left one master's counter at 9.
func TestHazard27TokensStayInOrderWhenOneCounterIsAhead(t *testing.T) {
	second := func() uint64 {
		servers := redistest.StartN(t, 5)
		setCounter(t, servers[0], 9)
		var bits atomic.Uint64
		bits.Store(0b00111) // A, B, C
		lock := Take(t, reaching(t, servers, &bits), Key, LongTTL, redlock.Fenced())
		if lock.Token() <= 9 {
			t.Errorf("the first token is %d, want one above 9", lock.Token())
		}
		Give(t, lock)
		bits.Store(0b11100) // C, D, E
		lock = Take(t, reaching(t, servers, &bits), Key, LongTTL, redlock.Fenced())
		Give(t, lock)
		bits.Store(31)
		return lock.Token()
	}
	if token := second(); token <= 10 {
		t.Errorf("the second token is %d, not above the first", token)
	}
}

// counterKey is the key under which a master counts the tokens of key.
const counterKey = "redlock:token:{" + Key + "}"

// counter reads a master's counter of key.
func counter(tb testing.TB, s *redistest.Server) uint64 {
	tb.Helper()
	n, err := s.Client().ZScore(tb.Context(), counterKey, "redlock:token").Result()
	Must(tb, err)
	return uint64(n)
}

// setCounter makes a master's counter of key say n.
func setCounter(tb testing.TB, s *redistest.Server, n uint64) {
	tb.Helper()
	Must(tb, s.Client().ZAdd(tb.Context(), counterKey, redis.Z{Score: float64(n), Member: "redlock:token"}).Err())
	Must(tb, s.Client().Expire(tb.Context(), counterKey, time.Hour).Err())
}

func TestCountersThatAgreeNeedOneRoundTrip(t *testing.T) {
	servers, l := Started(t, 3)
	Give(t, Take(t, l, Key, LongTTL, redlock.Fenced())) // the scripts are known from now on
	const cycles = 100
	Settled(t, servers)
	scripts := Calls(t, servers, "evalsha")
	for range cycles {
		Give(t, Take(t, l, Key, LongTTL, redlock.Fenced()))
	}
	Settled(t, servers)
	// One script, to release; a raise in each cycle would be as many again.
	if sent, want := Calls(t, servers, "evalsha")-scripts, cycles*len(servers); sent < want/2 || sent > want+want/10 {
		t.Errorf("%d scripts for %d cycles on %d masters, want about %d", sent, cycles, len(servers), want)
	}
}

// ahead sets one master's counter an hour ahead and cuts another one off, so that the two that are left differ.
func ahead(t *testing.T, servers []*redistest.Server, off func(i int, r *single.Request) bool) (l *redlock.Locker,
	first uint64,
) {
	t.Helper()
	first = uint64(time.Now().Add(time.Hour).UnixMicro())
	setCounter(t, servers[0], first)
	return Wrapped(t, servers, redlock.Options{}, func(i int, m redlock.Master) redlock.Master {
		return Cut(m, func(r *single.Request) bool { return off(i, r) })
	}), first
}

func TestCountersThatDifferAreRaisedBeforeTheLockIsHeld(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l, first := ahead(t, servers, func(i int, _ *single.Request) bool { return i == 2 })
	lock := Take(t, l, Key, LongTTL, redlock.Fenced())
	if got := lock.Token(); got != first+2 { // the master ahead has granted first+1; no number is accepted twice
		t.Errorf("the token is %d, want one above the greatest that was granted, %d", got, first+1)
	}
	for _, s := range servers[:2] {
		if got := counter(t, s); got != lock.Token() {
			t.Errorf("%s counts %d when the lock is held, want the token, %d", s.Addr(), got, lock.Token())
		}
	}
	Give(t, lock)
}

func TestALockWhoseCountersCanNotBeRaisedIsNotHeld(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l, _ := ahead(t, servers, func(i int, r *single.Request) bool { return i == 2 || i == 1 && r.Op == single.Raise })
	Give(t, Take(t, l, "other", LongTTL)) // a try of a new Locker repeats its round
	notFenced(t, servers, l)
}

// notFenced fails the test if a fenced lock can be had. Nothing may be left of the attempt.
func notFenced(t *testing.T, servers []*redistest.Server, l *redlock.Locker) {
	t.Helper()
	_, err := l.TryAcquire(Soon(t), Key, LongTTL, redlock.Fenced())
	Is(t, err, redlock.ErrNoQuorum)
	redistest.Eventually(t, Promptly, func() bool { return Holders(t, servers, "") == 0 },
		"what was taken to be released")
}

// The master sets the key before it reads the counter, so it has to remove the key again.
func TestMastersWithoutAUsableCounterAreLeftClean(t *testing.T) {
	for name, spoil := range map[string]func(s *redistest.Server){
		"another type": func(s *redistest.Server) { Must(t, s.Client().Set(t.Context(), counterKey, "many", 0).Err()) },
		"at its end":   func(s *redistest.Server) { setCounter(t, s, single.MaxToken) },
	} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 3)
			for _, s := range servers {
				spoil(s)
			}
			notFenced(t, servers, Dial(t, servers, redlock.Options{}))
		})
	}
}

// racing is a master with a counter that others raise: once before each raise of ours, until the given number is used
// up.
type racing struct {
	redlock.Master
	server *redistest.Server
	left   atomic.Int64
	rounds atomic.Int64 // acquisitions of ours
}

func (m *racing) Do(ctx context.Context, batch []*single.Call) {
	for _, c := range batch {
		if c.Request.Op == single.Acquire {
			m.rounds.Add(1)
		}
		if c.Request.Op == single.Raise && m.left.Add(-1) >= 0 {
			r := single.Request{
				Op: single.Acquire, Keys: c.Request.Keys, Owner: "another", TTL: LongTTL, Fence: true, Retained: true,
				Token: c.Request.Token + 10,
			}
			m.Master.Do(ctx, []*single.Call{{Request: &r}}) // refused
		}
	}
	m.Master.Do(ctx, batch)
}

// Counters that grow while a token is being agreed on are outrun, for as long as a try may take.
func TestARaiseThatComesTooLateIsRepeated(t *testing.T) {
	for _, races := range []int64{1, 3, 9} {
		servers := redistest.StartN(t, 3)
		setCounter(t, servers[0], uint64(time.Now().Add(time.Hour).UnixMicro()))
		var racers []*racing
		l := Wrapped(t, servers, redlock.Options{}, func(i int, m redlock.Master) redlock.Master {
			if i == 2 {
				return Cut(m, func(*single.Request) bool { return true })
			}
			r := &racing{Master: m, server: servers[i]}
			r.left.Store(races)
			racers = append(racers, r)
			return r
		})
		lock, err := l.TryAcquire(Soon(t), Key, LongTTL, redlock.Fenced())
		Must(t, err)
		for _, r := range racers {
			if once := r.rounds.Load() == 1; once != (races < 4) {
				t.Errorf("%d races: %d rounds", races, r.rounds.Load())
			}
			if got := counter(t, r.server); got != lock.Token() {
				t.Errorf("%d races: the token is %d, and %s counts %d", races, lock.Token(), r.server.Addr(), got)
			}
		}
		Give(t, lock)
	}
}

func TestExtendRaisesTheCounterOfAMasterThatLostIt(t *testing.T) {
	servers, l := Started(t, 3)
	lock := Take(t, l, Key, LongTTL, redlock.Fenced())
	Everywhere(t, servers, lock)
	servers[0].RestartEmpty()
	redistest.Eventually(t, Promptly, func() bool {
		Must(t, lock.Extend(Soon(t), LongTTL))
		return servers[0].Client().Exists(t.Context(), Key, counterKey).Val() == 2
	}, "an extension to repair the master that lost everything")
	if got := counter(t, servers[0]); got != lock.Token() {
		t.Errorf("the counter is %d, want the token, %d", got, lock.Token())
	}
	Give(t, lock)
}

// Hazard 28.
func TestHazard28CountersOutliveLocksAndNotForEver(t *testing.T) {
	servers, l := Started(t, 1)
	lock := Take(t, l, Key, LongTTL, redlock.Fenced())
	Give(t, lock)
	left := servers[0].Client().PTTL(t.Context(), counterKey).Val()
	if left < 24*time.Hour || left > 366*24*time.Hour {
		t.Errorf("the counter is kept for %v", left)
	}
}

func TestOnlyFencedLocksHaveTokens(t *testing.T) {
	servers, l := Started(t, 1)
	for name, opts := range map[string][]redlock.Option{
		"plain": nil, "shared": {redlock.Shared()}, "exclusive": {redlock.Exclusive()}, "several": {
			redlock.AndKeys("more"),
		},
	} {
		lock := Take(t, l, Key, LongTTL, opts...)
		if lock.Token() != 0 {
			t.Errorf("%s: token %d", name, lock.Token())
		}
		Give(t, lock)
	}
	if n := servers[0].Client().Exists(t.Context(), counterKey).Val(); n != 0 {
		t.Error("a counter was made")
	}
}
