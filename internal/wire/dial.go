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

// Config says how to connect to a server.
type Config struct {
	// Network and Addr are the arguments of [net.Dial].
	Network, Addr string
	// TLS encrypts connections; nil for none. With a Dialer it is not used: a Dialer does TLS itself.
	TLS *tls.Config
	// Dialer makes connections in place of a [net.Dialer]. It must return when its context ends. See [ResetOnClose]
	// and [Conn.Clean] for the methods that its connections should have.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// Credentials returns user and password, for each connection; nil for none. Without a password there is no AUTH.
	// Without a user, AUTH is for the user "default".
	Credentials func(ctx context.Context) (user, password string, err error)
	// Protocol is 2 or 3. The connection falls back to version 2 if the server does not know version 3.
	Protocol int
	// ClientName names the connection; "" for none.
	ClientName string
	// DB is the database number; for 0 no SELECT is sent.
	DB int
}

// keepAlive lets a connection notice a peer that vanished silently, with go-redis's timing.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// Dial makes a connection by ctx's deadline, which is required, and sets it up in one round trip. The questions
// travel in the same round trip, behind the set-up, and Dial returns the server's answers. Each must satisfy
// [ExpectAny]. After an error, which may be a [ServerError], there is no connection.
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
	name   string // without secrets
	words  []string
	expect *Expect
	// secret must not appear in an error of the server.
	secret string
	// optional: an error reply is fine.
	optional bool
}

// steps returns the commands before the first question. AUTH comes first and separately: a server that does not know
// HELLO knows AUTH, and AUTH needs no permission.
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
			steps = append(steps,
				step{name: "AUTH", words: []string{"auth", user, password}, secret: password, expect: &ExpectOK})
		}
	}
	if c.Protocol == 3 {
		steps = append(steps, step{name: "HELLO", words: []string{"hello", "3"}, expect: &ExpectAny, optional: true})
	}
	if c.ClientName != "" {
		steps = append(steps,
			step{name: "CLIENT SETNAME", words: []string{"client", "setname", c.ClientName}, expect: &ExpectOK})
	}
	if c.DB != 0 {
		steps = append(steps, step{name: "SELECT", words: []string{"select", strconv.Itoa(c.DB)}, expect: &ExpectOK})
	}
	if len(steps) > 0 {
		steps = append(steps, last)
	}
	return steps, nil
}

// last ends a set-up with a reply that no other command has. If the server has sent one reply too many, that reply is
// read in place of PONG or of an error, and not as the reply to the first request, which may well be OK. A user
// without the right to PING gets an error, which is fine, too.
var last = step{name: "PING", words: []string{"ping"}, expect: &ExpectLast, optional: true}

// LastCommand is that command, for the end of other pipelines. ExpectLast is its expected reply.
var (
	LastCommand = AppendCommand(nil, "ping")
	ExpectLast  = Expect{Kinds: Of(Status), Status: "PONG"}
)

// connect makes a connection without setting it up.
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

// withoutTLS adds to a failed handshake that the port may have no TLS: a Redis server waits there for the end of a
// line.
func withoutTLS(err error) error {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	if plain || ended(err) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no TLS handshake, as at a redis:// port without TLS: %w", err)
	}
	return err
}

// tlsConfig sets the server name for the certificate.
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

// setUp sends the steps and the questions with one write. Every reply is read before any of these counts.
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

// until runs do and ends it when ctx ends, by its deadline or earlier. Only closing the connection ends do for
// certain, because do may be about to set another deadline.
func (c *Conn) until(ctx context.Context, do func(deadline time.Time) error) error {
	deadline, _ := ctx.Deadline()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err := do(deadline)
	if !stop() && (err == nil || errors.Is(err, net.ErrClosed)) {
		err = ctx.Err()
	}
	return err
}

// exchange does setUp's round trip.
func (c *Conn) exchange(out []byte, deadline time.Time, steps []step, questions [][]string) ([]Reply, error) {
	if err := c.Send(out, deadline); err != nil {
		return nil, fmt.Errorf("setting up a connection: %w", err)
	}
	for _, s := range steps {
		reply := c.Reply(s.expect)
		if s.optional && reply.Kind() == Refusal {
			continue
		}
		if reply.Err() != nil {
			secrets := make(Secrets)
			secrets.Add(s.secret)
			reply.Hide(secrets)
			return nil, fmt.Errorf("setting up a connection: %s: %w", s.name, reply.Err())
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

// Ask sends one command and reads its reply, for actions that depend on the answers of a set-up.
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
