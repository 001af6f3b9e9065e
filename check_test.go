package redlock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// audit checks a set of masters.
func audit(t *testing.T, masters []redlock.Master, opts redlock.Options) *redlock.Audit {
	t.Helper()
	locker, err := redlock.New(masters, opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := locker.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	got, err := locker.Check(t.Context())
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	return got
}

// sound starts n servers that nothing is wrong with.
func sound(t *testing.T, n int) []*redistest.Server {
	t.Helper()
	return redistest.StartN(t, n, redistest.WithAOF())
}

// masterOf makes a master that is closed with the test.
func masterOf(t *testing.T, opt *redis.Options) redlock.Master {
	t.Helper()
	m, err := single.Open(opt, single.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// among puts a master next to two sound ones.
func among(t *testing.T, m redlock.Master) []redlock.Master {
	t.Helper()
	masters := []redlock.Master{m}
	for _, s := range sound(t, 2) {
		masters = append(masters, masterOf(t, &redis.Options{Addr: s.Addr()}))
	}
	return masters
}

// wants fails the test unless there is just one finding whose text contains what, of the given severity, about the
// given master, and none that is worse than a note beside it.
func wants(t *testing.T, got *redlock.Audit, severity redlock.Severity, master, what string) {
	t.Helper()
	found := 0
	for _, f := range got.Findings {
		switch {
		case strings.Contains(f.What, what):
			found++
			if f.Severity != severity || f.Master != master {
				t.Errorf("found as %v about %q, want %v about %q: %v", f.Severity, f.Master, severity, master, f)
			}
			if f.Why == "" || f.Fix == "" {
				t.Errorf("the finding does not say why it matters and how to mend it: %v", f)
			}
		case f.Severity > redlock.Note:
			t.Errorf("found besides: %v", f)
		}
	}
	if found != 1 {
		t.Errorf("found %q %d times, want once, in:\n%v", what, found, got)
	}
	if got.Worst() != severity && severity > redlock.Note {
		t.Errorf("the worst is %v, want %v", got.Worst(), severity)
	}
}

func TestASoundSetHasNothingToMend(t *testing.T) {
	servers := sound(t, 3)
	locker := dial(t, servers, redlock.Options{})
	got, err := locker.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Worst() > redlock.Note {
		t.Errorf("found:\n%v", got)
	}
	wants(t, got, redlock.Note, "", "All masters are on 127.0.0.1.")
	for i, m := range got.Masters {
		if m.Err != nil || m.Name != servers[i].Addr() || len(m.RunID) != 40 || m.Role != "master" || m.Version == "" ||
			m.Persistence != "aof, fsync always" || m.Latency <= 0 || m.ClockOffset.Abs() > time.Second || m.ClockRateError <= 0 {
			t.Errorf("master %d reports %+v", i, m)
		}
		left, err := servers[i].Client().Keys(t.Context(), "*").Result()
		if err != nil || len(left) > 0 {
			t.Errorf("the check left %v, %v", left, err)
		}
	}
}

func TestHazard33TheSameServerListedTwiceIsFound(t *testing.T) {
	servers := sound(t, 2)
	again, err := redlock.NewMaster(servers[0].Client()) // through its socket
	if err != nil {
		t.Fatal(err)
	}
	masters := []redlock.Master{
		masterOf(t, &redis.Options{Addr: servers[0].Addr()}), masterOf(t, &redis.Options{Addr: servers[1].Addr()}), again,
	}
	wants(t, audit(t, masters, redlock.Options{}), redlock.Unsafe, servers[0].Addr()+", "+again.Name(), "They are one server")
}

func TestHazard33AReplicaListedAsAMasterIsFound(t *testing.T) {
	servers := sound(t, 2)
	port := strconv.Itoa(servers[0].Port())
	run(t, servers[1], "REPLICAOF", "127.0.0.1", port)
	redistest.Eventually(t, 10*time.Second, func() bool {
		return strings.Contains(servers[0].Client().Info(t.Context(), "replication").Val(), "connected_slaves:1")
	}, "the replica to connect")

	replica := audit(t, among(t, masterOf(t, &redis.Options{Addr: servers[1].Addr()})), redlock.Options{})
	wants(t, replica, redlock.Unsafe, servers[1].Addr(), "It is a replica of 127.0.0.1:"+port)
	master := audit(t, among(t, masterOf(t, &redis.Options{Addr: servers[0].Addr()})), redlock.Options{})
	wants(t, master, redlock.Risk, servers[0].Addr(), "It has 1 replicas.")
}

func TestAGuardMakesUpForPersistence(t *testing.T) {
	server := redistest.Start(t)
	const guard = 1500 * time.Millisecond
	m, err := single.Open(&redis.Options{Addr: server.Addr()}, single.Options{RestartGuard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	masters := among(t, m)
	wants(t, audit(t, masters, redlock.Options{}), redlock.Risk, server.Addr(), "does not vote for another")
	redistest.Eventually(t, 10*time.Second, func() bool { return m.Client().Ping(t.Context()).Err() == nil }, "the guard to pass")
	wants(t, audit(t, masters, redlock.Options{}), redlock.Note, server.Addr(), "does not vote for 1.5s after one")
}

func TestATimeoutBelowTheRoundTripIsFound(t *testing.T) {
	server := sound(t, 1)[0]
	m := masterOf(t, &redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return farConn{conn}, err
	}})
	got := audit(t, among(t, m), redlock.Options{RequestTimeout: 12 * time.Millisecond})
	wants(t, got, redlock.Risk, server.Addr(), "It answers in ")
}

// liar changes what a real server answers.
type liar struct {
	skew func(time.Time) time.Time
	info func(string) string
}

func (liar) DialHook(next redis.DialHook) redis.DialHook { return next }

func (liar) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l liar) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		switch cmd := cmd.(type) {
		case *redis.TimeCmd:
			if l.skew != nil {
				cmd.SetVal(l.skew(cmd.Val()))
			}
		case *redis.StringCmd:
			if l.info != nil && cmd.Name() == "info" {
				cmd.SetVal(l.info(cmd.Val()))
			}
		}
		return err
	}
}

