package single

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Questions asks one server about itself: INFO, TIME, CONFIG GET. The replies are no votes. Only one goroutine may
// use it at a time.
type Questions struct {
	conn   *conn // nil for a client of the caller
	pool   conns
	client redis.UniversalClient
}

// maxInfo bounds the reply to INFO, which has some 10 KB on a busy server, but more with many databases or replicas.
const maxInfo = 1 << 20

// expected bounds the reply to a question.
func expected(words []string) *wire.Expect {
	expect := wire.ExpectAny
	expect.Kinds |= wire.Of(wire.Push) // to SUBSCRIBE
	if strings.EqualFold(words[0], "INFO") {
		expect = wire.Expect{Kinds: wire.Of(wire.Text), Text: maxInfo}
	}
	return &expect
}

// Questions returns a way to ask the server. A Master that makes connections ([Open], [Dial]) uses a separate
// connection for it. Then a reply takes at most a megabyte of memory, and each question ends with the context or
// after two seconds. With a client of the caller ([New]), go-redis sends and reads, without such a bound. The error
// is the connection's. Close closes the connection.
func (m *Master) Questions(ctx context.Context) (*Questions, error) {
	pool, own := m.transport.(conns)
	if !own {
		return &Questions{client: m.client}, nil
	}
	c, err := pool.take(ctx)
	if err != nil {
		return nil, err
	}
	return &Questions{conn: c, pool: pool}, nil
}

// Close closes the connection.
func (q *Questions) Close() {
	if q.conn != nil {
		q.pool.drop(q.conn)
	}
}

// Ask sends one command and returns its reply as go-redis's Do does in RESP2: a string, an int64, nil, or a []any of
// these. A map is its keys and values in turn. An error reply matches [redis.Error]. After any other error the
// connection cannot be used again.
func (q *Questions) Ask(ctx context.Context, words ...string) (any, error) {
	if q.conn == nil {
		return q.askClient(ctx, words)
	}
	ctx, cancel := context.WithTimeout(ctx, q.pool.patience())
	defer cancel()
	reply := q.conn.Ask(ctx, expected(words), words...)
	if q.conn.Overfull() {
		return nil, fmt.Errorf("single: %w: it says more than it was asked", wire.ErrProtocol)
	}
	return valueOf(&reply)
}

// Subscribe subscribes to a channel, to see whether this user may. No other question can follow.
func (q *Questions) Subscribe(ctx context.Context, channel string) error {
	if q.conn != nil {
		_, err := q.Ask(ctx, "SUBSCRIBE", channel)
		return err
	}
	sub := q.client.Subscribe(ctx, channel)
	_, err := sub.Receive(ctx)
	return errors.Join(err, sub.Close())
}

func (q *Questions) askClient(ctx context.Context, words []string) (any, error) {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	cmd := redis.NewCmd(ctx, args...)
	err := q.client.Process(ctx, cmd)
	if errors.Is(err, redis.Nil) {
		return nil, nil //nolint:nilnil // nil is the server's answer
	}
	if pairs, isMap := cmd.Val().(map[any]any); isMap {
		flat := make([]any, 0, 2*len(pairs))
		for key, value := range pairs {
			flat = append(flat, key, value)
		}
		return flat, err
	}
	return cmd.Val(), err
}

func valueOf(r *wire.Reply) (any, error) {
	switch r.Kind() {
	case wire.Null:
		return nil, nil //nolint:nilnil // nil is the server's answer
	case wire.Number:
		return r.Int(), nil
	case wire.Status, wire.Text, wire.Other:
		return r.Str(), nil
	case wire.Array, wire.Map, wire.Push:
		items := make([]any, len(r.Items()))
		for i := range items {
			value, err := valueOf(&r.Items()[i])
			if err != nil {
				return nil, err
			}
			items[i] = value
		}
		return items, nil
	default:
		return nil, r.Err()
	}
}
