package single_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// odd is a server that sends the replies of an answers function.
type odd struct {
	addr string

	mu    sync.Mutex
	conns int
	said  map[string]int // how often each command came, by its name
	live  map[net.Conn]bool
}

func (s *odd) serve(n int, conn net.Conn, answer answers) {
	defer func() {
		s.mu.Lock()
		delete(s.live, conn)
		s.mu.Unlock()
		_ = conn.Close()
	}()
	in := bufio.NewReader(conn)
	for {
		words, err := command(in)
		if err != nil {
			return
		}
		name := strings.ToLower(words[0])
		s.mu.Lock()
		s.said[name]++
		s.mu.Unlock()
		reply := answer(n, words)
		if reply == "" {
			reply = usual(name, words)
		}
		if reply == hangUp {
			return
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// heard returns how often a command came.
func (s *odd) heard(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said[name]
}

// connected returns how many connections there have been.
func (s *odd) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// push sends an unasked message on all connections that are still open.
func (s *odd) push(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.live {
		_, _ = io.WriteString(conn, text)
	}
}

// answers returns an odd server's reply to a command; "" means a usual server's reply.
type answers func(conn int, command []string) string

// says answers commands of these names so, and others as usual.
func says(replies map[string]string) answers {
	return func(_ int, words []string) string { return replies[strings.ToLower(words[0])] }
}

// hangUp makes the server close the connection.
const hangUp = "hang up"

// oddServer starts an odd server; it is closed with the test.
func oddServer(tb testing.TB, answer answers) *odd {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	return oddServerAt(tb, listener, answer)
}

// oddServerAt starts an odd server with this listener.
func oddServerAt(tb testing.TB, listener net.Listener, answer answers) *odd {
	tb.Helper()
	s := &odd{addr: listener.Addr().String(), said: make(map[string]int), live: make(map[net.Conn]bool)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			n := s.conns
			s.live[conn] = true
			s.mu.Unlock()
			wg.Go(func() { s.serve(n, conn, answer) })
		}
	})
	tb.Cleanup(func() {
		must(tb, listener.Close())
		s.mu.Lock()
		for conn := range s.live {
			_ = conn.Close()
		}
		s.mu.Unlock()
		wg.Wait()
	})
	return s
}

// usual is the reply of a server without any data that a lock needs, where only the key is free.
func usual(name string, words []string) string {
	switch name {
	case "ping":
		return "+PONG\r\n"
	case "evalsha", "eval":
		return ":1\r\n"
	case "hello":
		return "*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n"
	case "subscribe":
		return "*3\r\n$9\r\nsubscribe\r\n$" + strconv.Itoa(len(words[1])) + "\r\n" + words[1] + "\r\n:1\r\n"
	default:
		return "+OK\r\n"
	}
}

// command reads one command.
func command(in *bufio.Reader) ([]string, error) {
	number := func(kind byte) (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line[0] != kind {
			return 0, errors.New("not a command")
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}

// guardAnswer is the guard's answers from a server that has run for long.
func guardAnswer(words []string) string {
	bulk := func(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
	switch strings.ToLower(words[0]) {
	case "info":
		if words[1] == "server" {
			return bulk("run_id:a\r\nuptime_in_seconds:100000\r\n")
		}
		return bulk("aof_enabled:1\r\nrole:master\r\nmaster_replid2:0000\r\n")
	case "time":
		return "*2\r\n" + bulk("1790000000") + bulk("17")
	case "config":
		value := "always"
		if words[2] != "appendfsync" {
			value = "no"
		}
		return "*2\r\n" + bulk(words[2]) + bulk(value)
	case "get":
		return "$-1\r\n"
	}
	return ""
}

// young gives the answers of a durable server that was restarted a moment ago and has the mark.
func young(words []string) string {
	switch {
	case words[0] == "info" && words[1] == "server":
		return "$31\r\nrun_id:b\r\nuptime_in_seconds:1\r\n\r\n"
	case words[0] == "get":
		return "$7\r\n3600000\r\n"
	}
	return guardAnswer(words)
}

// behind is a server that sends one reply too many, stray, when it gets a bundle of two locks with two keys each.
// From then on each command gets the reply of the command before, and the reply to the last command never comes.
// answer gives the replies, after the replies of a usual server.
func behind(t *testing.T, stray string, answer func(words []string) string) *odd {
	t.Helper()
	var mu sync.Mutex
	owed, late := "", false
	return oddServer(t, func(_ int, words []string) string {
		mu.Lock()
		defer mu.Unlock()
		reply := answer(words)
		if strings.HasPrefix(strings.ToLower(words[0]), "eval") && words[2] == "8" && !late {
			late, owed = true, reply
			return stray
		}
		if !late {
			return reply
		}
		if reply == "" {
			reply = usual("odd", words)
		}
		owed, reply = reply, owed
		return reply
	})
}
