package single

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// pool makes connections to one master and keeps them. There are never more than PoolSize of them, those that are being
// made included.
//
// A batch that finds no idle connection waits, first come first served and until its deadline, for the next one that is
// there: one that another batch gives back, or one that is being made. A connection is made for nobody in particular, and
// making it outlasts the batch that it was begun for: a master may be further away than a request has time. So a batch
// that finds one being made for a batch that has gone waits for that one; each beginning its own would let none come to
// its end. But that one may be stuck, its first packet lost, so after a while one more is begun.
type pool struct {
	config wire.Config
	opt    *redis.Options // with go-redis's defaults
	guard  *guard         // nil: none
	size   int
	ctx    context.Context
	cancel context.CancelFunc
	dials  sync.WaitGroup

	mu      sync.Mutex
	idle    []*conn   // the latest used last; none while somebody waits
	waiting list.List // of *connWait, the first come first
	all     int       // connections in use, idle and being made
	dialing int       // of these, being made
	latest  time.Time // when the last of those was begun
	closed  bool
}

// connWait is a batch that waits for a connection.
type connWait struct {
	at  *list.Element
	got chan grant // of one
}

// grant is what a batch that waits gets: a connection, or why it gets none.
type grant struct {
	conn *conn
	made bool // nobody has used it before
	err  error
}

// conn is one connection. It is used by one batch at a time.
type conn struct {
	*wire.Conn
	out    []byte
	args   []arg // of a bundle
	expect wire.Expect
	born   time.Time
	used   time.Time // when its last batch was answered
}

const (
	// keepBuffer bounds what a connection keeps for its next batch: one with huge keys is rare.
	keepBuffer = 1 << 20
	// stuckAfter is the age of the youngest connection being made at which one more is begun for a batch that could wait for
	// that one. It doubles with each that is more than batches wait.
	stuckAfter = 50 * time.Millisecond
	// staleAfter is the age at which a connection is made anew because the user on it lacks a right: another server may have the address
	// by now. Younger ones are kept, or a missing right would cost a connection for each request.
	staleAfter = time.Second
	// closePatience bounds close's wait for connections being made, which end at once unless a user's function does not.
	closePatience = time.Second
)

// newPool makes connections by opt; full are the same options with go-redis's defaults.
func newPool(opt, full *redis.Options, g *guard) *pool {
	p := &pool{opt: full, guard: g, size: full.PoolSize}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.config = wire.Config{
		Network: full.Network, Addr: full.Addr, TLS: opt.TLSConfig, Dialer: opt.Dialer, Credentials: credentials(opt),
		Protocol: full.Protocol, ClientName: opt.ClientName, DB: opt.DB,
	}
	return p
}

// take returns a connection on which nothing is left to be read: the one that was used last, if one is idle.
func (p *pool) take(ctx context.Context) (*conn, error) {
	for {
		c, err := p.reuse(time.Now())
		if c != nil || err != nil {
			return c, err
		}
		if err := p.guard.refusing(); err != nil {
			return nil, err
		}
		got := p.wait(ctx)
		if got.err != nil || got.made || got.conn.Clean() {
			return got.conn, got.err
		}
		p.drop(got.conn)
	}
}

// patience is for how long a connection may take to be made, whoever waits for it.
func (p *pool) patience() time.Duration { return dialTimeout + max(0, p.opt.ReadTimeout) }

// wait waits for a connection until ctx's deadline, and sees to it that one is being made if there may be one more.
func (p *pool) wait(ctx context.Context) grant {
	w, patience, err := p.queue(time.Now())
	if err != nil {
		return grant{err: err}
	}
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline))
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got := <-w.got:
		return got
	case <-ctx.Done():
	case <-timer.C:
	}
	return p.leave(w)
}

