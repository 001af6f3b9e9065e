package audit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// look audits a set of masters.
func look(t *testing.T, masters []redlock.Master, opts redlock.Options) *audit.Report {
	t.Helper()
	got, err := locktest.LockerOver(t, masters, opts).Check(t.Context())
	must(t, err)
	return got
}

// sound starts n servers without faults.
func sound(t *testing.T, n int) []*redistest.Server {
	t.Helper()
	return redistest.StartN(t, n, redistest.WithAOF())
}

// masterOf returns a master that is closed with the test.
func masterOf(t *testing.T, opt *redis.Options) redlock.Master {
	t.Helper()
	m, err := single.Open(opt, single.Options{})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// lying returns a master with l in front, which changes its replies. Its client is the caller's, because connections of
// Open have no hooks.
func lying(t *testing.T, addr string, l liar) redlock.Master {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	m, err := single.New(client, single.Options{})
	must(t, err)
	m.Client().AddHook(l)
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

// wants fails the test unless exactly one finding has the given severity and master and contains what in its text.
// Every other finding must be a Note.
func wants(t *testing.T, got *audit.Report, severity audit.Severity, master, what string) {
	t.Helper()
	found := 0
	for _, f := range got.Findings {
		switch {
		case f.Master != master && ofABusyMachine(f):
		case strings.Contains(f.What, what):
			found++
			if f.Severity != severity || f.Master != master {
				t.Errorf("found as %v about %q, want %v about %q: %v", f.Severity, f.Master, severity, master, f)
			}
			if f.Why == "" || f.Fix == "" {
				t.Errorf("the finding does not say why it matters and how to mend it: %v", f)
			}
		case f.Severity > audit.Note:
			t.Errorf("found besides: %v", f)
		}
	}
	if found != 1 {
		t.Errorf("found %q %d times, want once, in:\n%v", what, found, got)
	}
	if got.Worst() != severity && severity > audit.Note {
		t.Errorf("the worst is %v, want %v", got.Worst(), severity)
	}
}

// ofABusyMachine tells whether f only notes that a master takes long to answer, as each does on a busy machine.
func ofABusyMachine(f audit.Finding) bool {
	return f.Severity == audit.Note && (strings.HasPrefix(f.What, "It answers in ") ||
		strings.HasPrefix(f.What, "The rate of its clock is known only"))
}

func TestASoundSetHasNothingToMend(t *testing.T) {
	servers := sound(t, 3)
	locker := dial(t, servers, redlock.Options{})
	got, err := locker.Check(t.Context())
	must(t, err)
	if got.Worst() > audit.Note {
		t.Errorf("found:\n%v", got)
	}
	wants(t, got, audit.Note, "", "All masters are on 127.0.0.1.")
	for i, m := range got.Masters {
		if m.Err != nil || m.Name != servers[i].Addr() || len(m.RunID) != 40 || m.Role != "master" || m.Version == "" ||
			m.Persistence != "aof, fsync always" || m.Latency <= 0 || m.ClockOffset.Abs() > time.Second ||
			m.ClockRateError <= 0 {
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
	must(t, err)
	masters := []redlock.Master{
		masterOf(t, &redis.Options{Addr: servers[0].Addr()}), masterOf(t, &redis.Options{Addr: servers[1].Addr()}),
		again,
	}
	wants(t, look(t, masters, redlock.Options{}), audit.Unsafe, servers[0].Addr()+", "+again.Name(),
		"They are one server")
}

func TestHazard33AReplicaListedAsAMasterIsFound(t *testing.T) {
	t.Parallel()
	servers := sound(t, 2)
	port := strconv.Itoa(servers[0].Port())
	run(t, servers[1], "REPLICAOF", "127.0.0.1", port)
	redistest.Eventually(t, 10*time.Second, func() bool {
		return strings.Contains(servers[0].Client().Info(t.Context(), "replication").Val(), "connected_slaves:1")
	}, "the replica to connect")

	replica := look(t, among(t, masterOf(t, &redis.Options{Addr: servers[1].Addr()})), redlock.Options{})
	wants(t, replica, audit.Unsafe, servers[1].Addr(), "It is a replica of 127.0.0.1:"+port)
	master := look(t, among(t, masterOf(t, &redis.Options{Addr: servers[0].Addr()})), redlock.Options{})
	wants(t, master, audit.Risk, servers[0].Addr(), "It has 1 replicas.")
}

func TestAGuardMakesUpForPersistence(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const guard = 1500 * time.Millisecond
	m, err := single.Open(&redis.Options{Addr: server.Addr()}, single.Options{RestartGuard: guard})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	masters := []redlock.Master{m} // other masters would also need a guard
	wants(t, look(t, masters, redlock.Options{}), audit.Risk, server.Addr(), "does not vote for another")
	redistest.Eventually(t, 10*time.Second, func() bool { return m.Client().Ping(t.Context()).Err() == nil },
		"the guard to pass")
	wants(t, look(t, masters, redlock.Options{}), audit.Note, server.Addr(), "does not vote for 1.5s after one")
}

func TestATimeoutBelowTheRoundTripIsFound(t *testing.T) {
	t.Parallel()
	server := sound(t, 1)[0]
	m := masterOf(t,
		&redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return farConn{conn}, err
		}})
	// The timeout is far longer than a request takes on a busy machine.
	got := look(t, among(t, m), redlock.Options{RequestTimeout: 100 * time.Millisecond})
	wants(t, got, audit.Risk, server.Addr(), "It answers in ")
}

// liar changes the answers of a real server.
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
		reply, _ := cmd.(*redis.Cmd)
		switch {
		case err != nil || reply == nil:
		case cmd.Name() == "time" && l.skew != nil:
			parts := reply.Val().([]any)
			seconds, _ := strconv.ParseInt(parts[0].(string), 10, 64)
			micros, _ := strconv.ParseInt(parts[1].(string), 10, 64)
			wall := l.skew(time.Unix(seconds, micros*1000))
			reply.SetVal([]any{strconv.FormatInt(wall.Unix(), 10), strconv.Itoa(wall.Nanosecond() / 1000)})
		case cmd.Name() == "info" && l.info != nil:
			reply.SetVal(l.info(reply.Val().(string)))
		}
		return err
	}
}

