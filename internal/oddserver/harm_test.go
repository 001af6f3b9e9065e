package oddserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/oddserver"
)

const (
	// patience bounds what should happen at once; a starved machine needs a part of it.
	patience = 20 * time.Second
	// timeout is how long to wait for one master.
	timeout = 250 * time.Millisecond
	// password and database force a set-up on each connection.
	password, database = "right", 1
	// guardTime is short, because servers must have run for longer than that.
	guardTime = time.Second
)

// world is five real servers.
type world struct {
	addrs   []string
	clients []*redis.Client // to look at the real data
}

func newWorld(addrs []string) *world {
	w := &world{addrs: addrs}
	for _, addr := range addrs {
		w.clients = append(w.clients, redis.NewClient(&redis.Options{Addr: addr, Password: password, DB: database}))
	}
	return w
}

func (w *world) close() {
	for _, c := range w.clients {
		_ = c.Close()
	}
}

// holders counts the servers that have granted key to owner.
func (w *world) holders(ctx context.Context, key, owner string) int {
	n := 0
	for _, c := range w.clients {
		if got, err := c.Get(ctx, key).Result(); err == nil && got == owner {
			n++
		}
	}
	return n
}

// within checks cond until it is true or the time is over. It reports the last result.
func within(d time.Duration, cond func() bool) bool {
	tick, ended := time.NewTicker(2*time.Millisecond), time.After(d)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ended:
			return cond()
		}
	}
	return true
}

// eventually checks cond until it is true. If it is still false after patience, the error says what.
func eventually(cond func() bool, what string, args ...any) error {
	if !within(patience, cond) {
		return fmt.Errorf("still not: "+what, args...)
	}
	return nil
}

// stand is a running case: servers, some odd, and two Lockers over all.
type stand struct {
	*world
	odd     []*oddserver.Server
	behind  []int // what odd is in front of
	honest  []int
	first   *redlock.Locker
	second  *redlock.Locker
	closers []func()
}

// stand makes a stand. turn decides which servers are odd.
func (w *world) stand(script oddserver.Script, odd, turn int, brought, guarded bool) (*stand, error) {
	s := &stand{world: w}
	addrs := make([]string, len(w.addrs))
	for i, addr := range w.addrs {
		addrs[i] = addr
		if (i+turn)%len(w.addrs) >= odd {
			s.honest = append(s.honest, i)
			continue
		}
		server, err := oddserver.Run(addr, script)
		if err != nil {
			return s, err
		}
		s.closers = append(s.closers, server.Close)
		s.odd, s.behind = append(s.odd, server), append(s.behind, i)
		addrs[i] = server.Addr()
	}
	var err error
	if s.first, err = s.locker(addrs, brought, guarded); err == nil {
		s.second, err = s.locker(addrs, brought, guarded)
	}
	return s, err
}

func (s *stand) locker(addrs []string, brought, guarded bool) (*redlock.Locker, error) {
	opts := redlock.Options{RequestTimeout: timeout}
	if guarded {
		opts.RestartGuard = guardTime
	}
	var locker *redlock.Locker
	var err error
	if brought {
		masters := make([]redlock.Master, len(addrs))
		for i, addr := range addrs {
			client := redis.NewClient(&redis.Options{Addr: addr, Password: password, DB: database, ClientName: "odd"})
			s.closers = append(s.closers, func() { _ = client.Close() })
			if masters[i], err = redlock.NewMaster(client); err != nil {
				return nil, err
			}
		}
		locker, err = redlock.New(masters, opts)
	} else {
		urls := make([]string, len(addrs))
		for i, addr := range addrs {
			urls[i] = fmt.Sprintf("redis://:%s@%s/%d?client_name=odd&protocol=3", password, addr, database)
		}
		locker, err = redlock.Dial(context.Background(), urls, opts)
	}
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond) // odd masters never confirm
		defer cancel()
		_ = locker.Close(ctx)
	})
	return locker, nil
}

// close closes everything in reverse order.
func (s *stand) close() {
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		s.closers[last]()
		s.closers = s.closers[:last]
	}
}

// play plays a case and returns the fault. Sometimes the odd answer is not given, because a machine was slow and its
// master was left out. Such a run proves nothing and is repeated.
func (w *world) play(c oddCase) error {
	for range 5 {
		acted, err := w.playOnce(c)
		if err != nil || acted {
			return err
		}
	}
	return fmt.Errorf("never at %s, where the odd answer was to be given", c.step)
}

