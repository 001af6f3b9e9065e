package masters_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	redistest.AtOnce(4) // they wait for servers
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, backend string, o masters.Options) *masters.Fleet {
	t.Helper()
	if o.TempDir == "" {
		o.TempDir = shortTempDir(t)
	}
	fleet, err := masters.Standard().Open(t.Context(), backend, o)
	if errors.Is(err, masters.ErrUnavailable) {
		redistest.NothingTested(t, err)
	}
	must(t, err)
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(o.TempDir); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return fleet
}

// shortTempDir is t.TempDir with a path short enough for a unix socket.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos-") //nolint:usetesting // that one is too long
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func client(t *testing.T, m masters.Master) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: m.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1, DialTimeout: time.Second,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// inject begins a fault, and heal ends it.
func inject(t *testing.T, m masters.Master, action masters.Action, p masters.Params) (heal func()) {
	t.Helper()
	on, err := m.Inject(within(t), action, p)
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	return func() {
		t.Helper()
		if err := on.Heal(within(t)); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
}

// write sets a key.
func write(t *testing.T, m masters.Master, key string) {
	t.Helper()
	must(t, client(t, m).Set(within(t), key, "v", time.Minute).Err())
}

// params are large enough that the effect can't be mistaken for noise.
var params = masters.Params{For: 5 * time.Second, Step: 30 * time.Second, Rate: 1.5}

// effect says, for each action, how the fault looks to a client: whether the master answers, and
// whether a key set before is still there afterwards.
var effect = map[masters.Action]struct{ answered, kept bool }{
	masters.Pause: {false, true}, masters.Kill: {false, true}, masters.KillEmpty: {false, false},
	masters.ClientKill: {true, true}, masters.FlushAll: {true, false}, masters.ScriptFlush: {true, true},
	masters.Evict: {true, false}, masters.Busy: {false, true}, masters.MaxClients: {false, true},
	masters.ClockStep: {true, false}, masters.ClockRate: {true, true},
	masters.Loading: {false, true}, masters.Full: {true, true}, masters.ReadOnly: {true, true},
	masters.Misconf: {false, true}, masters.Credentials: {false, true}, masters.Rights: {false, true},
	masters.PauseWrites: {true, true}, masters.CloseIdle: {true, true}, masters.LoseFsync: {false, true},
	masters.Failover: {false, true},
}

// TestEveryActionHasItsEffect does each action that the backend has and looks at a client's side of it.
func TestEveryActionHasItsEffect(t *testing.T) {
	t.Parallel()
	for backend, want := range map[string]int{"process": 21, "embedded": 6} {
		t.Run(backend, func(t *testing.T) {
			m := open(t, backend, masters.Options{N: 1, AOF: true}).Masters[0]
			available := 0
			var missing error // what a machine without a C compiler lacks
			for _, action := range masters.Actions() {
				if err := m.Can(action); err != nil {
					if !errors.Is(err, masters.ErrUnavailable) {
						t.Errorf("%s: %v", action, err)
					}
					if action == masters.ClockRate && backend == "process" {
						missing = err
					}
					continue
				}
				available++
				t.Run(string(action), func(t *testing.T) { observe(t, m, action) })
			}
			if missing != nil && available == want-1 {
				redistest.NothingTested(t, missing)
			}
			if available != want {
				t.Errorf("%d actions are available, want %d", available, want)
			}
		})
	}
}

func observe(t *testing.T, m masters.Master, action masters.Action) {
	t.Helper()
	c := client(t, m)
	must(t, c.Set(within(t), "k", "owner", 20*time.Second).Err())
	numbers := params
	if action == masters.LoseFsync || action == masters.Failover {
		numbers.Step = 50 * time.Millisecond
	}
	injected, err := m.Inject(within(t), action, numbers)
	must(t, err)
	want := effect[action]
	patience := within(t)
	if !want.answered {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		patience = short
	}
	fresh := client(t, m) // an old connection may have been closed, which is another error than being refused
	if err := fresh.Ping(patience).Err(); (err == nil) != want.answered {
		t.Errorf("%s: a ping was answered %v (%s)", action, err, injected.Observed)
	}
	if want.answered {
		if keys, err := m.Look(within(t), []string{"k"}); err != nil || (len(keys) == 1) != want.kept {
			t.Errorf("%s: keys during the fault %+v, %v (%s)", action, keys, err, injected.Observed)
		}
	}
	if err := injected.Heal(within(t)); err != nil {
		t.Errorf("heal: %v", err)
	}
	if err := injected.Heal(within(t)); err != nil {
		t.Errorf("a second heal: %v", err)
	}
	keys, err := m.Look(within(t), []string{"k", "nothing"})
	must(t, err)
	if kept := len(keys) == 1; kept != want.kept {
		t.Errorf("%s: keys afterwards %+v (%s)", action, keys, injected.Observed)
	}
	if len(keys) == 1 && (!slices.Equal(keys[0].Owners, []string{"owner"}) || keys[0].TTL <= 0) {
		t.Errorf("looked and saw %+v", keys[0])
	}
	if injected.Observed == "" {
		t.Error("nothing was observed")
	}
	if err := fresh.Ping(within(t)).Err(); err != nil {
		if err = fresh.Ping(within(t)).Err(); err != nil { // the first may find a connection that was closed
			t.Errorf("not healed: %v", err)
		}
	}
}

// Two faults of a plan can meet on one master.
func TestActionsOnABusyMasterTakeEffectAfterItsScript(t *testing.T) {
	t.Parallel()
	m := open(t, "process", masters.Options{N: 1}).Masters[0]
	for _, action := range []masters.Action{masters.ScriptFlush, masters.ClientKill, masters.FlushAll, masters.Busy} {
		heal := inject(t, m, masters.Busy, masters.Params{For: 100 * time.Millisecond})
		inject(t, m, action, masters.Params{For: 100 * time.Millisecond})()
		heal()
	}
	heal := inject(t, m, masters.Busy, masters.Params{For: time.Minute})
	ended, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.Inject(ended, masters.ScriptFlush, masters.Params{}); err == nil {
		t.Error("a master that stays busy executed the action")
	}
	heal()
}

// TestAnActionInjectedTwiceLastsUntilTheSecondHeal: lanes of a plan do not know of each other.
func TestAnActionInjectedTwiceLastsUntilTheSecondHeal(t *testing.T) {
	t.Parallel()
	m := open(t, "process", masters.Options{N: 1, AOF: true}).Masters[0]
	for _, action := range []masters.Action{
		masters.Pause, masters.Full, masters.ReadOnly, masters.Credentials, masters.Rights, masters.Loading,
	} {
		written := func() error {
			c := redis.NewClient(&redis.Options{
				Addr: m.Addr(), Username: masters.User, Password: masters.Password, MaxRetries: -1,
				ContextTimeoutEnabled: true,
			})
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return c.Set(ctx, "k", "v", time.Minute).Err()
		}
		if err := written(); err != nil {
			t.Fatalf("before %s: %v", action, err)
		}
		first, second := inject(t, m, action, params), inject(t, m, action, params)
		first()
		first()
		if err := written(); err == nil {
			t.Errorf("%s is over with the first of two", action)
		}
		second()
		if err := written(); err != nil {
			t.Errorf("%s is not over: %v", action, err)
		}
	}
}

// TestPasswordAndRightsComeBackInAnyOrder: two faults of one user's.
func TestPasswordAndRightsComeBackInAnyOrder(t *testing.T) {
	m := open(t, "process", masters.Options{N: 1}).Masters[0]
	for _, actions := range [][]masters.Action{
		{masters.Credentials, masters.Rights}, {masters.Rights, masters.Credentials},
	} {
		first, second := inject(t, m, actions[0], masters.Params{}), inject(t, m, actions[1], masters.Params{})
		first()
		second()
		write(t, m, "k")
	}
}

func TestARestartWithoutPersistenceLosesTheData(t *testing.T) {
	m := open(t, "process", masters.Options{N: 1}).Masters[0]
	write(t, m, "k")
	inject(t, m, masters.Kill, masters.Params{})()
	if keys, err := m.Look(within(t), []string{"k"}); err != nil || len(keys) != 0 {
		t.Fatalf("keys %v, error %v", keys, err)
	}
}

func TestCloseEndsPausedMasters(t *testing.T) {
	fleet := open(t, "process", masters.Options{N: 2})
	inject(t, fleet.Masters[1], masters.Pause, masters.Params{})
	must(t, fleet.Close())
}

func TestExternalServersAreNotHurtUnlessAllowed(t *testing.T) {
	own := open(t, "embedded", masters.Options{N: 2})
	for _, destructive := range []bool{false, true} {
		fleet := open(t, "external",
			masters.Options{Addrs: own.Addrs(), Destructive: destructive, TempDir: shortTempDir(t)})
		m := fleet.Masters[0]
		write(t, m, "k")
		_, err := m.Inject(within(t), masters.FlushAll, masters.Params{})
		keys, lookErr := m.Look(within(t), []string{"k"})
		if lookErr != nil {
			t.Fatal(lookErr)
		}
		if destructive != (err == nil) || destructive != (len(keys) == 0) {
			t.Errorf("destructive %v: error %v, keys %v", destructive, err, keys)
		}
		if err := fleet.Can(masters.Pause); !errors.Is(err, masters.ErrUnavailable) {
			t.Errorf("pausing an external server: %v", err)
		}
	}
}

// TestALookWithAMissingAnswerIsAnError: permissions are revoked, or the connection is closed, between two answers. The
// owner of such a key could not be read, so Look must not report the key as removed.
func TestALookWithAMissingAnswerIsAnError(t *testing.T) {
	for _, denied := range []string{"get", "pttl", "type"} {
		s := redistest.Start(t, redistest.WithArgs("--user", "jobs", "on", ">hush", "~*", "&*", "+@all", "-"+denied))
		m := open(t, "external", masters.Options{Addrs: []string{"redis://jobs:hush@" + s.Addr()}}).Masters[0]
		if keys, err := m.Look(within(t), []string{"k"}); denied == "get" && (err != nil || len(keys) != 0) {
			t.Errorf("no key, without %s: keys %v, error %v", denied, keys, err)
		}
		write(t, m, "k")
		if keys, err := m.Look(within(t), []string{"k"}); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("without %s: keys %v, error %v", denied, keys, err)
		}
	}
}

