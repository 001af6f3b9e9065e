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

// pool makes connections to one master and keeps them: at most PoolSize, including those that are being made.
//
// A batch that finds no idle connection waits for the next one, until its deadline. Batches are served in the order
// of arrival. The connection may come back from another batch or be a new one. A new connection is not tied to a
// batch, and making it continues when its batch has gone: the network may need more time than a request has. The next
// batch then waits for this connection. If each batch began its own connection, none might ever be ready. But the
// connection may be stuck, with its first packet lost, so after a while the pool begins one more.
type pool struct {
	config wire.Config
	opt    *redis.Options // with go-redis's defaults
	guard  *guard         // nil: none
	size   int
	ctx    context.Context
	cancel context.CancelFunc
	dials  sync.WaitGroup

	mu      sync.Mutex
	idle    []*conn   // the latest used last; empty while a batch waits
	waiting list.List // of *connWait, in the order of arrival
	all     int       // connections in use, idle and being made
	dialing int       // connections being made, included in all
	latest  time.Time // when the latest of these was begun
	closed  bool
}

// connWait is a batch that waits for a connection.
type connWait struct {
	at  *list.Element
	got chan grant // of one
}

// grant is the result for a waiting batch: a connection or an error.
type grant struct {
	conn *conn
	made bool // new, never used
	err  error
}

// conn is one connection. It is used by one batch at a time.
type conn struct {
	*wire.Conn
	out    []byte
	words  command // of a bundle
	expect wire.Expect
	born   time.Time
	used   time.Time // when its last batch was answered
}

const (
	// keepBuffer bounds the buffer that a connection keeps for its next batch: huge keys are rare.
	keepBuffer = 1 << 20
	// A batch could wait for a connection that is being made. If the youngest such connection is stuckAfter old, the
	// pool begins another one. The time doubles with each connection that is more than batches wait for.
	stuckAfter = 50 * time.Millisecond
	// staleAfter is the age at which a connection is replaced because its user lacks a right: another server may have
	// the address by now. Younger connections are kept. Otherwise a missing right would cost a connection for each
	// request.
	staleAfter = time.Second
	// closePatience bounds close's wait for connections that are being made. They end at once, unless a user's
	// function does not.
	closePatience = time.Second
)

// newPool makes connections by opt. full has the same options with go-redis's defaults.
func newPool(opt, full *redis.Options, g *guard) *pool {
	p := &pool{opt: full, guard: g, size: full.PoolSize}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.config = wire.Config{
		Network: full.Network, Addr: full.Addr, TLS: opt.TLSConfig, Dialer: opt.Dialer, Credentials: credentials(opt),
		Protocol: full.Protocol, ClientName: opt.ClientName, DB: opt.DB,
	}
	return p
}

// take returns a connection with no unread replies: the idle connection that was used last, or a new one.
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

// patience is for how long a connection may take to be made, independent of the batch that waits for it.
func (p *pool) patience() time.Duration { return dialTimeout + max(0, p.opt.ReadTimeout) }

// wait waits for a connection until ctx's deadline. It begins a new connection if the pool may have one more.
func (p *pool) wait(ctx context.Context) grant {
	w, patience, err := p.queue(time.Now())
	if err != nil {
		return grant{err: err}
	}
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline))
	}
	select {
	case got := <-w.got:
		return got
	case <-ctx.Done():
	case <-time.After(patience):
	}
	return p.leave(w)
}

// queue begins to wait. patience is for how long at most.
func (p *pool) queue(now time.Time) (w *connWait, patience time.Duration, err error) {
	w = &connWait{got: make(chan grant, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, 0, redis.ErrClosed
	}
	if c := p.popIdleLocked(); c != nil { // returned to the pool a moment ago
		w.got <- grant{conn: c}
		return w, p.patience(), nil
	}
	w.at = p.waiting.PushBack(w)
	p.growLocked(now)
	if spare := p.dialing - p.waiting.Len(); spare >= 0 && p.all < p.size &&
		now.Sub(p.latest) >= stuckAfter<<min(spare, 8) {
		p.dialLocked(now)
	}
	if p.dialing == 0 { // all are in use
		return w, p.opt.PoolTimeout, nil
	}
	return w, p.patience(), nil
}

// leave ends a wait without a connection. If a connection has come after all, it is granted.
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
		return grant{
			err: fmt.Errorf("single: no connection by TLS yet; a port without TLS (redis://) does not answer: %w",
				context.DeadlineExceeded),
		}
	}
	return grant{err: fmt.Errorf("single: no connection yet: %w", context.DeadlineExceeded)}
}

// growLocked begins connections until there is one for each waiting batch, or the pool is full.
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

// connect makes a connection and has the guard check it.
func (p *pool) connect(ctx context.Context) (*conn, error) {
	c, err := p.guard.connect(ctx, &p.config)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &conn{Conn: c, born: now, used: now}, nil
}

// made takes a new connection, or the reason why there is none. The first waiting batch gets the reason, unless
// enough other connections are being made.
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

// firstLocked takes out the batch that has waited longest. There must be one.
func (p *pool) firstLocked() *connWait { return p.waiting.Remove(p.waiting.Front()).(*connWait) }

// giveLocked gives a connection to the batch that has waited longest, or keeps it. The caller must close the
// connection that it returns.
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

// put returns a connection to the pool for the next batch.
func (p *pool) put(c *conn) {
	if cap(c.out) > keepBuffer {
		c.out, c.words = nil, nil
	}
	p.mu.Lock()
	unwanted := p.giveLocked(grant{conn: c})
	p.mu.Unlock()
	if unwanted != nil {
		_ = unwanted.Close()
	}
}

// drop closes a connection and so makes room for another one.
func (p *pool) drop(c *conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	p.growLocked(time.Now())
}

// close closes the idle connections and cancels those that are being made. A connection in use is closed when its
// batch has ended. close returns when no connection is being made any more, or after closePatience if a user's
// function hangs.
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