func TestAServersClockAndDiskStateAreJudged(t *testing.T) {
	t.Parallel()
	// The rate is wrong from the first question on. Otherwise an offset that grows while the machine is busy would be
	// found too.
	since := func() func(time.Time) time.Duration {
		var first time.Time
		var once sync.Once
		return func(t time.Time) time.Duration {
			once.Do(func() { first = t })
			return t.Sub(first)
		}
	}
	fast, slow := since(), since()
	for _, test := range []struct {
		name     string
		liar     liar
		severity audit.Severity
		what     string
		rate     float64
	}{
		{
			"an hour ahead",
			// A busy machine measures it a little wrong.
			liar{skew: func(t time.Time) time.Time { return t.Add(time.Hour + time.Second/2) }},
			audit.Risk,
			"Its clock is off by 1h0m0",
			0,
		},
		{
			"five percent fast",
			liar{skew: func(t time.Time) time.Time { return t.Add(fast(t) / 20) }},
			audit.Unsafe,
			"% faster than this machine's",
			0.05,
		},
		{
			"five percent slow",
			liar{skew: func(t time.Time) time.Time { return t.Add(-slow(t) / 20) }},
			audit.Unsafe,
			"% slower than this machine's",
			-0.05,
		},
		{"disk full", liar{info: func(s string) string {
			return strings.Replace(s, "aof_last_write_status:ok", "aof_last_write_status:err", 1)
		}}, audit.Risk, "It could not write its append-only file.", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := sound(t, 1)[0]
			masters := among(t, lying(t, server.Addr(), test.liar))
			got := look(t, masters, redlock.Options{})
			for test.rate != 0 && got.Masters[0].ClockRateError > 0.02 { // measured on a busy machine
				got = look(t, masters, redlock.Options{})
			}
			wants(t, got, test.severity, server.Addr(), test.what)
			if test.rate == 0 {
				return
			}
			m := got.Masters[0]
			if math.Abs(m.ClockRate-test.rate) > m.ClockRateError+0.001 {
				t.Errorf("the rate is %v, measured as %v, within %v", test.rate, m.ClockRate, m.ClockRateError)
			}
			if told := fmt.Sprintf("ran %.1f%% ", 100*math.Abs(m.ClockRate)); !strings.Contains(got.String(), told) {
				t.Errorf("no %q in %v", told, got)
			}
		})
	}
}

// itIs makes a server say that it is another version.
func itIs(version string) liar {
	return liar{info: func(s string) string {
		return regexp.MustCompile(`redis_version:[^\r\n]*`).ReplaceAllString(s, "redis_version:"+version)
	}}
}

// Fenced locks need ZADD GT, which came with 6.2.
func TestHazard41AServerThatIsTooOldIsFound(t *testing.T) {
	t.Parallel()
	server := sound(t, 1)[0]
	says := func(version string) *audit.Report {
		return look(t, among(t, lying(t, server.Addr(), itIs(version))), redlock.Options{})
	}
	for _, version := range []string{"4.0.14", "5.0.14", "6.0.16", "6.1.240"} {
		wants(t, says(version), audit.Risk, server.Addr(), "It is Redis "+version+".")
	}
	for _, version := range []string{"6.2.0", "7.0.15", "7.2.4", "8.0.2", "10.0.0"} {
		if got := says(version); got.Worst() > audit.Note {
			t.Errorf("version %s: found:\n%v", version, got)
		}
	}
}