func (w *world) playOnce(c oddCase) (acted bool, err error) {
	s, err := w.stand(script(c.step, c.answer.act), c.odd, c.number, c.brought, !c.check && guarded(c.step))
	defer s.close()
	if err != nil {
		return false, err
	}
	if c.check {
		err := s.checked()
		return slices.ContainsFunc(s.odd, func(o *oddserver.Server) bool { return o.Acted() > 0 }), err
	}
	key, ttl := fmt.Sprintf("case:%d:%d", c.number, time.Now().UnixNano()), time.Minute
	if guarded(c.step) {
		ttl = guardTime
	}
	var opts []redlock.Option
	if c.step == "ZADD" || c.number%2 == 0 && c.step != "SET" {
		opts = append(opts, redlock.Fenced())
	}
	if c.step == "ZADD" { // the first fenced acquisition of a key is a script, later ones are SET and ZADD
		if err := s.once(key, ttl, opts); err != nil {
			return false, unclear(err)
		}
	}
	if c.odd > len(w.addrs)/2 {
		return true, s.noQuorum(key, ttl, opts, c.claims())
	}
	err = s.quorum(key, ttl, opts, c.step, c.claims())
	return slices.ContainsFunc(s.odd, func(o *oddserver.Server) bool { return o.Acted() > 0 }), err
}

// checkTime is how long a check may take here. Without faults it takes half a second.
const checkTime = 2 * time.Second

// checked runs Check. It must end with its context, and may report only the odd servers.
func (s *stand) checked() error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	began := time.Now()
	report, err := s.first.Check(ctx)
	if took := time.Since(began); took > checkTime+patience/4 {
		return fmt.Errorf("a check of %v took %v", checkTime, took)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("check: %w", err)
	}
	if err == nil && len(report.Masters) != len(s.addrs) {
		return fmt.Errorf("%d masters were reported, want %d", len(report.Masters), len(s.addrs))
	}
	return nil
}

// once takes a lock and releases it, in one attempt: on a slow machine a second one would be answered oddly.
func (s *stand) once(key string, ttl time.Duration, opts []redlock.Option) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := s.first.TryAcquire(ctx, key, ttl, opts...)
	if err != nil {
		return err
	}
	// all, or it does not count
	within(time.Second, func() bool { return s.holders(ctx, key, lock.Owner()) == len(s.addrs) })
	return lock.Release(ctx)
}

// quorum checks a minority of odd servers: everything must work. If these servers claim to have done commands that
// they have not done, a lock may be taken while another is released. Then too few other servers may have granted the
// lock for it to be extended.
func (s *stand) quorum(key string, ttl time.Duration, opts []redlock.Option, step string, claims bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := s.first.Acquire(ctx, key, ttl, opts...)
	if err != nil {
		return fmt.Errorf("the first Locker: %w", err)
	}
	if ttl > guardTime { // else it may have lapsed
		given := s.given(ctx, key, lock.Owner())
		if given != nil && !claims {
			return given
		}
		if other, err := s.second.TryAcquire(ctx, key, ttl, opts...); err == nil {
			return fmt.Errorf("a second lock, %s beside %s", other.Owner(), lock.Owner())
		}
		holder, err := s.second.Holder(ctx, key)
		// else masters that may not say so were of its quorum
		known := func() bool { return given == nil && s.honestly(ctx, lock) }
		for (err != nil || !holder.Held) && known() && ctx.Err() == nil { // a slow machine
			holder, err = s.second.Holder(ctx, key)
		}
		if (err != nil || holder.ID != lock.ID()) && known() {
			return fmt.Errorf("the holder is %q (%w), want %q", holder.ID, err, lock.ID())
		}
	}
	next := make(chan error, 1)
	go func() {
		lock, err := s.second.Acquire(ctx, key, ttl, opts...)
		if err == nil {
			err = s.done(lock, ttl, claims)
		}
		next <- err
	}()
	s.waits(ctx, key, step)
	err = s.done(lock, ttl, claims)
	if waited := <-next; err == nil && waited != nil {
		err = fmt.Errorf("the second Locker, which waited: %w", waited)
	}
	if err != nil {
		return err
	}
	return eventually(func() bool {
		for _, i := range s.honest {
			if s.clients[i].Exists(ctx, key).Val() != 0 {
				return false
			}
		}
		return true
	}, "released on the honest masters")
}

