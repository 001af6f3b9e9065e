package slogobserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/observe/slogobserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = locktest.Must

// levels plays a lock's life on real masters, with one of three stopped and the lock deleted in the end. It returns how
// often each message was logged at each level.
func TestTheLifeOfALockIsLoggedAtItsLevels(t *testing.T) {
	servers := redistest.StartN(t, 3, redistest.WithPassword("hunter2-hunter2"))
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	var log bytes.Buffer // slog's handlers take turns
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{Observer: slogobserver.New(logger)})
	must(t, err)
	lock, err := locker.Acquire(t.Context(), "orders:42", 5*time.Second)
	must(t, err)
	_, err = locker.TryAcquire(t.Context(), "orders:42", 5*time.Second)
	if err == nil {
		t.Fatal("taken twice")
	}
	must(t, lock.Release(t.Context()))
	must(t, servers[0].Kill())
	must(t, servers[1].Kill())
	if _, err := locker.TryAcquire(t.Context(), "orders:42", time.Second); err == nil {
		t.Fatal("taken without a quorum")
	}
	must(t, servers[0].Restart())
	must(t, servers[1].Restart())
	lost, err := locker.Acquire(t.Context(), "orders:43", time.Minute)
	must(t, err)
	locktest.TellAll(t, servers, "flushall")
	if err := lost.Extend(t.Context(), time.Minute); err == nil {
		t.Fatal("extended a lost lock")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(t, locker.Close(ctx)) // nothing is logged afterwards

	seen := map[string]int{}
	for line := range strings.Lines(log.String()) {
		var entry struct{ Level, Msg, Key, Error, Vote string }
		must(t, json.Unmarshal([]byte(line), &entry))
		seen[entry.Level+" "+entry.Msg]++
		if !strings.HasPrefix(entry.Key, "orders:4") {
			t.Errorf("no key in %s", line)
		}
	}
	for _, want := range []string{
		"INFO redlock returned", "DEBUG redlock returned", "WARN redlock acquire", "WARN redlock vote",
		"DEBUG redlock vote",
		"DEBUG redlock acquire", "INFO redlock release", "ERROR redlock lost",
	} {
		if seen[want] == 0 {
			t.Errorf("nothing of %q in %v", want, seen)
		}
	}
	for _, secret := range []string{"hunter2", lock.Owner(), lost.Owner()} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

func TestALevelThatIsOffCostsNoAllocation(t *testing.T) {
	observer := slogobserver.New(slog.New(slog.DiscardHandler))
	e := redlock.Event{Kind: redlock.EventVote, Key: "orders:42", Master: "127.0.0.1:1"}
	if n := testing.AllocsPerRun(100, func() { observer(e) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
