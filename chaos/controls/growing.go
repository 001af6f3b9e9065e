package controls

import (
	"context"
	"net"
	"sync"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

// growing are locks that keep something of each hold until their client is closed.
func growing() []Entry {
	entry := func(name, text string, keep func(ctx context.Context, l *locker)) Entry {
		return Entry{
			Name: name, Text: text, Scenario: "growth", Oracle: "growth", For: 4 * sec,
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				h, err := l.Acquire(ctx, r)
				if err == nil {
					keep(ctx, l)
				}
				return h, err
			},
		}
	}
	return []Entry{
		entry("goroutine-at-times", "Every fifth hold leaves a goroutine until the client is closed.",
			func(_ context.Context, l *locker) {
				if oneIn(5) {
					l.keeps.goroutine(l.closed)
				}
			}),
		entry("memory-of-each-hold", "A client keeps a note of 1 kB of each hold.",
			func(_ context.Context, l *locker) { l.keeps.note() }),
		entry("connection-at-times", "Every fifth hold leaves a connection to the first master.",
			func(ctx context.Context, l *locker) {
				if oneIn(5) {
					l.keeps.connection(ctx, l.masters[0].Options().Addr)
				}
			}),
	}
}

// pooled is how many connections a client of Pooling keeps.
const pooled = 40

// Pooling is a correct lock that needs more and more at first: every fourth hold adds a goroutine, a note and a
// connection to the client's pool, until the pool is full.
func Pooling() workload.Subject {
	e := &Entry{
		Name: "pooling",
		acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
			h, err := l.Acquire(ctx, r)
			if n := l.counted.Add(1); err == nil && n%4 == 0 && n <= 4*pooled {
				l.keeps.goroutine(l.closed)
				l.keeps.note()
				l.keeps.connection(ctx, l.masters[0].Options().Addr)
			}
			return h, err
		},
	}
	return e.Subject()
}

// keeps are goroutines, notes and connections that stay until the client is closed.
type keeps struct {
	mu          sync.Mutex
	notes       [][]byte
	connections []net.Conn
	goroutines  sync.WaitGroup
}

func (k *keeps) goroutine(until <-chan struct{}) { k.goroutines.Go(func() { <-until }) }

func (k *keeps) note() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notes = append(k.notes, make([]byte, 1<<10))
}

// connection keeps one more connection. Without a server at addr it does nothing.
func (k *keeps) connection(ctx context.Context, addr string) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.connections = append(k.connections, conn)
}

func (k *keeps) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, conn := range k.connections {
		_ = conn.Close() // nothing was sent on it
	}
	k.goroutines.Wait()
}
