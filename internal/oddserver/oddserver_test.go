package oddserver_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// converse sends commands to an odd server without waiting for replies, and returns the bytes that come back. It
// reads until the server ends the connection, or until enough bytes have come and no more for a moment. ended says
// which.
func converse(t *testing.T, s *oddserver.Server, enough int, commands ...string) (got string, ended error) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	must(t, err)
	defer conn.Close()
	var out strings.Builder
	for _, c := range commands {
		words := strings.Fields(c)
		out.WriteString("*" + string(rune('0'+len(words))) + "\r\n")
		for _, w := range words {
			out.WriteString("$" + string(rune('0'+len(w))) + "\r\n" + w + "\r\n")
		}
	}
	_, err = io.WriteString(conn, out.String())
	must(t, err)
	buffer := make([]byte, 64<<10)
	for {
		wait := patience
		if len(got) >= enough {
			wait = 20 * time.Millisecond
		}
		must(t, conn.SetReadDeadline(time.Now().Add(wait)))
		n, err := conn.Read(buffer)
		got += string(buffer[:n])
		if err != nil || len(got) > enough {
			return got, err
		}
	}
}

func TestActsDoWhatTheySay(t *testing.T) {
	server := redistest.Start(t)
	const key = "k"
	for name, c := range map[string]struct {
		act      oddserver.Act
		commands string
		want     string
		ended    error // nil: it stays open
		executed int
	}{
		"pass":         {oddserver.Pass(), "SET k 1|GET k", "+OK\r\n$1\r\n1\r\n", nil, 1},
		"say":          {oddserver.Say("+QUEUED\r\n"), "SET k 1|GET k", "+QUEUED\r\n$-1\r\n", nil, 0},
		"lie":          {oddserver.Lie(":7\r\n"), "SET k 1|GET k", ":7\r\n$1\r\n1\r\n", nil, 1},
		"silent":       {oddserver.Silent(), "SET k 1|GET k", "", nil, 0},
		"unanswered":   {oddserver.Unanswered(), "SET k 1|GET k", "$1\r\n1\r\n", nil, 1},
		"before":       {oddserver.Before(":7\r\n"), "SET k 1", ":7\r\n+OK\r\n", nil, 1},
		"after":        {oddserver.After(":7\r\n"), "SET k 1|GET k", "+OK\r\n:7\r\n$1\r\n1\r\n", nil, 1},
		"again":        {oddserver.Again(2), "SET k 1", "+OK\r\n+OK\r\n+OK\r\n", nil, 1},
		"late":         {oddserver.Late(), "SET k 1|GET k", "$1\r\n1\r\n+OK\r\n", nil, 1},
		"cut":          {oddserver.Cut(2).ThenHang(), "SET k 1|GET k", "+O", nil, 1},
		"cut, close":   {oddserver.Cut(99).ThenClose(), "SET k 1|GET k", "+OK\r", io.EOF, 1},
		"pieces":       {oddserver.Pieces(1), "SET k 1|GET k", "+OK\r\n$1\r\n1\r\n", nil, 1},
		"close":        {oddserver.Say("").ThenClose(), "SET k 1", "", io.EOF, 0},
		"reset":        {oddserver.Say("").ThenReset(), "SET k 1", "", syscall.ECONNRESET, 0},
		"stream":       {oddserver.Say("$9\r\n").ThenStream("ab", 5).ThenClose(), "SET k 1", "$9\r\nababa", io.EOF, 0},
		"no set":       {oddserver.Silent(), "GET k", "$-1\r\n", nil, 0},
		"a script too": {oddserver.Say("+no\r\n"), "set k 1", "+no\r\n", nil, 0},
	} {
		must(t, server.Client().Del(t.Context(), key).Err())
		s := oddserver.Start(t, server.Addr(), oddserver.At("SET", c.act))
		enough := len(c.want)
		if c.ended != nil {
			enough++ // which never comes: the other side ends it
		}
		got, ended := converse(t, s, enough, strings.Split(c.commands, "|")...)
		if errors.Is(ended, os.ErrDeadlineExceeded) {
			ended = nil
		}
		if got != c.want || !errors.Is(ended, c.ended) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, ended, c.want, c.ended)
		}
		if s.Executed(key, "1") != c.executed {
			t.Errorf("%s: executed %d times, want %d", name, s.Executed(key, "1"), c.executed)
		}
		s.Close()
	}
}

func TestAConnectionIsAStepToo(t *testing.T) {
	server := redistest.Start(t)
	s := oddserver.Start(t, server.Addr(), oddserver.At(oddserver.Connect, oddserver.Say("+OK\r\n")))
	want := "+OK\r\n$-1\r\n"
	if got, _ := converse(t, s, len(want), "GET k"); got != want || s.Acted() != 1 || s.Seen("GET") != 1 {
		t.Errorf("%q, acted %d times", got, s.Acted())
	}
	s.Play(nil)
	if got, _ := converse(t, s, len("$-1\r\n"), "GET k"); got != "$-1\r\n" {
		t.Errorf("%q", got)
	}
}

func TestASubscriptionIsPassedOn(t *testing.T) {
	server := redistest.Start(t)
	s := oddserver.Start(t, server.Addr(), oddserver.At(oddserver.Push, oddserver.Lie("!\r\n")))
	done := make(chan string)
	confirmation := "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
	go func() {
		got, _ := converse(t, s, len(confirmation)+3, "SUBSCRIBE c")
		done <- got
	}()
	redistest.Eventually(t, patience, func() bool { return server.Client().Publish(bg, "c", "m").Val() > 0 },
		"a subscriber")
	if got := <-done; got != confirmation+"!\r\n" {
		t.Errorf("%q", got)
	}
}

// An endless stream ends when the client or the server ends.
func TestAStreamForEverEnds(t *testing.T) {
	server := redistest.Start(t)
	s := oddserver.Start(t, server.Addr(), oddserver.At("GET", oddserver.Say("+").ThenStreamForEver("x")))
	if got, _ := converse(t, s, 1<<20, "GET k"); len(got) < 1<<20 || strings.Trim(got[1:], "x") != "" {
		t.Errorf("%d bytes", len(got))
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
	must(t, err)
	s.Close()
}
