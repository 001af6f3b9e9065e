// Package oddserver puts a proxy in front of a Redis server. The proxy can answer any step of a conversation as no
// Redis server would: with another value, another type, an absurd length, half a reply, two replies, or nothing.
//
//	odd := oddserver.Start(t, server.Addr(), oddserver.At("SET", oddserver.Say("+QUEUED\r\n")))
//
// All other replies come from the server behind the proxy, so everything except the one step is real, and tests can
// afterwards ask that server what it did. The proxy also remembers the commands that it passed on
// ([Server.Executed]).
package oddserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Names of steps without a command.
const (
	// Connect is a connection that has just been accepted.
	Connect = "CONNECT"
	// Push is a message from the server behind on its way to a subscriber.
	Push = "PUSH"
)

// Step is one point of a conversation at which a Script may interfere: a command on its way to the server behind, or
// one of the two events above.
type Step struct {
	// Conn numbers the connections of a Server, from 0.
	Conn int
	// Name is the command's name in upper case, or Connect or Push.
	Name string
	// Args are the words behind the name; of a Push, its raw bytes.
	Args []string
}

// Script decides what happens at a step. It is called from several goroutines at once. A nil Script alters nothing.
type Script func(Step) Act

// TB is the part of testing.TB that Start uses.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Server is the proxy. All methods may be called concurrently.
type Server struct {
	listener net.Listener
	behind   string
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	script   Script
	accepted int
	acted    int
	seen     map[string]int
	executed map[*[]string]bool
}

// Start runs a proxy in front of the server at behind until the test ends.
func Start(tb TB, behind string, script Script) *Server {
	tb.Helper()
	s, err := Run(behind, script)
	if err != nil {
		tb.Fatalf("start an odd server: %v", err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Run is Start without a test; the caller calls Close.
func Run(behind string, script Script) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: listener, behind: behind, script: script, seen: make(map[string]int),
		executed: make(map[*[]string]bool),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Go(s.accept)
	return s, nil
}

// Addr is host:port of the proxy.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close cuts every connection; when it returns, no goroutine is left. Close again does nothing.
func (s *Server) Close() {
	s.cancel()
	_ = s.listener.Close()
	s.running.Wait()
}

// Play replaces the script: from the next step on, also of connections that are open already.
func (s *Server) Play(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Acted returns how many steps were altered.
func (s *Server) Acted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acted
}

// Seen returns how many steps of this name there were.
func (s *Server) Seen(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name]
}

// Executed returns how many commands went to the server behind that contain each of words. Commands that it refused
// because it did not know the script do not count.
func (s *Server) Executed(words ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for command := range s.executed {
		if hasAll(*command, words) {
			n++
		}
	}
	return n
}

func hasAll(command, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(command, word) })
}

func (s *Server) decide(step Step) Act {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[step.Name]++
	if s.script == nil {
		return Act{}
	}
	act := s.script(step)
	if !act.passes() {
		s.acted++
	}
	return act
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		number := s.accepted
		s.accepted++
		s.mu.Unlock()
		s.running.Go(func() { s.serve(conn, number) })
	}
}

// talk is one conversation.
type talk struct {
	server *Server
	number int
	client net.Conn
	in     *bufio.Reader // from the client
	behind net.Conn
	back   *bufio.Reader // from the server behind

	mu         sync.Mutex // guards writes to the client, and the fields below
	late       []byte     // replies that are kept back until the next one
	subscribed bool
}

// errEnd ends a conversation because its script says so.
var errEnd = errors.New("oddserver: the script ended the conversation")

// serve is a conversation from its first byte. It ends when either side does, or the Server.
func (s *Server) serve(client net.Conn, number int) {
	defer client.Close()
	behind, err := new(net.Dialer).DialContext(s.ctx, "tcp", s.behind)
	if err != nil {
		return
	}
	defer behind.Close()
	stop := context.AfterFunc(s.ctx, func() {
		_ = client.Close()
		_ = behind.Close()
	})
	defer stop()
	t := &talk{
		server: s, number: number, client: client, in: bufio.NewReader(client), behind: behind,
		back: bufio.NewReader(behind),
	}
	if act := t.step(Connect, nil); !act.passes() && t.answer(act, nil) != nil {
		return
	}
	var pump sync.WaitGroup
	defer pump.Wait()
	defer behind.Close() // ends the pump
	for {
		words, raw, err := readCommand(t.in)
		if err != nil {
			return
		}
		if t.command(words, raw) != nil {
			return
		}
		if !t.subscribed && strings.EqualFold(words[0], "subscribe") {
			t.subscribed = true
			pump.Go(t.pump)
		}
	}
}

func (t *talk) step(name string, args []string) Act {
	return t.server.decide(Step{Conn: t.number, Name: name, Args: args})
}

// command passes one command on, or not, and returns the real reply or another.
func (t *talk) command(words []string, raw []byte) error {
	act := t.step(strings.ToUpper(words[0]), words[1:])
	if act.unheard {
		return t.answer(act, nil)
	}
	t.server.mu.Lock()
	t.server.executed[&words] = true
	t.server.mu.Unlock()
	if _, err := t.behind.Write(raw); err != nil {
		return err
	}
	if t.subscribed {
		return nil // the pump brings what comes back
	}
	reply, err := readReply(t.back, nil)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(reply, []byte("-NOSCRIPT")) {
		t.server.mu.Lock()
		delete(t.server.executed, &words)
		t.server.mu.Unlock()
	}
	return t.answer(act, reply)
}

// pump passes a subscriber's messages on, and ends the conversation when there are no more.
func (t *talk) pump() {
	defer t.client.Close()
	for {
		reply, err := readReply(t.back, nil)
		if err != nil || t.answer(t.step(Push, []string{string(reply)}), reply) != nil {
			return
		}
	}
}

// answer writes a reply, as act changes it.
func (t *talk) answer(act Act, reply []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := act.bytes(reply)
	if act.late {
		t.late = append(t.late, out...)
		out = nil
	} else if len(out) > 0 {
		out = append(out, t.late...)
		t.late = nil
	}
	piece := len(out)
	if act.pieces > 0 {
		piece = act.pieces
	}
	for len(out) > 0 {
		n := min(piece, len(out))
		if _, err := t.client.Write(out[:n]); err != nil {
			return err
		}
		out = out[n:]
	}
	if act.stream > 0 {
		if err := t.flood(act); err != nil {
			return err
		}
	}
	return t.end(act.end)
}

// flood writes filler until there is enough, or the client has gone.
func (t *talk) flood(act Act) error {
	chunk := bytes.Repeat([]byte(act.filler), max(1, 64<<10/len(act.filler)))
	for left := act.stream; left > 0; {
		n := min(left, int64(len(chunk)))
		if _, err := t.client.Write(chunk[:n]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// end does the action that follows an answer.
func (t *talk) end(how ending) error {
	switch how {
	case hang: // no more bytes of the client are processed; it goes away, or the Server does
		_ = t.client.SetReadDeadline(time.Time{})
		for {
			if _, err := t.in.Discard(1); err != nil {
				return errEnd
			}
		}
	case reset:
		if tcp, ok := t.client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return errEnd
	case closes:
		return errEnd
	default:
		return nil
	}
}
