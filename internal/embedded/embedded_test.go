package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that happens at once on an idle machine.
const patience = 10 * time.Second

var must = locktest.Must

func start(tb testing.TB) (*embedded.Master, *redis.Client) {
	tb.Helper()
	master, err := embedded.New()
	must(tb, err)
	tb.Cleanup(func() { must(tb, master.Close()) })
	return master, client(tb, master)
}

func client(tb testing.TB, master *embedded.Master) *redis.Client {
	tb.Helper()
	opts, err := redis.ParseURL(master.URL())
	must(tb, err)
	opts.MaxRetries = -1
	opts.ContextTimeoutEnabled = true
	opts.DialerRetries = 1
	c := redis.NewClient(opts)
	tb.Cleanup(func() { must(tb, c.Close()) })
	return c
}

func TestAKeyExpiresByItselfAndNotEarly(t *testing.T) {
	_, c := start(t)
	const ttl = 80 * time.Millisecond
	before := time.Now()
	must(t, c.Set(t.Context(), "key", "value", ttl).Err())
	if left, err := c.PTTL(t.Context(), "key").Result(); err != nil || left <= 0 || left > ttl {
		t.Fatalf("PTTL right after SET: %v, %v; want within (0, %v]", left, err, ttl)
	}
	redistest.Eventually(t, patience, func() bool {
		n, err := c.Exists(t.Context(), "key").Result()
		must(t, err)
		return n == 0
	}, "the key to expire")
	if lived := time.Since(before); lived < ttl-time.Millisecond {
		t.Errorf("the key lived %v, want at least %v", lived, ttl)
	}
}

func TestTimeAdvancesLikeOurs(t *testing.T) {
	_, c := start(t)
	var previous time.Time
	for range 3 {
		before := time.Now()
		now, err := c.Time(t.Context()).Result()
		must(t, err)
		if now.Before(before.Add(-2*time.Millisecond)) || now.After(time.Now()) {
			t.Errorf("TIME is %v off", now.Sub(before))
		}
		if now.Before(previous) {
			t.Errorf("TIME went back from %v to %v", previous, now)
		}
		previous = now
	}
	first, err := c.Time(t.Context()).Result()
	must(t, err)
	redistest.Eventually(t, patience, func() bool {
		now, err := c.Eval(t.Context(), "local t = redis.call('TIME'); return t[1] * 1000000 + t[2]", nil).Int64()
		must(t, err)
		return time.UnixMicro(now).After(first)
	}, "TIME in a script to advance")
}

func TestTimeStopsInsideAScript(t *testing.T) {
	_, c := start(t)
	// Long enough that real time passes the ttl while the script runs; the key must be there to the end.
	const script = `
		redis.call('SET', KEYS[1], 'v', 'PX', 5)
		local before = redis.call('TIME')
		local x = 0
		for i = 1, 500000 do x = x + i end
		local after = redis.call('TIME')
		return {redis.call('EXISTS', KEYS[1]), before[1] == after[1] and before[2] == after[2] and 1 or 0}`
	began := time.Now()
	got, err := c.Eval(t.Context(), script, []string{"key"}).Int64Slice()
	must(t, err)
	if took := time.Since(began); took < 6*time.Millisecond {
		t.Fatalf("the script took only %v: the test shows nothing", took)
	}
	if got[0] != 1 || got[1] != 1 {
		t.Errorf("key there: %d, time unchanged: %d; want 1 and 1", got[0], got[1])
	}
	if n, err := c.Exists(t.Context(), "key").Result(); err != nil || n != 0 {
		t.Errorf("after the script the key is still there: %d, %v", n, err)
	}
}

