package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-624411e5/redlock/internal/process"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// patience limits every wait for an event.
const patience = 20 * time.Second

// startMasters is `masters n [password]`: starts n redis-servers, and sets REDLOCK_MASTERS to their URLs.
func startMasters(ts *testscript.TestScript, neg bool, args []string) {
	var cfg redistest.Config
	if len(args) > 1 {
		cfg.Password = args[1]
	}
	startFleet(ts, neg, args[0], cfg)
}

func startFleet(ts *testscript.TestScript, neg bool, number string, cfg redistest.Config) {
	n, err := strconv.Atoi(number)
	check(ts, neg, err)
	cfg.TempDir = ts.MkAbs("tmp")
	f := fleetOf(ts)
	f.servers, err = redistest.RunN(context.Background(), n, cfg) // a script is no testing.T
	check(ts, neg, err)
	var urls []string
	for i, s := range f.servers {
		urls = append(urls, s.URL())
		ts.Setenv(fmt.Sprintf("ADDR%d", i+1), s.Addr())
		ts.Setenv(fmt.Sprintf("URL%d", i+1), s.URL())
	}
	ts.Setenv("REDLOCK_MASTERS", strings.Join(urls, ","))
}

// changeMaster is `master kill|pause|resume|restart-empty i...`.
func changeMaster(ts *testscript.TestScript, neg bool, args []string) {
	for _, arg := range args[1:] {
		i, err := strconv.Atoi(arg)
		check(ts, neg, err)
		s := fleetOf(ts).servers[i-1]
		switch args[0] {
		case "kill":
			err = s.Kill()
		case "pause":
			err = s.Pause()
		case "resume":
			err = s.Resume()
		case "restart-empty":
			err = s.RestartEmpty()
		default:
			err = fmt.Errorf("master: no action %q", args[0])
		}
		check(ts, neg, err)
	}
}

// keys is `keys n|some pattern`: the masters together have n keys of this pattern, or some, or will have. It does not
// ask masters that do not run.
func keys(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	some := args[0] == "some"
	if !some {
		check(ts, neg, err)
	}
	var found []string
	if !wait(func() bool {
		found = nil
		for _, s := range fleetOf(ts).servers {
			if s.Pid() == 0 {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			there, err := s.Client().Keys(ctx, args[1]).Result()
			cancel()
			check(ts, false, err)
			found = append(found, there...)
		}
		if some {
			return len(found) > 0
		}
		return len(found) == want
	}) {
		ts.Fatalf("keys %s: %q, want %s of them", args[1], found, args[0])
	}
}

// redisCommand is `redis command args...`: runs it on every master.
func redisCommand(ts *testscript.TestScript, neg bool, args []string) {
	send(ts, neg, fleetOf(ts).servers, args)
}

// redisAt is `redis-at i,... command args...`: runs it on these masters.
func redisAt(ts *testscript.TestScript, neg bool, args []string) {
	for number := range strings.SplitSeq(args[0], ",") {
		i, err := strconv.Atoi(number)
		check(ts, neg, err)
		send(ts, neg, fleetOf(ts).servers[i-1:i], args[1:])
	}
}

func send(ts *testscript.TestScript, neg bool, servers []*redistest.Server, args []string) {
	words := make([]any, len(args))
	for i, arg := range args {
		words[i] = arg
	}
	for _, s := range servers {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		check(ts, neg, s.Client().Do(ctx, words...).Err())
		cancel()
	}
}

// eventual is `eventual file [text]`: the file has a whole line and contains the text, or will soon. The existence of
// the file is not enough: a shell makes a file before it writes to it.
func eventual(ts *testscript.TestScript, _ bool, args []string) {
	read := ""
	if !wait(func() bool {
		raw, err := os.ReadFile(ts.MkAbs(args[0]))
		read = string(raw)
		return err == nil && strings.HasSuffix(read, "\n") && (len(args) == 1 || strings.Contains(read, args[1]))
	}) {
		ts.Fatalf("%s does not hold a whole line with %q but %q", args[0], args[1:], read)
	}
}

// status is `status n command args...`: it runs the command, which must exit with n. The output is in status.out and
// status.err.
func status(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	check(ts, neg, err)
	got, err := 0, ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got, err = exit.ExitCode(), nil
	}
	check(ts, neg, err)
	for _, name := range []string{"out", "err"} {
		check(ts, neg, os.WriteFile(ts.MkAbs("status."+name), []byte(ts.ReadFile("std"+name)), 0o600))
	}
	if got != want {
		ts.Fatalf("%q exited with %d, want %d", args[1:], got, want)
	}
}

// dead is `dead file...`: the processes with the ids in the files have ended, or will soon. With ! they run.
func dead(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(name)))
		check(ts, false, err)
		if neg {
			if ended(pid) {
				ts.Fatalf("process %d of %s has ended", pid, name)
			}
			continue
		}
		if !wait(func() bool { return ended(pid) }) {
			ts.Fatalf("process %d of %s still runs", pid, name)
		}
	}
}

func wait(cond func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return process.Poll(ctx, cond)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(ts *testscript.TestScript, neg bool, err error) {
	if neg {
		ts.Fatalf("unsupported: !")
	}
	ts.Check(err)
}
