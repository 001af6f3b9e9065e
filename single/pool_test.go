package single_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// far is a master in virtual time; connecting to it takes a while.
type far struct {
	takes  func(dial int) time.Duration // from 1
	refuse error
	said   chan string  // an unasked reply, on the latest connection
	extra  string       // comes with the reply to SET free
	cut    atomic.Int32 // connections up to this number are dead, without a sign

	mu                sync.Mutex
	dials, open, most int
}

func after(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// dial is a Dialer.
func (f *far) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	f.mu.Lock()
	f.dials++
	f.open++
	f.most = max(f.most, f.open)
	number := f.dials
	takes := f.takes(number)
	f.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		f.closed()
		return nil, ctx.Err()
	}
	if f.refuse != nil {
		f.closed()
		return nil, f.refuse
	}
	client, server := net.Pipe()
	go f.serve(server, number)
	return &pipe{Conn: client, closed: sync.OnceFunc(f.closed)}, nil
}

func (f *far) closed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
}

func (f *far) counts() (dials, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials, f.most
}

// serve grants every key but "taken", which is refused.
func (f *far) serve(conn net.Conn, number int) {
	defer conn.Close()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case text := <-f.said:
				_, _ = conn.Write([]byte(text))
			case <-ended:
				return
			}
		}
	}()
	in := bufio.NewReader(conn)
	for {
		words, err := command(in)
		if err != nil {
			return
		}
		if number <= int(f.cut.Load()) {
			continue
		}
		reply := "+OK\r\n"
		switch {
		case words[0] == "set" && words[1] == "free":
			reply += f.extra
		case words[0] == "set" && words[1] == "taken":
			<-time.After(10 * time.Millisecond)
			reply = "$-1\r\n"
		case words[0] == "evalsha":
			reply = "*1\r\n:0\r\n"
		case words[0] == "ping":
			reply = "+PONG\r\n"
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// pipe is a bare net.Conn, like a connection that a user's Dialer wraps.
type pipe struct {
	net.Conn
	closed func()
}

func (p *pipe) Close() error {
	p.closed()
	return p.Conn.Close()
}

// master makes a master over f.
func (f *far) master(t *testing.T, opt redis.Options) *single.Master {
	t.Helper()
	opt.Addr, opt.Dialer = "far:6379", f.dial
	return opened(t, &opt)
}

// opened makes a master with the library's own connections.
func opened(t *testing.T, opt *redis.Options) *single.Master {
	t.Helper()
	m, err := single.Open(opt, single.Options{})
	must(t, err)
	return m
}

// tryFor requests a key with this deadline, and reports whether it was granted.
func tryFor(t *testing.T, m *single.Master, key string, d time.Duration) (bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	c := &single.Call{Request: new(acquire(key, "me", time.Minute))}
	m.Do(ctx, []*single.Call{c})
	return c.Err == nil && c.Reply.Outcome == single.Granted, c.Err
}

// Connecting to the master takes longer than a request has time. Requests wait for the connection that is being made
// and begin no second one, so they get a connection at last.
func TestRequestsShorterThanADialStillGetAConnection(t *testing.T) {
	for _, size := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{takes: after(905 * time.Millisecond)}
			m := f.master(t, redis.Options{PoolSize: size})
			defer func() { must(t, m.Close()) }()
			granted := 0
			for range 200 {
				if ok, _ := tryFor(t, m, "key", 10*time.Millisecond); ok {
					granted++
				}
			}
			dials, _ := f.counts()
			if granted < 100 || dials > 5 {
				t.Errorf("PoolSize %d: %d of 200 requests answered, over %d dials", size, granted, dials)
			}
		})
	}
}

// There are never more connections than PoolSize, whatever happens to the requests that caused them.
func TestThePoolSizeCountsConnectionsThatAreBeingMade(t *testing.T) {
	for _, size := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{takes: after(305 * time.Millisecond)}
			m := f.master(t, redis.Options{PoolSize: size})
			var granted atomic.Int32
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 100 {
						if ok, _ := tryFor(t, m, "key", 20*time.Millisecond); ok {
							granted.Add(1)
							<-time.After(time.Millisecond)
						}
					}
				})
			}
			wg.Wait()
			if _, most := f.counts(); most != size || granted.Load() == 0 {
				t.Errorf("PoolSize %d: up to %d connections at a time, %d granted", size, most, granted.Load())
			}
			must(t, m.Close())
			if f.open != 0 {
				t.Errorf("PoolSize %d: %d connections are open after Close", size, f.open)
			}
		})
	}
}

