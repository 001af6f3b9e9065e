package single

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

const (
	// If a subscription is silent for listenProbe, the library asks whether it is still alive. After the same time
	// again, the library makes a new one.
	listenProbe = 10 * time.Second
	// firstReconnect and maxReconnect bound the pause before a broken subscription is made anew.
	firstReconnect = 20 * time.Millisecond
	maxReconnect   = time.Second
)

// Listen subscribes to channel on a new connection and calls notified with each message, until stop is called. After
// stop has returned, no call follows. Listen calls ready after each subscription, also after a reconnection: earlier
// messages may have been missed. One goroutine calls both functions.
func (m *Master) Listen(channel string, ready func(), notified func(message string)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause := firstReconnect; ; pause = min(2*pause, maxReconnect) {
			began := time.Now()
			if m.listen(ctx, channel, ready, notified) && time.Since(began) > maxReconnect {
				pause = firstReconnect // a subscription that breaks again and again is made less often
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// listen keeps one subscription until it breaks or ctx is done. It reports whether the subscription was ever made.
func (m *Master) listen(ctx context.Context, channel string, ready func(), notified func(message string)) (made bool) {
	if own, ok := m.transport.(conns); ok {
		return own.listen(ctx, channel, ready, notified)
	}
	return m.listenThrough(ctx, channel, ready, notified)
}

// listen keeps a subscription on one of the library's own connections. The guard does not check it, because messages
// are only hints.
func (p conns) listen(ctx context.Context, channel string, ready func(), notified func(message string)) (made bool) {
	dialCtx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	c, _, err := p.config.Dial(dialCtx)
	if err != nil {
		return false
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // ends a waiting Next
	defer func() { _ = c.Close() }()
	sub, err := c.Subscribe(channel, time.Now().Add(listenProbe))
	if err != nil {
		return false
	}
	for asked := false; ; {
		message, err := sub.Next(listenProbe)
		switch {
		case err == nil:
			asked = false
		case errors.Is(err, wire.ErrSilent) && !asked:
			asked = true
			err = sub.Ping(time.Now().Add(listenProbe))
		}
		if err != nil || ctx.Err() != nil {
			return made
		}
		if message.Subscribed {
			made = true
			ready()
		}
		if message.Published {
			notified(message.Payload)
		}
	}
}

// listenThrough keeps a subscription of a go-redis client. A Ring subscribes on the server that the channel belongs
// to. Messages that other servers publish do not arrive.
func (m *Master) listenThrough(ctx context.Context, channel string, ready func(),
	notified func(message string),
) (made bool) {
	sub := subscribe(ctx, m.client, channel)
	if sub == nil {
		return false
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = sub.Close() // ends a waiting Receive
		close(closed)
	})
	defer func() {
		if stop() {
			_ = sub.Close()
			return
		}
		<-closed
	}()
	for asked := false; ; {
		message, err := receive(ctx, sub)
		var timeout net.Error
		switch {
		case err == nil:
			asked = false
		case errors.As(err, &timeout) && timeout.Timeout() && !asked:
			asked = true
			err = sub.Ping(ctx)
		}
		if err != nil || ctx.Err() != nil {
			return made
		}
		switch message := message.(type) {
		case *redis.Subscription:
			made = true
			ready()
		case *redis.Message:
			notified(message.Payload)
		}
	}
}

// subscribe returns nil if it fails: go-redis panics for a Ring with all servers down.
func subscribe(ctx context.Context, client redis.UniversalClient, channel string) (sub *redis.PubSub) {
	defer func() {
		if recover() != nil {
			sub = nil
		}
	}()
	return client.Subscribe(ctx, channel)
}

// receive waits for the next message. go-redis panics when a server sends something unexpected.
func receive(ctx context.Context, sub *redis.PubSub) (message any, err error) {
	defer func() {
		if p := recover(); p != nil {
			message, err = nil, fmt.Errorf("single: the client panicked: %v", p)
		}
	}()
	return sub.ReceiveTimeout(ctx, listenProbe)
}
