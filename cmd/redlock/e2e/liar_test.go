package e2e_test

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// liar starts a proxy in front of a server that changes each line of the server's replies. It returns the proxy's URL.
func liar(t *testing.T, s *redistest.Server, change func(line string) string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed by the test's end
			}
			server, err := net.Dial("tcp", s.Addr())
			if err != nil {
				_ = client.Close()
				continue
			}
			connections.Go(func() {
				defer server.Close()
				_, _ = io.Copy(server, client)
			})
			connections.Go(func() {
				defer client.Close()
				for said := bufio.NewReader(server); ; {
					line, err := said.ReadString('\n')
					if err != nil {
						return
					}
					_, _ = io.WriteString(client, change(line))
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait() // the command has ended, and its connections with it
	})
	return "redis://" + listener.Addr().String()
}

// anOldVersion speaks of itself as Redis 4.
func anOldVersion(line string) string {
	return regexp.MustCompile(`^redis_version:\d+`).ReplaceAllString(line, "redis_version:4")
}

// aSlowWay lets every line take its time.
func aSlowWay(line string) string {
	<-time.After(8 * time.Millisecond)
	return line
}

// unixTime is a line of the answer to TIME.
var unixTime = regexp.MustCompile(`^\d{10}\r\n$`)

// aClockAhead is a minute ahead.
func aClockAhead(line string) string {
	return shifted(line, time.Minute)
}

// aClockThatRuns is ten times too fast from its first reading on.
func aClockThatRuns() func(line string) string {
	start := sync.OnceValue(time.Now)
	return func(line string) string {
		if !unixTime.MatchString(line) {
			return line
		}
		return shifted(line, 9*time.Since(start()))
	}
}

// shifted changes the seconds of TIME. It leaves the microseconds, which have a separate line.
func shifted(line string, by time.Duration) string {
	if !unixTime.MatchString(line) {
		return line
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return line
	}
	return strconv.FormatInt(seconds+int64(by.Seconds()), 10) + "\r\n"
}