// waits waits for a while until the second Locker has subscribed and queued on one of the odd masters, so that it
// will be notified. A slow master is left out and does not get that far.
func (s *stand) waits(ctx context.Context, key, step string) {
	if step != "SUBSCRIBE" && step != oddserver.Push {
		return
	}
	for i, o := range s.odd {
		if within(time.Second, func() bool {
			return o.Seen("SUBSCRIBE") > 0 &&
				(step == "SUBSCRIBE" || s.clients[s.behind[i]].Exists(ctx, queue(key)).Val() > 0)
		}) {
			return
		}
	}
}

// given reports whether a majority of the servers has really granted key to owner. The last one may do so after the
// round was decided.
func (s *stand) given(ctx context.Context, key, owner string) error {
	return eventually(func() bool { return s.holders(ctx, key, owner) > len(s.addrs)/2 },
		"%s given to %s by a majority", key, owner)
}

// done extends a lock and releases it. If the lock is over by then, its ttl was only too short.
func (s *stand) done(lock *redlock.Lock, ttl time.Duration, claims bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for last := error(nil); ; {
		err := lock.Extend(ctx, ttl)
		if err == nil {
			break
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if claims || !s.honestly(ctx, lock) {
			break
		}
		if lock.Err() != nil || ctx.Err() != nil {
			return short(lock, ttl, fmt.Errorf("extend: %w", last))
		}
	}
	// ErrNoQuorum comes from a slow machine
	if err := lock.Release(ctx); err != nil && !claims && !errors.Is(err, redlock.ErrNoQuorum) {
		return short(lock, ttl, fmt.Errorf("release: %w", err))
	}
	return nil
}

// honestly reports whether the honest masters have the lock. A lock that was taken while another was released, or
// while an honest master was slow, may depend on odd masters. They answered that request but may not answer an
// extension or an inspection. Then the lock ends with its ttl, as if these masters had failed.
func (s *stand) honestly(ctx context.Context, lock *redlock.Lock) bool {
	for _, i := range s.honest {
		if s.clients[i].Get(ctx, lock.Key()).Val() != lock.Owner() {
			return false
		}
	}
	return true
}

// short accepts that a lock with a short ttl is over.
func short(lock *redlock.Lock, ttl time.Duration, err error) error {
	if over := lock.Err() != nil; !over || ttl > guardTime {
		return err
	}
	return nil
}

// longestError bounds an error that quotes five servers.
const longestError = 4 << 10

// noQuorum checks a majority of odd servers. The call must return an error that says so, or a lock that a majority
// has granted. If servers claim to have done commands that they have not done, the only promise is that the call
// ends.
func (s *stand) noQuorum(key string, ttl time.Duration, opts []redlock.Option, claims bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	hurry, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	if holder, err := s.first.Holder(ctx, key); err == nil && holder.Held && !claims {
		return fmt.Errorf("the holder of a free key is %+v", holder)
	}
	tries := []func() (*redlock.Lock, error){
		func() (*redlock.Lock, error) { return s.first.TryAcquire(ctx, key, ttl, opts...) },
		func() (*redlock.Lock, error) { return s.first.Acquire(hurry, key, ttl, opts...) },
	}
	for _, try := range tries {
		began := time.Now()
		lock, err := try()
		switch {
		case time.Since(began) > patience/2:
			return fmt.Errorf("an answer after %v", time.Since(began))
		case err != nil:
			if err := unclear(err); err != nil {
				return err
			}
		case !claims && ttl > guardTime:
			if err := s.given(ctx, key, lock.Owner()); err != nil {
				return err
			}
		}
		if lock != nil {
			_ = lock.Extend(ctx, ttl)
			_ = lock.Release(ctx)
		}
	}
	return nil
}

// unclear returns the reason if an error is unclear.
func unclear(err error) error {
	known := false
	for _, reason := range []error{redlock.ErrNoQuorum, redlock.ErrHeld, redlock.ErrExpired, context.DeadlineExceeded} {
		known = known || errors.Is(err, reason)
	}
	switch text := err.Error(); {
	case !known:
		return fmt.Errorf("an error of no kind: %w", err)
	case len(text) > longestError:
		return fmt.Errorf("an error of %d bytes: %.80s", len(text), text)
	}
	return nil
}