func TestWhatAServersClockAndVersionSayIsJudged(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for _, test := range []struct {
		name     string
		liar     liar
		severity redlock.Severity
		what     string
	}{
		{"an hour ahead", liar{skew: func(t time.Time) time.Time { return t.Add(time.Hour) }}, redlock.Risk, "Its clock is off by 1h0m0"},
		{"five percent fast", liar{skew: func(t time.Time) time.Time { return t.Add(t.Sub(start) / 20) }}, redlock.Unsafe, "faster than this machine's"},
		{"five percent slow", liar{skew: func(t time.Time) time.Time { return t.Add(-t.Sub(start) / 20) }}, redlock.Unsafe, "Its clock ran -5."},
		{"too old", liar{info: func(s string) string { return strings.Replace(s, "redis_version:7", "redis_version:4", 1) }}, redlock.Risk, "It is Redis 4."},
		{"disk full", liar{info: func(s string) string {
			return strings.Replace(s, "aof_last_write_status:ok", "aof_last_write_status:err", 1)
		}}, redlock.Risk, "It could not write its append-only file."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := sound(t, 1)[0]
			m := masterOf(t, &redis.Options{Addr: server.Addr()})
			m.(*single.Master).Client().AddHook(test.liar)
			wants(t, audit(t, among(t, m), redlock.Options{}), test.severity, server.Addr(), test.what)
		})
	}
}

// foreign is somebody's own Master, without a client to ask; it may forget who holds a key.
type foreign struct {
	redlock.Master
	grantsAll bool
}

func (f foreign) Do(ctx context.Context, batch []*single.Call) {
	f.Master.Do(ctx, batch)
	for _, c := range batch {
		if f.grantsAll {
			c.Reply.Outcome = single.Granted
		}
	}
}

func TestMastersOfOthersAreTriedAsFarAsPossible(t *testing.T) {
	server := sound(t, 1)[0]
	m := masterOf(t, &redis.Options{Addr: server.Addr()})
	wants(t, audit(t, among(t, foreign{Master: m}), redlock.Options{}), redlock.Note, server.Addr(), "no access to the server")
	wants(t, audit(t, among(t, foreign{m, true}), redlock.Options{}), redlock.Unsafe, server.Addr(), "refuses a held key, it did not")
}

func TestMastersBehindOtherKindsOfClientsCanBeChecked(t *testing.T) {
	t.Parallel()
	server := sound(t, 1)[0]
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": server.Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	m, err := redlock.NewMaster(ring)
	if err != nil {
		t.Fatal(err)
	}
	got := audit(t, among(t, m), redlock.Options{})
	if got.Worst() > redlock.Note || len(got.Masters[0].RunID) != 40 {
		t.Errorf("a Ring: %+v\n%v", got.Masters[0], got)
	}

	node := redistest.Start(t, redistest.WithAOF(), redistest.WithArgs("--cluster-enabled", "yes"))
	joinCluster(t, node)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Addr()}})
	t.Cleanup(func() { _ = cluster.Close() })
	if m, err = redlock.NewMaster(cluster); err != nil {
		t.Fatal(err)
	}
	wants(t, audit(t, among(t, m), redlock.Options{}), redlock.Risk, node.Addr(), "It is part of a Redis Cluster.")
}

func TestTheNumberOfMastersIsNoted(t *testing.T) {
	servers := sound(t, 2)
	one := []redlock.Master{masterOf(t, &redis.Options{Addr: servers[0].Addr()})}
	wants(t, audit(t, one, redlock.Options{}), redlock.Note, "", "There is one master.")
	two := slices.Concat(one, []redlock.Master{masterOf(t, &redis.Options{Addr: servers[1].Addr()})})
	wants(t, audit(t, two, redlock.Options{}), redlock.Note, "", "There are 2 masters.")
}

func TestAMasterThatHangsDoesNotHoldUpTheCheck(t *testing.T) {
	servers := sound(t, 3)
	locker := dial(t, servers, redlock.Options{})
	servers[1].Pause()
	defer servers[1].Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	got, err := locker.Check(ctx)
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	wants(t, got, redlock.Risk, servers[1].Addr(), "It can't be asked")
}

func TestACheckThatDidNotTakePlaceSaysSo(t *testing.T) {
	servers := sound(t, 1)
	locker := dial(t, servers, redlock.Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := locker.Check(ended); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("on an ended context: %v, %v", got, err)
	}
	if _, err := locker.Check(nil); !errors.Is(err, redlock.ErrInvalid) { //nolint:staticcheck // that is what is tested
		t.Errorf("without a context: %v, want ErrInvalid", err)
	}
	if err := locker.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := locker.Check(t.Context()); !errors.Is(err, redlock.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}
