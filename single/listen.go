package single

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// listenProbe is after how much silence a subscription is asked whether it is still alive. After as much again it
	// is made anew.
	listenProbe = 10 * time.Second
	// firstReconnect and maxReconnect bound the pause before a subscription that broke is made anew.
	firstReconnect = 20 * time.Millisecond
	maxReconnect   = time.Second
)

// Listen subscribes to channel on a connection of its own and passes on what is published there, until stop is called;
// stop returns when nothing will be passed on any more. ready is called each time the subscription has been made, also
// after a reconnection: what was published before may have been missed. Both are called from one goroutine.
func (m *Master) Listen(channel string, ready func(), heard func(message string)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause := firstReconnect; ; pause = min(2*pause, maxReconnect) {
			if m.listen(ctx, channel, ready, heard) {
				pause = firstReconnect
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

// listen keeps one subscription until it breaks or ctx is done, and reports whether it was ever made.
func (m *Master) listen(ctx context.Context, channel string, ready func(), heard func(message string)) (made bool) {
	sub := m.client.Subscribe(ctx)
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = sub.Close() // ends a Receive that waits
		close(closed)
	})
	defer func() {
		if stop() {
			_ = sub.Close()
			return
		}
		<-closed
	}()
	if err := sub.Subscribe(ctx, channel); err != nil {
		return false
	}
	for asked := false; ; {
		message, err := sub.ReceiveTimeout(ctx, listenProbe)
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
			heard(message.Payload)
		}
	}
}