// A stuck dial, with its first packet lost, does not keep others from beginning.
func TestAnotherConnectionIsDialledWhenOneIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: func(dial int) time.Duration {
			if dial <= 2 { // these are lost
				return time.Hour
			}
			return time.Millisecond
		}}
		m := f.master(t, redis.Options{})
		defer func() { must(t, m.Close()) }()
		began := time.Now()
		for ok := false; !ok; {
			ok, _ = tryFor(t, m, "key", 20*time.Millisecond)
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("a connection after %v", took)
		}
	})
}

// Each of many requests learns why there is no connection, even if there are more requests than possible connections.
func TestEachRequestLearnsWhyThereIsNoConnection(t *testing.T) {
	refused := errors.New("refused")
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Millisecond), refuse: refused}
		m := f.master(t, redis.Options{PoolSize: 2})
		defer func() { must(t, m.Close()) }()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := tryFor(t, m, "key", time.Second); !errors.Is(err, refused) {
					t.Errorf("%v, want %v", err, refused)
				}
			})
		}
		wg.Wait()
		f.refuse = nil
		if _, err := tryFor(t, m, "key", time.Second); err != nil {
			t.Errorf("when it is no longer refused: %v", err)
		}
	})
}

// Close ends requests that wait for a connection, and connections that are being made.
func TestCloseEndsWaitsForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Hour)}
		m := f.master(t, redis.Options{PoolSize: 1})
		began := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := tryFor(t, m, "key", time.Minute); !errors.Is(err, redis.ErrClosed) {
					t.Errorf("%v, want %v", err, redis.ErrClosed)
				}
			})
		}
		synctest.Wait()
		must(t, m.Close())
		wg.Wait()
		if took := time.Since(began); took > 0 || f.open > 0 {
			t.Errorf("after %v %d connections are open", took, f.open)
		}
	})
}

// A connection that a user's Dialer wraps is also checked for unread data before it is used again.
func TestHazard42ASurplusReplyOnAWrappedConnectionAnswersNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(0), said: make(chan string)}
		m := f.master(t, redis.Options{PoolSize: 1})
		for range 3 {
			if ok, err := tryFor(t, m, "free", time.Second); !ok {
				t.Fatalf("a free key: %v", err)
			}
		}
		if dials, _ := f.counts(); dials != 1 {
			t.Errorf("%d connections for three requests one after another", dials)
		}
		f.said <- "+OK\r\n"
		synctest.Wait()
		if ok, _ := tryFor(t, m, "taken", time.Second); ok {
			t.Error("an unasked reply granted a taken key")
		}
		must(t, m.Close())
	})
}

// A pipeline with a surplus reply counts for nothing, however late the last reply comes.
func TestHazard42APipelineIsReadToItsEndToFindASurplusReply(t *testing.T) {
	for _, extra := range []string{"", "+OK\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{takes: after(0), extra: extra}
			m := f.master(t, redis.Options{})
			defer func() { must(t, m.Close()) }()
			var batch []*single.Call
			for _, key := range []string{"free", "taken"} {
				batch = append(batch, &single.Call{Request: new(acquire(key, "me", time.Minute))})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			m.Do(ctx, batch)
			for i, c := range batch {
				granted := c.Err == nil && c.Reply.Outcome == single.Granted
				if extra == "" && (c.Err != nil || granted != (i == 0)) {
					t.Errorf("in good order, request %d: %+v, %v", i, c.Reply, c.Err)
				}
				if extra != "" && (c.Err == nil || !c.Sent) {
					t.Errorf("request %d: %+v, sent %t; want an error of a request that may have taken effect", i,
						c.Reply, c.Sent)
				}
			}
		})
	}
}

// A Dialer that ignores the end of its context delays Close by a second at most.
func TestCloseDoesNotWaitForADialerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m, err := single.Open(&redis.Options{
			Addr: "far:6379",
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				<-release
				return nil, net.ErrClosed
			},
		}, single.Options{})
		must(t, err)
		_, _ = tryFor(t, m, "key", time.Millisecond)
		began := time.Now()
		must(t, m.Close())
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		close(release)
	})
}

// Close does not wait for a server that does not answer the guard's mark.
func TestCloseDoesNotWaitForTheGuardsMark(t *testing.T) {
	marking, ended := make(chan struct{}, 1), make(chan struct{})
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "set" && words[1] == single.GuardKey {
			marking <- struct{}{}
			<-ended
		}
		return guardAnswer(words)
	})
	t.Cleanup(func() { close(ended) })
	m, err := single.Open(&redis.Options{Addr: server.addr}, single.Options{RestartGuard: time.Second})
	must(t, err)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = m.Ask(within(t, patience), inspect("key"))
	}()
	<-marking
	began := time.Now()
	must(t, m.Close())
	<-asked
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("Close took %v", took)
	}
	redistest.Eventually(t, patience, func() bool { return single.BusyConnections(m) == 0 },
		"the connection to be given up")
}
