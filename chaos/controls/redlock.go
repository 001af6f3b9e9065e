// Package controls has lock libraries that are broken on purpose, each in one way that real ones were, and one that is
// not. A harness that does not catch every one of the broken has proved nothing about the others.
//
// They are one small Redlock, written to be read and not to be used: no waiting but polling, no fencing, no renewal.
package controls

import (
	"context"
	crypto "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Variant names a way to be broken.
type Variant string

// The variants.
const (
	// Textbook is not broken: the algorithm as it was published, with its clean-up done properly.
	Textbook Variant = "textbook"
	// QuorumOfTwo takes two grants for a majority, of any number of masters.
	QuorumOfTwo Variant = "quorum-of-two"
	// NoDrift leaves the drift allowance out of the validity.
	NoDrift Variant = "no-drift-allowance"
	// PlainDelete releases by DEL, even if another owner has the key.
	PlainDelete Variant = "plain-del"
	// CancelStragglers cancels the requests that are still under way when a round is decided, and forgets them.
	CancelStragglers Variant = "cancel-stragglers"
	// Unguarded is Textbook under another name, for masters that forget: it lets a restarted one vote at once.
	Unguarded Variant = "no-restart-guard"
	// CountRepairs extends without asking whether it still has the key, and counts masters where it had to set it
	// again.
	CountRepairs Variant = "extend-counts-repairs"
	// MaxIncr takes the greatest of the masters' counters for a fencing token.
	MaxIncr Variant = "max-of-incr"
	// SingleNX asks one master only, with SET NX, as if it could not fail.
	SingleNX Variant = "single-set-nx"
)

// Broken lists the variants that must be caught.
func Broken() []Variant {
	return []Variant{QuorumOfTwo, NoDrift, PlainDelete, CancelStragglers, Unguarded, CountRepairs, MaxIncr, SingleNX}
}

const (
	// dialTimeout bounds connecting. A request may take a twentieth of the ttl, but at least
	// requestTimeout. A request that times out costs a connection, and on a busy machine new
	// connections cost so much that the next request times out too.
	dialTimeout    = time.Second
	requestTimeout = 60 * time.Millisecond
	retryWithin    = 60 * time.Millisecond
)

var (
	acquireScript = redis.NewScript(
		`if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0`,
	)
	// countScript is acquire with a counter that failed attempts of a round raise too.
	countScript = redis.NewScript(`local n = redis.call('INCR', KEYS[1] .. ':count')
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return n end return 0`)
	releaseScript = redis.NewScript(
		`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
	)
	extendScript = redis.NewScript(
		`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`,
	)
	repairScript = redis.NewScript(`local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if not held then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0`)
)

// New returns the variant as a subject. An unknown variant behaves like Textbook.
func New(v Variant) workload.Subject {
	for _, e := range blind() {
		if e.Name == string(v) {
			return e.Subject()
		}
	}
	return subject{v}
}

// subject implements workload.Subject.
type subject struct{ variant Variant }

func (s subject) Name() string { return string(s.variant) }

func (s subject) Supports(kind history.Kind) error {
	if kind == history.Plain || kind == history.Fenced && s.variant == MaxIncr {
		return nil
	}
	return fmt.Errorf("%w: %s has no %s locks", workload.ErrUnsupported, s.variant, kind)
}

func (s subject) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, endpoint.AllPlain(addrs))
}

// OpenSecured implements workload.Secured.
func (s subject) OpenSecured(ctx context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	return s.OpenTelling(ctx, masters, func(workload.Ballot) {})
}

// OpenTelling implements workload.VoteTeller.
func (s subject) OpenTelling(ctx context.Context, masters []endpoint.Endpoint,
	tell func(workload.Ballot),
) (workload.Locker, error) {
	if s.variant == SingleNX {
		masters = masters[:1]
	}
	l := &locker{
		variant: s.variant, quorum: len(masters)/2 + 1, tell: tell, closed: make(chan struct{}), entry: &Entry{},
		number: opened.Add(1), failed: make([]atomic.Bool, len(masters)), left: make([]leftovers, len(masters)),
	}
	if s.variant == QuorumOfTwo {
		l.quorum = min(2, len(masters))
	}
	for _, m := range masters {
		opt, err := endpoint.Options(m)
		if err != nil {
			return nil, errors.Join(err, l.Close(ctx))
		}
		opt.MaxRetries, opt.ContextTimeoutEnabled, opt.DialTimeout, opt.DialerRetries = -1, true, dialTimeout, 1
		opt.ReadTimeout, opt.WriteTimeout, opt.DisableIdentity = dialTimeout, dialTimeout, true
		l.masters = append(l.masters, redis.NewClient(opt))
	}
	return l, nil
}

// opened counts clients.
var opened atomic.Uint64

// locker implements workload.Locker.
type locker struct {
	variant Variant
	entry   *Entry // of the catalogue; empty: none
	number  uint64 // of the client
	quorum  int
	masters []*redis.Client
	tell    func(workload.Ballot)
	cleanup sync.WaitGroup
	closed  chan struct{} // closed when the client is
	counted atomic.Uint64 // by those of the catalogue that count
	failed  []atomic.Bool // which masters have ever failed
	lazy    sync.Once     // begins the clock of StoppedClock
	keeps   keeps         // by those that keep something of each hold
	left    []leftovers   // by master
}

func (l *locker) Close(context.Context) error {
	close(l.closed)
	l.keeps.close()
	l.cleanup.Wait()
	var err error
	for _, m := range l.masters {
		err = errors.Join(err, m.Close())
	}
	return err
}

func (l *locker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		began := time.Now()
		h, err := l.try(ctx, r)
		if err == nil || r.Once {
			return h, err
		}
		// Contenders must not split the votes again and again. A try that waits for a silent master has keys on the
		// others for as long, so it must come less often.
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(rand.N(max(retryWithin, 8*time.Since(began)))):
		}
	}
}

// vote is one master's answer.
type vote struct {
	granted bool
	token   uint64
	err     error
}

func (l *locker) try(ctx context.Context, r workload.Request) (workload.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := &hold{
		locker: l, key: r.Key, owner: l.newOwner(), timeout: max(r.TTL/20, requestTimeout),
		acquired: make([]chan struct{}, len(l.masters)),
	}
	begin := time.Now()
	won, reached := l.ask(ctx, h, r)
	h.until = begin.Add(l.validity(r.TTL))
	if won && time.Now().Before(h.until) {
		return h, nil
	}
	if l.entry.careless {
		return nil, workload.ErrHeld
	}
	l.cleanup.Go(func() { _ = h.Release(context.WithoutCancel(ctx)) })
	switch {
	case won:
		return nil, workload.ErrExpired
	case reached < l.quorum:
		return nil, workload.ErrNoQuorum
	default:
		return nil, workload.ErrHeld
	}
}

func (l *locker) validity(ttl time.Duration) time.Duration {
	if l.variant == NoDrift {
		return ttl
	}
	return ttl - ttl/100 - 2*time.Millisecond
}

// ask sends the acquire to all masters and returns when the round is decided.
func (l *locker) ask(ctx context.Context, h *hold, r workload.Request) (won bool, reached int) {
	requests := context.WithoutCancel(ctx)
	cancel := func() {}
	if l.variant == CancelStragglers {
		requests, cancel = context.WithCancel(requests)
	}
	votes := make(chan vote, len(l.masters))
	for i, m := range l.masters {
		h.acquired[i] = make(chan struct{})
		l.cleanup.Go(func() {
			defer close(h.acquired[i])
			begin := time.Now()
			v := l.acquire(requests, m, h, r)
			if l.entry.vote != nil {
				v = l.entry.vote(l, i, v)
			}
			h.told(workload.OpAcquire, i, v.granted, v.err, begin)
			votes <- v
		})
	}
	granted, refused := 0, 0
	for range l.masters {
		v := <-votes
		switch {
		case v.err != nil:
			refused++
		case v.granted:
			granted, reached = granted+1, reached+1
			h.token = max(h.token, v.token)
		default:
			refused, reached = refused+1, reached+1
		}
		if granted >= l.quorum || len(l.masters)-refused < l.quorum {
			break
		}
	}
	cancel()
	return granted >= l.quorum, reached
}

func (l *locker) acquire(ctx context.Context, m *redis.Client, h *hold, r workload.Request) vote {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	if l.entry.set != nil {
		ok, err := l.entry.set(ctx, m, h, r.TTL)
		return vote{granted: ok && err == nil, err: err}
	}
	script := acquireScript
	if l.variant == MaxIncr {
		script = countScript
	}
	n, err := script.Run(ctx, m, []string{h.key}, h.owner, r.TTL.Milliseconds()).Uint64()
	v := vote{granted: n > 0, err: err}
	if l.variant == MaxIncr {
		v.token = n
	}
	return v
}

// hold implements workload.Hold.
type hold struct {
	locker   *locker
	key      string
	owner    string
	token    uint64
	until    time.Time
	timeout  time.Duration   // of one request
	acquired []chan struct{} // closed when the master's acquire has ended
}

func (l *locker) newOwner() string {
	if l.entry.newOwner != nil {
		return l.entry.newOwner(l)
	}
	return newOwner()
}

func newOwner() string {
	var b [16]byte
	_, _ = crypto.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (h *hold) Owner() string            { return h.owner }
func (h *hold) Token() uint64            { return h.token }
func (h *hold) Remaining() time.Duration { return time.Until(h.until) }

// Done implements workload.Hold: there is none.
func (h *hold) Done() <-chan struct{} { return nil }

func (h *hold) Extend(ctx context.Context, ttl time.Duration) error {
	script := extendScript
	if h.locker.variant == CountRepairs {
		script = repairScript
	} else if time.Now().After(h.until) {
		return workload.ErrLost
	}
	begin := time.Now()
	kept := h.everywhere(ctx, workload.OpExtend, func(ctx context.Context, i int) (bool, error) {
		n, err := script.Run(ctx, h.locker.masters[i], []string{h.key}, h.owner, ttl.Milliseconds()).Int()
		return n == 1, err
	})
	until := begin.Add(h.locker.validity(ttl))
	if kept < h.locker.quorum || time.Now().After(until) {
		return workload.ErrLost
	}
	h.until = until
	return nil
}

func (h *hold) Release(ctx context.Context) error {
	removed := h.everywhere(ctx, workload.OpRelease, func(ctx context.Context, i int) (bool, error) {
		m := h.locker.masters[i]
		if h.locker.variant == PlainDelete {
			n, err := m.Del(ctx, h.key).Result()
			return n == 1, err
		}
		if h.locker.variant != CancelStragglers {
			<-h.acquired[i]
		}
		n, err := releaseScript.Run(ctx, m, []string{h.key}, h.owner).Int()
		if err != nil && h.locker.variant != CancelStragglers && !h.locker.entry.forgets {
			h.locker.leave(i, h)
		}
		return n == 1, err
	})
	if removed < h.locker.quorum {
		return workload.ErrLost
	}
	return nil
}

// leave notes that a master did not confirm the release of a hold. One goroutine asks the master again for all such
// holds. With one for each, a master that is away would cost one for every attempt.
func (l *locker) leave(i int, h *hold) {
	left := &l.left[i]
	left.mu.Lock()
	defer left.mu.Unlock()
	if left.holds = append(left.holds, h); len(left.holds) == 1 {
		l.cleanup.Go(func() { l.tidy(i) })
	}
}

// tidy asks a master again, less and less often while it does not answer, until nothing is left: released, or gone by
// itself.
func (l *locker) tidy(i int) {
	left := &l.left[i]
	const least, most = 50 * time.Millisecond, 400 * time.Millisecond
	pause := least
	for h := left.first(); h != nil; {
		if time.Now().Before(h.until.Add(time.Second)) {
			bounded, cancel := context.WithTimeout(context.Background(), h.timeout)
			err := releaseScript.Run(bounded, l.masters[i], []string{h.key}, h.owner).Err()
			cancel()
			if err != nil {
				<-time.After(pause)
				pause = min(2*pause, most)
				continue
			}
			pause = least
		}
		h = left.next()
	}
}

// leftovers are the holds that a master has not confirmed the release of.
type leftovers struct {
	mu    sync.Mutex
	holds []*hold
}

func (l *leftovers) first() *hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds[0]
}

// next removes the first and returns the one after it; nil if there is none.
func (l *leftovers) next() *hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds = l.holds[1:]; len(l.holds) == 0 {
		return nil
	}
	return l.holds[0]
}

// told tells of a vote.
func (h *hold) told(op string, master int, granted bool, err error, begin time.Time) {
	b := workload.Ballot{
		Master: master, Op: op, Keys: []string{h.key}, Owner: h.owner, Vote: workload.VoteRefused,
		Took: time.Since(begin),
	}
	switch {
	case err != nil:
		b.Vote = workload.VoteUnknown
	case granted:
		b.Vote = workload.VoteGranted
	}
	h.locker.tell(b)
}

// everywhere asks all masters and counts those that said yes.
func (h *hold) everywhere(ctx context.Context, op string, f func(ctx context.Context, i int) (bool, error)) int {
	yes := make(chan bool, len(h.locker.masters))
	for i := range h.locker.masters {
		h.locker.cleanup.Go(func() {
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*h.timeout)
			defer cancel()
			begin := time.Now()
			ok, err := f(bounded, i)
			h.told(op, i, ok, err, begin)
			yes <- ok && err == nil
		})
	}
	n := 0
	for range h.locker.masters {
		if <-yes {
			n++
		}
	}
	return n
}