// TestALookThatIsRefusedIsAnError: the password is another one and every connection was closed, so that the look has to
// dial and is refused.
func TestALookThatIsRefusedIsAnError(t *testing.T) {
	s := redistest.Start(t, redistest.WithPassword("hush"))
	m := open(t, "external", masters.Options{Addrs: []string{"redis://:hush@" + s.Addr()}, Destructive: true}).
		Masters[0]
	heal := inject(t, m, masters.Credentials, masters.Params{})
	if keys, err := m.Look(within(t), []string{"k", "l"}); !redis.HasErrorPrefix(err, "WRONGPASS") {
		t.Errorf("keys %v, error %v", keys, err)
	}
	heal()
	if keys, err := m.Look(within(t), []string{"k", "l"}); err != nil || len(keys) != 0 {
		t.Errorf("afterwards: keys %v, error %v", keys, err)
	}
}

// Look sends several commands for a key, and meanwhile the key may be deleted and set again. Such a key must not be
// taken for one that never expires.
func TestALookAtAKeyThatComesAndGoes(t *testing.T) {
	m := open(t, "embedded", masters.Options{N: 1}).Masters[0]
	c, ctx := client(t, m), t.Context()
	redistest.Meanwhile(t, func() { _, _ = c.Set(ctx, "k", "owner", time.Minute).Err(), c.Del(ctx, "k").Err() })
	seen := 0
	for range soak.Or(10_000, 100_000) {
		keys, err := m.Look(within(t), []string{"k"})
		must(t, err)
		for _, key := range keys {
			if seen++; key.TTL <= 0 || !slices.Equal(key.Owners, []string{"owner"}) {
				t.Fatalf("after %d looks that saw the key: %+v", seen, key)
			}
		}
	}
	if seen == 0 {
		t.Error("no look saw the key")
	}
}

