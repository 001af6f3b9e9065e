package single_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

// far is a master in virtual time; connecting to it takes a while.
type far struct {
	takes  func(dial int) time.Duration // from 1
	refuse error
	extra  string       // comes with the reply to SET free
	cut    atomic.Int32 // connections up to this number are dead, without a sign

	mu                sync.Mutex
	dials, open, most int
}

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

// master makes a master over f, with the library's own connections.
func (f *far) master(t *testing.T, opt redis.Options) *single.Master {
	t.Helper()
	opt.Addr, opt.Dialer = "far:6379", f.dial
	return opened(t, &opt, single.Options{})
}

func after(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// pipe is a bare net.Conn, like a connection that a user's Dialer wraps.
type pipe struct {
	net.Conn
	closed func()
}

func (p *pipe) Close() error {
	p.closed()
	return p.Conn.Close()
}

// tryFor requests a key with this deadline, and reports whether it was granted.
func tryFor(t *testing.T, m *single.Master, key string, d time.Duration) (bool, error) {
	t.Helper()
	ctx := within(t, d)
	c := &single.Call{Request: new(acquire(key, "me", time.Minute))}
	m.Do(ctx, []*single.Call{c})
	return won(c), c.Err
}

// moody is a master that says of each key that the key itself is the holder. It replies late, in pieces, not at all,
// or not completely.
type moody struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (m *moody) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n)
}

func (m *moody) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if m.draw(4) == 0 {
		select {
		case <-time.After(time.Duration(m.draw(300)) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if m.draw(10) == 0 {
		return nil, net.ErrClosed
	}
	client, server := net.Pipe()
	go m.serve(server)
	return client, nil
}

func (m *moody) serve(conn net.Conn) {
	defer conn.Close()
	commands := make(chan []string, 1024) // like a socket's buffer: a slow server still takes requests
	go func() {
		defer close(commands)
		in := bufio.NewReader(conn)
		for {
			words, err := command(in)
			if err != nil {
				return
			}
			commands <- words
		}
	}()
	for words := range commands {
		var reply string
		switch words[0] {
		case "ping":
			reply = "+PONG\r\n"
		case "evalsha": // that of inspect, with one key
			key := words[3]
			reply = fmt.Sprintf("*4\r\n:1\r\n:60000\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(key), key)
		default:
			reply = "-ERR " + words[0] + "\r\n"
		}
		switch m.draw(40) {
		case 0:
			return
		case 1:
			_, _ = conn.Write([]byte(reply[:m.draw(len(reply))]))
			return
		case 2:
			<-time.After(time.Duration(m.draw(100)) * time.Millisecond)
		case 3:
			n := m.draw(len(reply))
			_, _ = conn.Write([]byte(reply[:n]))
			<-time.After(time.Duration(m.draw(60)) * time.Millisecond)
			reply = reply[n:]
		case 4:
			reply = "-ERR not now\r\n"
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
	}
}
