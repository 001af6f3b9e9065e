package single_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// stay is the time in which a hold certainly existed: from the reply to its acquisition, until its ttl after the
// request or until its release. The client measures both. A server serves a request between sending and reply, so no
// server clock is needed.
type stay struct {
	request  single.Request
	from, to time.Time
	how      string
}

func (s *stay) String() string {
	return fmt.Sprintf("%d %s %s %s..%s %s", s.request.Kind, s.request.Owner, s.request.Hold,
		s.from.Format("05.000000"), s.to.Format("05.000000"), s.how)
}

// history collects the observations of several clients about the holds of one key.
type history struct {
	mu    sync.Mutex
	stays []stay
	wrong []string
	seen  map[string]int
}

func (h *history) add(s *stay) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stays = append(h.stays, *s)
}

func (h *history) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[what]++
}

func (h *history) accuse(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

// clash appends the pairs of holds that existed together and must not.
func (h *history) clash() {
	for i := range h.stays {
		for j := range h.stays[:i] {
			a, b := &h.stays[i], &h.stays[j]
			together := a.from.Before(b.to) && b.from.Before(a.to)
			readers := a.request.Kind == single.Shared && b.request.Kind == single.Shared
			writers := a.request.Kind == single.Exclusive && b.request.Kind == single.Exclusive &&
				a.request.Owner == b.request.Owner
			if together && !readers && !writers {
				h.wrong = append(h.wrong, fmt.Sprintf("together: %v and %v", a, b))
			}
		}
	}
}

// lodger is a client that takes one hold after another, and uses it as holders do.
type lodger struct {
	*history
	m      *single.Master
	random *rand.Rand
	name   string
	n      int
}

// ask sends a request, now and then in a batch with releases of other keys.
func (u *lodger) ask(ctx context.Context, r single.Request) (reply single.Reply, before, after time.Time, err error) {
	before = time.Now()
	call := &single.Call{Request: &r}
	batch := []*single.Call{call}
	if u.random.IntN(3) == 0 {
		batch = append(batch, releaseOf("none1", single.Shared), releaseOf("none2", single.Exclusive))
		u.random.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	}
	u.m.Do(ctx, batch)
	return call.Reply, before, time.Now(), call.Err
}

// once takes a hold, uses it for a while, and releases it or lets it end.
func (u *lodger) once(ctx context.Context) {
	u.n++
	r := single.Request{
		Op: single.Acquire, Kind: single.Shared, Keys: []string{"key"}, Owner: u.name, Hold: fmt.Sprint(u.n),
		TTL: time.Duration(2+u.random.IntN(12)) * time.Millisecond,
	}
	if u.random.IntN(2) == 0 {
		r.Kind, r.Owner = single.Exclusive, u.name[:1] // which two users are
		r.Hold = u.name + r.Hold
	}
	if u.random.IntN(3) == 0 {
		r.Waiter = u.name
	}
	reply, before, after, err := u.ask(ctx, r)
	if err != nil || reply.Outcome != single.Granted {
		u.count(fmt.Sprintf("acquire %d", reply.Outcome))
		if r.Waiter != "" {
			leave := as(single.Leave, r)
			leave.Owner, leave.Hold = "", ""
			_, _, _, _ = u.ask(ctx, leave)
		}
		if err != nil { // an error reply says that there is nothing
			u.count("errors")
		}
		return
	}
	u.count("acquired")
	s := &stay{request: r, from: after, to: before.Add(r.TTL)}
	for u.random.IntN(3) > 0 {
		u.goOn(ctx, s)
	}
	if u.random.IntN(4) > 0 {
		u.release(ctx, s)
	}
	u.add(s)
}

// goOn requests the hold again, or extends it, or, like a late request, asks for less than it has.
func (u *lodger) goOn(ctx context.Context, s *stay) {
	next := as(single.Extend, s.request)
	next.TTL = time.Duration(2+u.random.IntN(14)) * time.Millisecond
	next.Repair = u.random.IntN(4) == 0
	if u.random.IntN(4) == 0 {
		next.Op, next.Repair = single.Acquire, false
	}
	if u.random.IntN(4) == 0 {
		<-time.After(time.Duration(u.random.IntN(int(s.request.TTL)))) // the hold may end, at any moment of it
	}
	reply, before, after, err := u.ask(ctx, next)
	if err != nil {
		u.count("errors")
		return
	}
	s.how += fmt.Sprintf(" op%d/%v=%d@%s", next.Op, next.TTL, reply.Outcome, after.Format("05.000000"))
	switch reply.Outcome {
	case single.Refused, single.Repaired:
		if after.Before(s.to) {
			u.accuse("lost or cut short: %v: %+v", s, reply)
		}
		if reply.Outcome == single.Repaired { // it is another stay
			u.add(s)
			s.from, s.to = after, before.Add(next.TTL)
		}
		u.count("ended")
	default:
		u.count("went on")
		// The hold may have ended and, after a new request, come back. Then it existed for some time, or at least for
		// a moment, in between.
		if before.After(s.to) || next.Op == single.Acquire && after.After(s.to) {
			u.add(s)
			s.from, s.to = after, before.Add(next.TTL)
		}
		if to := before.Add(next.TTL); to.After(s.to) {
			s.to = to
		}
	}
}

func (u *lodger) release(ctx context.Context, s *stay) {
	r := as(single.Release, s.request)
	reply, before, after, err := u.ask(ctx, r)
	if err != nil {
		u.count("errors")
		return
	}
	if reply.Outcome != single.Granted && after.Before(s.to) {
		u.accuse("not found by its release: %v: %+v", s, reply)
	}
	if before.Before(s.to) {
		s.to = before
	}
	u.count("released")
	again, _, _, err := u.ask(ctx, as(single.Extend, s.request))
	if err == nil && again.Outcome != single.Refused {
		u.accuse("there behind its release: %v: %+v", s, again)
	}
}

// live lets users hold the key for a while, with or without trouble, and returns their history.
func live(t *testing.T, seed uint64, rounds int, trouble func(random *rand.Rand, s *redistest.Server)) *history {
	t.Helper()
	server := redistest.Start(t)
	limitedMaster, without := limited(t, server)
	masters := []*single.Master{limitedMaster, dial(t, server.URL()), limitedMaster, dial(t, server.URL())}
	h := &history{seen: make(map[string]int)}
	done, cancel := context.WithCancel(t.Context())
	var users sync.WaitGroup
	for i, name := range []string{"a1", "a2", "b1", "b2"} {
		users.Go(func() {
			u := &lodger{history: h, m: masters[i], random: rand.New(rand.NewPCG(seed, uint64(i))), name: name}
			for range rounds {
				u.once(t.Context())
			}
		})
	}
	go func() {
		users.Wait()
		cancel()
	}()
	random := rand.New(rand.NewPCG(seed, 99))
	rights := []string{
		"zadd", "pexpire", "del", "get", "pttl", "time", "type", "zscore", "zcount", "zrevrange",
		"zrange", "zremrangebyscore", "zrem", "mget", "exists", "set",
	}
	for done.Err() == nil {
		if trouble != nil {
			trouble(random, server)
			continue
		}
		switch random.IntN(3) {
		case 0:
			full(t, server, true)
			full(t, server, false)
		case 1:
			without(t, rights[random.IntN(len(rights))])
			without(t)
		default:
			<-time.After(time.Millisecond) // without trouble
		}
	}
	users.Wait()
	// longer than any hold, and than the claim of a waiter that had no right to take it back
	stays := time.After(10 * time.Second)
	for there := exists(t, server, "key"); there; there = there && exists(t, server, "key") {
		select {
		case <-stays:
			h.accuse("the key stays for ever")
			there = false
		case <-time.After(time.Millisecond):
		}
	}
	h.clash()
	return h
}

// Many users share one key, on a master that is full at times; some lack rights at times. The ttls are milliseconds.
// So holds come, go, become members of the set, and end at any moment of another user's request.
func TestHoldsOfOneKeyUnderTrouble(t *testing.T) {
	t.Parallel()
	seeds, rounds, seen := 2, 400, make(map[string]int)
	if os.Getenv("REDLOCK_SOAK") != "" {
		seeds, rounds = 40, 2000
	}
	for range seeds {
		seed := rand.Uint64()
		h := live(t, seed, rounds, nil)
		if len(h.wrong) > 0 {
			t.Fatalf("seed %d: %d things are wrong:\n%s", seed, len(h.wrong),
				strings.Join(h.wrong[:min(8, len(h.wrong))], "\n"))
		}
		t.Logf("seed %d: %v", seed, h.seen)
		for what, n := range h.seen {
			seen[what] += n
		}
	}
	for _, what := range []string{
		"acquired", "went on", "ended", "released", "errors", fmt.Sprintf("acquire %d", single.Refused),
	} {
		if seen[what] == 0 {
			t.Errorf("nothing %s: %v", what, seen)
		}
	}
}

// If a program deletes the key, holds are seen to be lost. If the key loses its expiry, holds are seen not to end.
func TestControlLostAndEndlessHoldsAreFound(t *testing.T) {
	t.Parallel()
	for want, trouble := range map[string]func(random *rand.Rand, s *redistest.Server){
		"lost or cut short": func(_ *rand.Rand, s *redistest.Server) { s.Client().Del(t.Context(), "key") },
		"together":          func(_ *rand.Rand, s *redistest.Server) { s.Client().Del(t.Context(), "key") },
		"stays for ever":    func(_ *rand.Rand, s *redistest.Server) { s.Client().Persist(t.Context(), "key") },
	} {
		seen := false
		// where requests take longer than the ttls, no two holds are there together
		for seed := uint64(1); seed <= 3 && !seen; seed++ {
			h := live(t, seed, 300, trouble)
			seen = strings.Contains(strings.Join(h.wrong, "\n"), want)
			t.Logf("seed %d, %q: %d things, %v", seed, want, len(h.wrong), h.seen)
		}
		if !seen {
			t.Errorf("%q is not seen", want)
		}
	}
}
