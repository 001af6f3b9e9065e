package single_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

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

// Replies come late, break off or are cut short. Each reply that is used belongs to its request.
func TestEachRequestGetsItsOwnReply(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 10
	}
	answered := 0
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) {
			f := &moody{random: rand.New(rand.NewPCG(uint64(seed), 0))}
			opt := &redis.Options{Addr: "moody:6379", Dialer: f.dial, PoolSize: 1 + seed%5}
			m, err := single.Open(opt, single.Options{})
			must(t, err)
			var wg sync.WaitGroup
			var mu sync.Mutex
			for who := range 8 {
				wg.Go(func() {
					for n := range 40 {
						batch := make([]*single.Call, 1+f.draw(5))
						for i := range batch {
							batch[i] = &single.Call{Request: new(inspect(fmt.Sprintf("key-%d-%d-%d", who, n, i)))}
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+f.draw(80))*time.Millisecond)
						m.Do(ctx, batch)
						cancel()
						for _, c := range batch {
							if c.Err != nil {
								continue
							}
							mu.Lock()
							answered++
							mu.Unlock()
							if key := c.Request.Keys[0]; c.Reply.Holder != key || c.Reply.Key != key {
								t.Errorf("seed %d: %s is answered with %+v", seed, key, c.Reply)
							}
						}
					}
				})
			}
			wg.Wait()
			must(t, m.Close())
			<-time.After(time.Second) // the master ends
		})
	}
	t.Logf("%d replies", answered)
	if answered < runs*100 {
		t.Errorf("only %d replies", answered)
	}
}