func TestAStoppedMasterRefusesConnectionsAndComesBackAtTheSameAddress(t *testing.T) {
	tests := []struct {
		name string
		stop func(*embedded.Master) error
		want bool
	}{
		{"Stop keeps the data", (*embedded.Master).Stop, true},
		{"StopLosingData does not", (*embedded.Master).StopLosingData, false},
		{"Stop then StopLosingData does not", func(m *embedded.Master) error {
			return errors.Join(m.Stop(), m.StopLosingData())
		}, false},
		{"Stop twice keeps the data", func(m *embedded.Master) error { return errors.Join(m.Stop(), m.Stop()) }, true},
		{"paused, then Stop keeps the data", func(m *embedded.Master) error { m.Pause(); return m.Stop() }, true},
		{"Restart alone keeps the data", func(*embedded.Master) error { return nil }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			master, c := start(t)
			addr := master.Addr()
			must(t, c.Set(t.Context(), "key", "value", 0).Err())
			must(t, tt.stop(master))
			if !master.Running() {
				if conn, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Fatalf("dialling a stopped master: %v, %v; want connection refused", conn, err)
				}
				if err := c.Ping(t.Context()).Err(); err == nil {
					t.Fatal("a stopped master answered")
				}
			}
			must(t, master.Restart())
			if master.Addr() != addr || !master.Running() {
				t.Fatalf("after Restart: running %t at %s, want at %s", master.Running(), master.Addr(), addr)
			}
			n, err := client(t, master).Exists(t.Context(), "key").Result()
			must(t, err)
			if got := n == 1; got != tt.want {
				t.Errorf("key there after the restart: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestTimeGoesOnWhileAMasterIsStopped(t *testing.T) {
	master, c := start(t)
	must(t, c.Set(t.Context(), "short", "value", 20*time.Millisecond).Err())
	must(t, c.Set(t.Context(), "long", "value", time.Hour).Err())
	must(t, master.Stop())
	stopped := time.Now()
	redistest.Eventually(t, patience, func() bool { return time.Since(stopped) > 30*time.Millisecond },
		"the short ttl to pass")
	must(t, master.Restart())
	c = client(t, master)
	if keys, err := c.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 1 || keys[0] != "long" {
		t.Errorf("keys after the restart: %v, %v; want only the long one", keys, err)
	}
}

func TestARestartForgetsScriptsAndTakesANewRunID(t *testing.T) {
	master, c := start(t)
	sha, err := c.ScriptLoad(t.Context(), "return 1").Result()
	must(t, err)
	must(t, c.EvalSha(t.Context(), sha, nil).Err())
	before := infoField(t, c, "run_id")
	must(t, master.Restart())
	c = client(t, master)
	if err := c.EvalSha(t.Context(), sha, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("EVALSHA after a restart: %v, want NOSCRIPT", err)
	}
	if after := infoField(t, c, "run_id"); after == before || len(after) != 40 {
		t.Errorf("run_id was %q and is %q; want a new one of 40 digits", before, after)
	}
}

// infoField is one field of INFO server.
func infoField(tb testing.TB, c *redis.Client, name string) string {
	tb.Helper()
	info, err := c.Info(tb.Context(), "server").Result()
	must(tb, err)
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+":"); found {
			return value
		}
	}
	tb.Fatalf("INFO server has no %s:\n%s", name, info)
	return ""
}

func TestAPausedMasterAnswersAfterResume(t *testing.T) {
	master, c := start(t)
	must(t, c.Ping(t.Context()).Err()) // connected
	master.Pause()
	master.Pause()
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := c.Set(short, "key", "value", 0).Err(); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Fatalf("while paused: %v, want a timeout", err)
	}
	fresh := client(t, master) // a new connection is accepted and waits
	answered := make(chan error, 1)
	go func() { answered <- fresh.Ping(t.Context()).Err() }()
	select {
	case err := <-answered:
		t.Fatalf("a paused master answered: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	master.Resume()
	master.Resume()
	must(t, <-answered)
	redistest.Eventually(t, patience, func() bool { return fresh.Exists(t.Context(), "key").Val() == 1 },
		"the request whose sender gave up to land")
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

func TestStopCutsConnectionsAlsoPausedBlockedAndSubscribedOnes(t *testing.T) {
	master, c := start(t)
	subscription := c.Subscribe(t.Context(), "channel")
	defer subscription.Close()
	_, err := subscription.Receive(t.Context())
	must(t, err)
	blocked := make(chan error, 1)
	go func() { blocked <- c.BLPop(t.Context(), 0, "list").Err() }()
	redistest.Eventually(t, patience, func() bool {
		return c.PoolStats().TotalConns > 0 && c.Ping(t.Context()).Err() == nil
	}, "BLPOP to be sent")
	master.Pause()
	must(t, master.Stop())
	if err := <-blocked; err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("BLPOP on a master that stopped: %v, want a broken connection", err)
	}
	if _, err := subscription.Receive(t.Context()); err == nil {
		t.Error("a subscription outlived its master")
	}
	must(t, master.Restart())
	must(t, client(t, master).Ping(t.Context()).Err())
}

func TestAReconnectingClientNeverMeetsAHalfStartedMaster(t *testing.T) {
	master, _ := start(t)
	var answers atomic.Int64
	for range 4 {
		redistest.Meanwhile(t, func() {
			switch answer := setOnce(master.Addr()); answer {
			case "": // refused or cut
			case "+OK\r\n":
				answers.Add(1)
			default:
				t.Errorf("the master said %q", answer)
			}
		})
	}
	for i := range 40 {
		before := answers.Load()
		redistest.Eventually(t, patience, func() bool { return answers.Load() > before },
			"an answer between two restarts")
		if i%2 == 0 {
			must(t, master.StopLosingData())
		}
		must(t, master.Restart())
	}
}

// setOnce dials, sets a key and returns the answer, or nothing when the connection was refused or cut.
func setOnce(addr string) string {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n")); err != nil {
		return ""
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return ""
	}
	return answer
}

func TestAClosedMasterStaysClosed(t *testing.T) {
	master, err := embedded.New()
	must(t, err)
	must(t, master.Close())
	must(t, master.Close())
	for name, method := range map[string]func() error{
		"Stop": master.Stop, "StopLosingData": master.StopLosingData, "Restart": master.Restart,
	} {
		if err := method(); !errors.Is(err, embedded.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	if conn, err := net.Dial("tcp", master.Addr()); err == nil {
		t.Errorf("a closed master accepted %v", conn.LocalAddr())
	}
}

func TestAClusterIsIndependentMasters(t *testing.T) {
	if _, err := embedded.Start(0); err == nil {
		t.Error("a cluster of none was started")
	}
	cluster, err := embedded.Start(5)
	must(t, err)
	defer func() { must(t, errors.Join(cluster.Close(), cluster.Close())) }()
	runIDs := map[string]bool{}
	for i, master := range cluster.Masters {
		c := client(t, master)
		must(t, c.Set(t.Context(), "number", i, 0).Err())
		runIDs[infoField(t, c, "run_id")] = true
		if cluster.URLs()[i] != master.URL() {
			t.Errorf("master %d: URLs disagree", i)
		}
	}
	if len(runIDs) != 5 {
		t.Errorf("%d different run_ids, want 5", len(runIDs))
	}
	for i, master := range cluster.Masters {
		if got, err := client(t, master).Get(t.Context(), "number").Int(); err != nil || got != i {
			t.Errorf("master %d holds %d, %v", i, got, err)
		}
	}
}