func TestOpenNamesTheKnownBackends(t *testing.T) {
	_, err := masters.Standard().Open(t.Context(), "containers", masters.Options{})
	if err == nil || !strings.Contains(err.Error(), "embedded external process") {
		t.Errorf("error %v", err)
	}
	_, err = masters.Standard().Open(t.Context(), "external", masters.Options{})
	if err == nil {
		t.Error("external without addresses was opened")
	}
	_, err = masters.Standard().Open(t.Context(), "process", masters.Options{N: -1})
	if err == nil {
		t.Error("a negative number of masters was opened")
	}
	_, err = masters.Standard().Open(t.Context(), "process",
		masters.Options{Binary: "no-such-server", TempDir: shortTempDir(t)})
	if !errors.Is(err, masters.ErrUnavailable) {
		t.Errorf("a missing server: %v", err)
	}
}

// TestTheLastWritesAreLost: after a loss of power, or a failover to a replica that was behind,
// earlier writes are back and the writes of the last moments are lost.
func TestTheLastWritesAreLost(t *testing.T) {
	t.Parallel()
	for _, action := range []masters.Action{masters.LoseFsync, masters.Failover} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			m := open(t, "process", masters.Options{N: 1, AOF: true}).Masters[0]
			for range 2 { // what took over can be lost as well
				loseLast(t, m, action)
			}
			for _, other := range []masters.Action{masters.Kill, masters.Pause} {
				inject(t, m, other, params)()
			}
			if got, err := client(t, m).Get(within(t), "before").Result(); err != nil || got != "owner" {
				t.Errorf("after a restart there is %q, %v", got, err)
			}
		})
	}
}