// Each server has its own words for the refusal of a command in a script, or of a key. These texts are from
// redis-server 7.0.15 and 8.0.2 and from valkey-server 8.1.1 and 9.1.2.
func TestHazard40EveryServersWordsForAMissingRightAreKnown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reply, what string }{
		{
			"ERR The user executing the script can't run this command or subcommand script: 71923a, on @user_script:1.",
			"may not do what a lock needs",
		},
		{"ERR ACL failure in script: User app has no permissions to run the 'del' command script: 71923a, on " +
			"@user_script:1.", "may not do what a lock needs"},
		{
			"ERR ACL failure in script: User app has no permissions to run the 'del' command script: on " +
				"@user_script:1.",
			"may not do what a lock needs",
		},
		{"NOPERM this user has no permissions to run the 'evalsha' command", "may not do what a lock needs"},
		{"NOPERM User app has no permissions to run the 'evalsha' command", "may not do what a lock needs"},
		{"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments " +
			"script: 05768a, on @user_script:1.", "may only use certain keys"},
		{
			"ERR ACL failure in script: No permissions to access a key script: 05768a, on @user_script:1.",
			"may only use certain keys",
		},
		{"NOPERM this user has no permissions to access one of the keys used as arguments", "may only use " +
			"certain keys"},
		{"NOPERM No permissions to access a key", "may only use certain keys"},
		{"NOREPLICAS Not enough good replicas to write.", "A lock could not be taken"}, // the control: another error
	} {
		t.Run(test.reply, func(t *testing.T) {
			t.Parallel()
			server := sound(t, 1)[0]
			m := foreignErrors{
				masterOf(t, &redis.Options{Addr: server.Addr()}).(*single.Master), locktest.ReplyError(test.reply),
			}
			found := look(t, among(t, m), redlock.Options{}).Findings
			if !slices.ContainsFunc(found, func(f audit.Finding) bool {
				return f.Master == server.Addr() && strings.Contains(f.What, test.what) &&
					strings.Contains(f.What, test.reply[:20])
			}) {
				t.Errorf("want %q with the server's text in\n%v", test.what, found)
			}
		})
	}
}

// foreignErrors is a server that answers every request for a lock with an error.
type foreignErrors struct {
	*single.Master
	err error
}

func (m foreignErrors) Do(_ context.Context, batch []*single.Call) {
	for _, c := range batch {
		c.Err = m.err
	}
}

// foreign is a Master of another implementation: it has no client to query, and may forget who holds a key.
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
	t.Parallel()
	server := sound(t, 1)[0]
	m := masterOf(t, &redis.Options{Addr: server.Addr()})
	wants(t, look(t, among(t, foreign{Master: m}), redlock.Options{}), audit.Note, server.Addr(),
		"no access to the server")
	wants(t, look(t, among(t, foreign{m, true}), redlock.Options{}), audit.Unsafe, server.Addr(),
		"refuses a held key, it did not")
}

func TestMastersBehindOtherKindsOfClientsCanBeChecked(t *testing.T) {
	t.Parallel()
	server := sound(t, 1)[0]
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": server.Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	m, err := redlock.NewMaster(ring)
	must(t, err)
	got := look(t, among(t, m), redlock.Options{})
	if got.Worst() > audit.Note || len(got.Masters[0].RunID) != 40 {
		t.Errorf("a Ring: %+v\n%v", got.Masters[0], got)
	}

	node := redistest.Start(t, redistest.WithAOF(), redistest.WithArgs("--cluster-enabled", "yes"))
	joinCluster(t, node)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Addr()}})
	t.Cleanup(func() { _ = cluster.Close() })
	if m, err = redlock.NewMaster(cluster); err != nil {
		t.Fatal(err)
	}
	wants(t, look(t, among(t, m), redlock.Options{}), audit.Risk, node.Addr(), "It is part of a Redis Cluster.")
}

func TestTheNumberOfMastersIsNoted(t *testing.T) {
	t.Parallel()
	servers := sound(t, 2)
	one := []redlock.Master{masterOf(t, &redis.Options{Addr: servers[0].Addr()})}
	wants(t, look(t, one, redlock.Options{}), audit.Note, "", "There is one master.")
	two := slices.Concat(one, []redlock.Master{masterOf(t, &redis.Options{Addr: servers[1].Addr()})})
	wants(t, look(t, two, redlock.Options{}), audit.Note, "", "There are 2 masters.")
}

func TestAMasterThatHangsDoesNotHoldUpTheCheck(t *testing.T) {
	t.Parallel()
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
	wants(t, got, audit.Risk, servers[1].Addr(), "It can't be asked")
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
	must(t, locker.Close(t.Context()))
	if _, err := locker.Check(t.Context()); !errors.Is(err, redlock.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}
