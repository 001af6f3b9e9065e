package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Config says how connections to a server are made.
type Config struct {
	// Network and Addr are as [net.Dial] takes them.
	Network, Addr string
	// TLS makes connections secret; nil for none. A Dialer does that itself.
	TLS *tls.Config
	// Dialer makes connections instead of a [net.Dialer]. It must return when its context ends. See [ResetOnClose] and
	// [Conn.Clean] for what its connections should have.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// Credentials returns user and password, anew for each connection; nil for none. Without a password there is no AUTH,
	// without a user it is that of the user "default".
	Credentials func(ctx context.Context) (user, password string, err error)
	// Protocol is 2 or 3. A server that does not know version 3 is spoken to in version 2.
	Protocol int
	// ClientName names the connection; "" for none.
	ClientName string
	// DB is the database, 0 to leave it at that.
	DB int
}

// keepAlive is by what a connection notices that the other side is gone without a word, as go-redis does.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// Dial makes a connection by ctx's deadline, which must have one, and sets it up in one round trip. The server's answers to
// the questions, if there are any, come back with it: they are asked in that same round trip, when the rest of the set-up
// is done, and are what [ExpectAny] says. An error, which may be a [ServerError], means that there is no connection.
func (c *Config) Dial(ctx context.Context, questions ...[]string) (*Conn, []Reply, error) {
	steps, err := c.steps(ctx)
	if err != nil {
		return nil, nil, err
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("no connection: %w", err)
	}
	answers, err := conn.setUp(ctx, steps, questions)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, answers, nil
}

// step is one command of a set-up.
type step struct {
	name   string // without anything secret
	words  []string
	expect *Expect
	// secret is the word that a server's error must not show.
	secret string
	// optional: an error reply means that the server can do without.
	optional bool
}

// steps are what comes before the first question. AUTH goes first and by itself, because a server that does not know HELLO
// knows it, and it needs no permission.
func (c *Config) steps(ctx context.Context) ([]step, error) {
	var steps []step
	if c.Credentials != nil {
		user, password, err := c.Credentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("no credentials: %w", err)
		}
		if user == "" {
			user = "default"
		}
		if password != "" {
			steps = append(steps, step{name: "AUTH", words: []string{"auth", user, password}, secret: password, expect: &ExpectOK})
		}
	}
	if c.Protocol == 3 {
		steps = append(steps, step{name: "HELLO", words: []string{"hello", "3"}, expect: &ExpectAny, optional: true})
	}
	if c.ClientName != "" {
		steps = append(steps, step{name: "CLIENT SETNAME", words: []string{"client", "setname", c.ClientName}, expect: &ExpectOK})
	}
	if c.DB != 0 {
		steps = append(steps, step{name: "SELECT", words: []string{"select", strconv.Itoa(c.DB)}, expect: &ExpectOK})
	}
	if len(steps) > 0 {
		steps = append(steps, last)
	}
	return steps, nil
}

// last ends a set-up with a reply that is no other command's. If the server has given one reply too many before, it comes here, in the
// place of PONG or of an error, and not as the reply to the first request: OK is just what that one may be answered with. A user
// who may not PING gets an error, which will do.
var last = step{name: "PING", words: []string{"ping"}, expect: &ExpectLast, optional: true}

// LastCommand is that command, to end other pipelines with, and ExpectLast what it can be answered with.
var (
	LastCommand = AppendCommand(nil, "ping")
	ExpectLast  = Expect{Kinds: Of(Status), Status: "PONG"}
)

// connect makes a connection that is not set up.
func (c *Config) connect(ctx context.Context) (*Conn, error) {
	dial := c.Dialer
	if dial == nil {
		dial = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	}
	conn, err := dial(ctx, c.Network, c.Addr)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		return nil, errors.New("the dialer returned neither a connection nor an error")
	}
	if c.Dialer == nil && c.TLS != nil {
		secure := tls.Client(conn, c.tlsConfig())
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, withoutTLS(err)
		}
		conn = secure
	}
	return newConn(conn)
}

// withoutTLS says of a failed handshake that there may be no TLS at this port: a Redis server waits there for the end of a line.
func withoutTLS(err error) error {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	if plain || ended(err) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no TLS handshake, as at a port without TLS (redis://): %w", err)
	}
	return err
}

// tlsConfig names the server that the certificate must be for.
func (c *Config) tlsConfig() *tls.Config {
	if c.TLS.ServerName != "" {
		return c.TLS
	}
	host := c.Addr
	if i := strings.LastIndex(host, ":"); i >= 0 {
		host = host[:i]
	}
	config := c.TLS.Clone()
	config.ServerName = strings.Trim(host, "[]")
	return config
}

// setUp takes the steps and asks the questions, all with one write. Every reply is read before anything counts.
func (c *Conn) setUp(ctx context.Context, steps []step, questions [][]string) ([]Reply, error) {
	if len(steps)+len(questions) == 0 {
		return nil, nil
	}
	var out []byte
	for _, s := range steps {
		out = AppendCommand(out, s.words...)
	}
	for _, words := range questions {
		out = AppendCommand(out, words...)
	}
	var answers []Reply
	err := c.until(ctx, func(deadline time.Time) (err error) {
		answers, err = c.exchange(out, deadline, steps, questions)
		return err
	})
	return answers, err
}

// until has do end when ctx does, by its deadline or before. Closing is what ends it for certain: do may be about to set a
// deadline of its own.
func (c *Conn) until(ctx context.Context, do func(deadline time.Time) error) error {
	deadline, _ := ctx.Deadline()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err := do(deadline)
	if !stop() && (err == nil || errors.Is(err, net.ErrClosed)) {
		err = ctx.Err()
	}
	return err
}

// exchange is setUp's round trip.
func (c *Conn) exchange(out []byte, deadline time.Time, steps []step, questions [][]string) ([]Reply, error) {
	if err := c.Send(out, deadline); err != nil {
		return nil, fmt.Errorf("setting up a connection: %w", err)
	}
	for _, s := range steps {
		reply := c.Reply(s.expect)
		if s.optional && reply.Kind() == Refusal {
			continue
		}
		reply.Hide(s.secret)
		if err := reply.Err(); err != nil {
			return nil, fmt.Errorf("setting up a connection: %s: %w", s.name, err)
		}
	}
	answers := make([]Reply, len(questions))
	for i, words := range questions {
		answers[i] = c.Reply(&ExpectAny)
		if answers[i].Kind() == Failure {
			return nil, fmt.Errorf("setting up a connection: %s: %w", strings.ToUpper(words[0]), answers[i].Err())
		}
	}
	if !c.Drained() {
		return nil, fmt.Errorf("setting up a connection: %w: it says more than it was asked", ErrProtocol)
	}
	return answers, nil
}

// Ask sends one command and reads its reply; for what follows from the answers to the questions of a set-up.
func (c *Conn) Ask(ctx context.Context, expect *Expect, words ...string) Reply {
	var reply Reply
	err := c.until(ctx, func(deadline time.Time) error {
		if err := c.Send(AppendCommand(nil, words...), deadline); err != nil {
			return err
		}
		reply = c.Reply(expect)
		return nil
	})
	if err != nil {
		return Failed(err)
	}
	return reply
}