func loseLast(t *testing.T, m masters.Master, action masters.Action) {
	t.Helper()
	c := client(t, m)
	must(t, c.Set(within(t), "before", "owner", time.Hour).Err())
	var last atomic.Int64
	stopped := make(chan struct{})
	go func() { // writes until the server is gone
		defer close(stopped)
		for n := int64(1); ; n++ {
			if c.Set(t.Context(), "during", n, time.Hour).Err() != nil {
				return
			}
			last.Store(n)
		}
	}()
	heal := inject(t, m, action, masters.Params{Step: 300 * time.Millisecond})
	<-stopped
	heal()
	fresh := client(t, m)
	if got, err := fresh.Get(within(t), "before").Result(); err != nil || got != "owner" {
		t.Errorf("the disk had %q, %v", got, err)
	}
	got, err := fresh.Get(within(t), "during").Int64()
	if err != nil && !errors.Is(err, redis.Nil) || last.Load() == 0 || got >= last.Load() {
		t.Errorf("the last write that was answered was %d, and after the loss there is %d, %v", last.Load(), got, err)
	}
}

// TestTheKeyspaceLeavesOutKeysOfFaults: a fault that could not clean up is no key of the lock's.
func TestTheKeyspaceLeavesOutKeysOfFaults(t *testing.T) {
	m := open(t, "embedded", masters.Options{N: 1}).Masters[0]
	for _, name := range []string{
		"redlock-chaos:probe:1", "redlock-chaos:probe", "redlock-chaos:hot-key:0", "redlock-chaos:probes:0",
	} {
		write(t, m, name)
	}
	keys, err := masters.Keyspace(t.Context(), m)
	_, kept := keys["redlock-chaos:hot-key:0"]
	_, similar := keys["redlock-chaos:probes:0"]
	if err != nil || !kept || !similar || len(keys) != 2 {
		t.Errorf("found %v, %v", keys, err)
	}
}

// TestFaultsLeaveNoDump: a server that keeps nothing would find it at its next start.
func TestFaultsLeaveNoDump(t *testing.T) {
	for _, fault := range []masters.Action{masters.Loading, masters.Misconf} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			m := open(t, "process", masters.Options{N: 1}).Masters[0]
			inject(t, m, fault, masters.Params{})()
			dir, err := client(t, m).ConfigGet(t.Context(), "dir").Result()
			if err != nil || dir["dir"] == "" {
				t.Fatal(dir, err)
			}
			if found, err := filepath.Glob(filepath.Join(dir["dir"], "*.rdb")); err != nil || len(found) > 0 {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
}

// TestLoadingFailsAtOnceIfTheServerIsGone: commands are repeated for a slow server, but not for one that is gone.
func TestLoadingFailsAtOnceIfTheServerIsGone(t *testing.T) {
	m := open(t, "process", masters.Options{N: 1}).Masters[0]
	heal := inject(t, m, masters.Kill, masters.Params{})
	asked := time.Now()
	if _, err := m.Inject(t.Context(), masters.Loading, masters.Params{}); !errors.Is(err, syscall.ECONNREFUSED) ||
		time.Since(asked) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(asked), err)
	}
	heal()
}

// TestAMasterThatIsBackIsSeenAtOnce: looks that fail while a master is down do not delay later looks.
func TestAMasterThatIsBackIsSeenAtOnce(t *testing.T) {
	for _, backend := range []string{"embedded", "process"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			m := open(t, backend, masters.Options{N: 1}).Masters[0]
			heal := inject(t, m, masters.Kill, masters.Params{})
			for range 40 {
				if _, err := m.Look(t.Context(), []string{"k"}); err == nil {
					t.Fatal("a killed master was looked at")
				}
			}
			heal()
			if _, err := m.Look(t.Context(), []string{"k"}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPidsAreThoseOfTheServers(t *testing.T) {
	t.Parallel()
	fleet := open(t, "process", masters.Options{N: 2})
	for i, m := range fleet.Masters {
		info, err := client(t, m).InfoMap(within(t), "server").Result()
		if pid := strconv.Itoa(fleet.Pids()[i]); err != nil || info["Server"]["process_id"] != pid {
			t.Errorf("master %d has the process %s, and says %v, %v", i, pid, info["Server"]["process_id"], err)
		}
	}
}
