package redistest_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// silence is how long an answer must be missing to count as not given; a healthy server answers in microseconds.
const silence = 50 * time.Millisecond

func TestPauseStopsAnsweringAndResumeAnswersEarlierCommands(t *testing.T) {
	server := redistest.Start(t)
	conn := dial(t, server)

	send(t, conn, "PING")
	if answer, err := receive(t, conn, 5*time.Second); err != nil || answer != "+PONG\r\n" {
		t.Fatalf("before the pause: got %q, %v", answer, err)
	}

	for range 20 { // every time, not by luck
		must(t, server.Pause())
		must(t, server.Pause()) // again: nothing changes
		send(t, conn, "PING")
		if answer, err := receive(t, conn, silence/10); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("while paused: got %q, %v; want no answer", answer, err)
		}
		must(t, server.Resume())
		must(t, server.Resume())
		if answer, err := receive(t, conn, 5*time.Second); err != nil || answer != "+PONG\r\n" {
			t.Fatalf("after the pause: got %q, %v; want the answer to the command sent during the pause", answer, err)
		}
	}
}

func TestAPausedServerStillAcceptsConnections(t *testing.T) {
	server := redistest.Start(t)
	must(t, server.Pause())
	conn := dial(t, server)
	send(t, conn, "PING")
	if answer, err := receive(t, conn, silence); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %q, %v; want no answer", answer, err)
	}
}

func TestKillRefusesConnectionsUntilRestart(t *testing.T) {
	for _, paused := range []bool{false, true} {
		server := redistest.Start(t)
		before, pid := server.Addr(), server.Pid()
		if paused {
			must(t, server.Pause())
		}
		must(t, server.Kill())
		must(t, server.Kill())
		if exists(t, pid) {
			t.Errorf("paused=%t: process %d is still there after Kill", paused, pid)
		}
		if got := server.Pid(); got != 0 {
			t.Errorf("paused=%t: Pid of a killed server is %d, want 0", paused, got)
		}
		if conn, err := net.Dial("tcp", before); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("paused=%t: dialling a killed server: %v, %v; want connection refused", paused, conn, err)
		}
		must(t, server.Restart())
		if server.Addr() != before {
			t.Errorf("paused=%t: address was %s, after Restart %s", paused, before, server.Addr())
		}
		if now := server.Pid(); now == 0 || now == pid {
			t.Errorf("paused=%t: pid was %d, after Restart %d; want a new process", paused, pid, now)
		}
		must(t, server.Client().Ping(t.Context()).Err())
	}
}

// TestKillEndsTheServersChildren: a child that writes the server's file would go on for minutes, in a directory that
// is gone.
func TestKillEndsTheServersChildren(t *testing.T) {
	server := redistest.Start(t)
	set(t, server, "key")
	c := server.Client()
	must(t, c.ConfigSet(t.Context(), "rdb-key-save-delay", "600000000").Err())
	must(t, c.BgSave(t.Context()).Err())
	group := -server.Pid()
	must(t, server.Kill())
	deadline := time.Now().Add(10 * time.Second)
	for !errors.Is(syscall.Kill(group, 0), syscall.ESRCH) { // init waits for the child
		if time.Now().After(deadline) {
			t.Fatal("a process of the server's group is still there")
		}
		runtime.Gosched()
	}
}

func TestOnlyPersistedDataSurvivesARestart(t *testing.T) {
	tests := []struct {
		name    string
		opts    []redistest.Option
		restart func(*redistest.Server) error
		want    bool
	}{
		{"AOF, Restart", []redistest.Option{redistest.WithAOF()}, (*redistest.Server).Restart, true},
		{"AOF, Kill then Restart", []redistest.Option{redistest.WithAOF()}, func(s *redistest.Server) error {
			return errors.Join(s.Kill(), s.Restart())
		}, true},
		{"AOF, paused, Restart", []redistest.Option{redistest.WithAOF()}, func(s *redistest.Server) error {
			return errors.Join(s.Pause(), s.Restart())
		}, true},
		{"AOF, RestartEmpty", []redistest.Option{redistest.WithAOF()}, (*redistest.Server).RestartEmpty, false},
		{"no AOF, Restart", nil, (*redistest.Server).Restart, false},
		{"no AOF, RestartEmpty", nil, (*redistest.Server).RestartEmpty, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t, tt.opts...)
			set(t, server, "key")
			if !has(t, server, "key") {
				t.Fatal("the key is not there before the restart")
			}
			must(t, tt.restart(server))
			if got := has(t, server, "key"); got != tt.want {
				t.Errorf("key there after the restart: %t, want %t", got, tt.want)
			}
			set(t, server, "another") // and it serves
		})
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	redistest.Need(t)
	for _, state := range []string{"running", "paused", "killed"} {
		server, err := redistest.Run(t.Context(), redistest.Config{})
		must(t, err)
		pid, dir, port := server.Pid(), server.Dir(), server.Port()
		must(t, server.Client().Ping(t.Context()).Err())
		switch state {
		case "paused":
			must(t, server.Pause())
		case "killed":
			must(t, server.Kill())
		}
		must(t, server.Stop())
		must(t, server.Stop())

		if exists(t, pid) {
			t.Errorf("%s: process %d is still there", state, pid)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: directory %s is still there (%v)", state, dir, err)
		}
		again, err := localport.ReserveNumber(port)
		if err != nil {
			t.Errorf("%s: port was not given back: %v", state, err)
		} else {
			must(t, again.Release())
		}
		for name, method := range map[string]func() error{
			"Pause": server.Pause, "Resume": server.Resume, "Kill": server.Kill,
			"Restart": server.Restart, "RestartEmpty": server.RestartEmpty,
		} {
			if err := method(); !errors.Is(err, redistest.ErrStopped) {
				t.Errorf("%s: %s after Stop: %v, want ErrStopped", state, name, err)
			}
		}
	}
}

func TestAProcessThatDoesNotRunCannotBePaused(t *testing.T) {
	redistest.Need(t)
	server, err := redistest.Run(t.Context(), redistest.Config{})
	must(t, err)
	defer func() { must(t, server.Stop()) }()
	must(t, server.Kill())
	if err := server.Pause(); !errors.Is(err, redistest.ErrDown) {
		t.Errorf("Pause: %v, want ErrDown", err)
	}
	if err := server.Resume(); !errors.Is(err, redistest.ErrDown) {
		t.Errorf("Resume: %v, want ErrDown", err)
	}
}