// queue begins to wait, for so long at most.
func (p *pool) queue(now time.Time) (w *connWait, patience time.Duration, err error) {
	w = &connWait{got: make(chan grant, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, 0, redis.ErrClosed
	}
	if c := p.popIdleLocked(); c != nil { // given back a moment ago
		w.got <- grant{conn: c}
		return w, p.patience(), nil
	}
	w.at = p.waiting.PushBack(w)
	p.growLocked(now)
	if spare := p.dialing - p.waiting.Len(); spare >= 0 && p.all < p.size && now.Sub(p.latest) >= stuckAfter<<min(spare, 8) {
		p.dialLocked(now)
	}
	if p.dialing == 0 { // all are in use
		return w, p.opt.PoolTimeout, nil
	}
	return w, p.patience(), nil
}

// leave ends a wait in vain. If there is a connection after all, it is given.
func (p *pool) leave(w *connWait) grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case got := <-w.got:
		return got
	default:
	}
	p.waiting.Remove(w.at)
	if p.dialing == 0 {
		return grant{err: redis.ErrPoolTimeout}
	}
	if p.config.TLS != nil {
		return grant{err: fmt.Errorf("single: no connection by TLS yet; a port without TLS (redis://) does not answer: %w", context.DeadlineExceeded)}
	}
	return grant{err: fmt.Errorf("single: no connection yet: %w", context.DeadlineExceeded)}
}

// growLocked begins connections until as many are being made as batches wait, or there may not be more.
func (p *pool) growLocked(now time.Time) {
	for !p.closed && p.dialing < p.waiting.Len() && p.all < p.size {
		p.dialLocked(now)
	}
}

// dialLocked begins a connection.
func (p *pool) dialLocked(now time.Time) {
	p.all++
	p.dialing++
	p.latest = now
	p.dials.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.patience())
		defer cancel()
		p.made(p.connect(ctx))
	})
}

// connect makes a connection and lets the guard look at it.
func (p *pool) connect(ctx context.Context) (*conn, error) {
	c, err := p.guard.connect(ctx, &p.config)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &conn{Conn: c, born: now, used: now}, nil
}

// made takes a connection that has been made, or the reason why not. That is told to the first batch that waits, unless
// enough others are being made.
func (p *pool) made(c *conn, err error) {
	p.mu.Lock()
	p.dialing--
	var unwanted *conn
	if err == nil {
		unwanted = p.giveLocked(grant{conn: c, made: true})
	} else {
		p.all--
		if p.dialing < p.waiting.Len() {
			p.firstLocked().got <- grant{err: err}
		}
		p.growLocked(time.Now())
	}
	p.mu.Unlock()
	if unwanted != nil {
		_ = unwanted.Close()
	}
}

// firstLocked takes out the batch that has waited longest. There is one.
func (p *pool) firstLocked() *connWait { return p.waiting.Remove(p.waiting.Front()).(*connWait) }

// giveLocked gives a connection to the batch that has waited longest, or keeps it. What is returned is to be closed.
func (p *pool) giveLocked(got grant) (unwanted *conn) {
	switch {
	case p.closed:
		p.all--
		return got.conn
	case p.waiting.Len() > 0:
		p.firstLocked().got <- got
	default:
		p.idle = append(p.idle, got.conn)
	}
	return nil
}

// put gives a connection back for the next batch.
func (p *pool) put(c *conn) {
	if cap(c.out) > keepBuffer {
		c.out, c.args = nil, nil
	}
	p.mu.Lock()
	unwanted := p.giveLocked(grant{conn: c})
	p.mu.Unlock()
	if unwanted != nil {
		_ = unwanted.Close()
	}
}

// drop closes a connection, which makes room for another one.
func (p *pool) drop(c *conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	p.growLocked(time.Now())
}

// close closes what is idle and gives up what is being made; what is in use is closed when its batch has ended. It returns
// when nothing is being made any more, but for what hangs in a function of the user's.
func (p *pool) close() error {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.all -= len(idle)
	for p.waiting.Len() > 0 {
		p.firstLocked().got <- grant{err: redis.ErrClosed}
	}
	p.mu.Unlock()
	p.cancel()
	var err error
	for _, c := range idle {
		err = errors.Join(err, c.Close())
	}
	ended := make(chan struct{})
	go func() {
		p.dials.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closePatience):
	}
	return err
}
