//go:build containers

// These tests need a Docker engine and take a minute or two; .ci/containers runs them.

package containers_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/containers"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/internal/process"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

func open(t *testing.T, backend masters.Factory, o masters.Options) *masters.Fleet {
	t.Helper()
	fleet, err := backend(within(t, time.Minute), o)
	if err != nil {
		if errors.Is(err, masters.ErrUnavailable) {
			redistest.NothingTested(t, err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, fleet.Close()) })
	return fleet
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// left lists what fleets have made and not removed.
func left(t *testing.T) []string {
	t.Helper()
	names, err := parts(context.WithoutCancel(t.Context()))
	must(t, err)
	return names
}

// parts is left for any goroutine.
func parts(ctx context.Context) (names []string, _ error) {
	names, err := allParts(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) }), err
}

func allParts(ctx context.Context) (names []string, _ error) {
	c, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	labelled := make(client.Filters).Add("label", containers.FleetLabel)
	found, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled})
	networks, err2 := c.NetworkList(ctx, client.NetworkListOptions{Filters: labelled})
	volumes, err3 := c.VolumeList(ctx, client.VolumeListOptions{Filters: labelled})
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	for _, x := range found.Items {
		names = append(names, "container "+strings.Join(x.Names, " "))
	}
	for _, x := range networks.Items {
		names = append(names, "network "+x.Name)
	}
	for _, x := range volumes.Items {
		names = append(names, "volume "+x.Name)
	}
	return names, nil
}

// others are the parts of other processes' fleets, which were there before, and networks that the engine can't remove.
// Without an engine there are none, and the tests say so.
var others = func() []string {
	names, _ := allParts(context.Background())
	return names
}()

func mustBeGone(t *testing.T) {
	t.Helper()
	var names []string
	if process.Poll(within(t, 30*time.Second), func() bool { names = left(t); return len(names) == 0 }) {
		return
	}
	for _, name := range names {
		if network, is := strings.CutPrefix(name, "network "); is && isStuck(t, network) {
			t.Logf("%s: the engine says that containers use it, and lists none", name)
			continue
		}
		t.Errorf("%s is still there", name)
	}
	others = append(others, names...) // the tests that follow have not left it
}

// isStuck reports that the engine refuses to remove a network because of containers that it does not list. Engines have
// miscounted like that (moby issue 42119); only their restart helps.
func isStuck(t *testing.T, name string) bool {
	t.Helper()
	c, err := testcontainers.NewDockerClientWithOpts(t.Context())
	must(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.NetworkRemove(t.Context(), name, client.NetworkRemoveOptions{})
	found, inspectErr := c.NetworkInspect(t.Context(), name, client.NetworkInspectOptions{})
	return err != nil && strings.Contains(err.Error(), "has active endpoints") &&
		inspectErr == nil && len(found.Network.Containers) == 0
}

// effect says, for each action, whether the master answers over the control network during the fault, and whether a key
// set before is there afterwards. Actions that are not in the map are not available.
var effect = map[masters.Action]struct{ answered, kept bool }{
	masters.Pause: {false, true}, masters.Kill: {false, true}, masters.KillEmpty: {false, false},
	masters.ClientKill: {true, true}, masters.FlushAll: {true, false}, masters.ScriptFlush: {true, true},
	masters.Evict: {true, false}, masters.Busy: {false, true}, masters.MaxClients: {false, true},
	masters.Disconnect: {true, true}, masters.ClockStep: {true, false},
	masters.Full: {true, true}, masters.ReadOnly: {true, true}, masters.Credentials: {false, true},
	masters.Rights: {false, true}, masters.PauseWrites: {true, true}, masters.CloseIdle: {true, true},
}

func TestEveryActionHasItsEffect(t *testing.T) {
	fleet := open(t, containers.Backend(containers.Options{}), masters.Options{N: 1, Clients: 1, AOF: true})
	m := fleet.Masters[0]
	if len(left(t)) < 5 { // two containers, two networks, a volume: the clean-up tests look for these
		t.Errorf("an open fleet consists of %v", left(t))
	}
	for _, action := range masters.Actions() {
		t.Run(string(action), func(t *testing.T) {
			want, has := effect[action]
			if err := m.Can(action); !has {
				if !errors.Is(err, masters.ErrUnavailable) {
					t.Errorf("can: %v", err)
				}
				return
			}
			set(t, m.Addr())
			injected, err := m.Inject(within(t, 20*time.Second), action,
				masters.Params{For: 5 * time.Second, Step: 2 * time.Minute, Rate: 2})
			must(t, err)
			_, err = m.Look(within(t, 300*time.Millisecond), []string{"k"})
			if (err == nil) != want.answered {
				t.Errorf("during the fault: %v (%s)", err, injected.Observed)
			}
			for range 2 { // a second heal does nothing
				if err := injected.Heal(within(t, 30*time.Second)); err != nil {
					t.Errorf("heal: %v", err)
				}
			}
			keys, err := m.Look(within(t, 5*time.Second), []string{"k"})
			if err != nil || (len(keys) == 1) != want.kept {
				t.Errorf("afterwards: %v, %v (%s)", keys, err, injected.Observed)
			}
		})
	}
}

// set sets a key with a minute to live over a new connection.
func set(t *testing.T, addr string) {
	t.Helper()
	if reply := ask(t, dial(t, addr), "SET k owner EX 60\r\n"); reply != "+OK\r\n" {
		t.Fatalf("set: %q", reply)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(within(t, 5*time.Second), "tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func ask(t *testing.T, conn net.Conn, command string) string {
	t.Helper()
	if _, err := io.WriteString(conn, command); err != nil {
		t.Fatal(err)
	}
	return hear(t, conn, 10*time.Second)
}

func hear(t *testing.T, conn net.Conn, d time.Duration) string {
	t.Helper()
	must(t, conn.SetReadDeadline(time.Now().Add(d)))
	reply := make([]byte, 100)
	n, err := conn.Read(reply)
	var timeout net.Error
	if err != nil && (!errors.As(err, &timeout) || !timeout.Timeout()) {
		t.Fatal(err)
	}
	return string(reply[:n])
}

// TestDataSentDuringAPartitionArrivesAfterIt: unplugging differs from a proxy that drops data,
// because the kernel sends again, for minutes.
func TestDataSentDuringAPartitionArrivesAfterIt(t *testing.T) {
	fleet := open(t, containers.Backend(containers.Options{}), masters.Options{N: 1, Clients: 1})
	place := fleet.Places[0]
	if _, err := toxiproxy.NewClient(fleet.Proxy).CreateProxy("path", place.Listen, fleet.Upstreams[0]); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, place.Addr)
	if reply := ask(t, conn, "PING\r\n"); reply != "+PONG\r\n" {
		t.Fatalf("before: %q", reply)
	}
	cut, err := fleet.Masters[0].Inject(within(t, 10*time.Second), masters.Disconnect, masters.Params{})
	must(t, err)
	if _, err := io.WriteString(conn, "SET k owner NX EX 60\r\n"); err != nil {
		t.Fatal(err)
	}
	if reply := hear(t, conn, 300*time.Millisecond); reply != "" {
		t.Errorf("in the partition: %q", reply)
	}
	if keys, err := fleet.Masters[0].Look(within(t, 5*time.Second), []string{"k"}); err != nil || len(keys) != 0 {
		t.Errorf("in the partition the master has %v, %v", keys, err)
	}
	must(t, cut.Heal(within(t, 10*time.Second)))
	if reply := hear(t, conn, 20*time.Second); reply != "+OK\r\n" {
		t.Errorf("after it, on the same connection: %q", reply)
	}
}

func TestFaultsOfOneMasterDoNotTripOverEachOther(t *testing.T) {
	fleet := open(t, containers.Backend(containers.Options{}), masters.Options{N: 1, Clients: 1, AOF: true})
	m := fleet.Masters[0]
	set(t, m.Addr())
	var heals []func(context.Context) error
	for _, action := range []masters.Action{masters.Disconnect, masters.Pause, masters.Kill} {
		injected, err := m.Inject(within(t, 20*time.Second), action, masters.Params{})
		if err != nil {
			t.Fatalf("%s: %v", action, err)
		}
		heals = append(heals, injected.Heal)
	}
	for _, i := range []int{2, 1, 0} { // the kill's heal starts it while it is unplugged
		must(t, heals[i](within(t, 30*time.Second)))
	}
	if keys, err := m.Look(within(t, 5*time.Second), []string{"k"}); err != nil || len(keys) != 1 {
		t.Errorf("keys %v, %v", keys, err)
	}
	emptied, err := m.Inject(within(t, 20*time.Second), masters.KillEmpty, masters.Params{})
	must(t, err)
	must(t, emptied.Heal(within(t, 30*time.Second)))
	if keys, err := m.Look(within(t, 5*time.Second), []string{"k"}); err != nil || len(keys) != 0 {
		t.Errorf("without its volume it has %v, %v", keys, err)
	}
}

func TestThisLibraryPassesOnContainers(t *testing.T) {
	faults, err := plan.ParseFile("testdata/five-faults.yaml")
	must(t, err)
	rep := run(t, chaos.Config{Plan: faults})
	if rep.Failed() {
		t.Fatalf("%s: %s", rep.Verdict, strings.Join(rep.Reasons, "\n"))
	}
	if rep.Acquisitions < 20 || len(rep.Unavailable) != 0 {
		t.Errorf("%d acquisitions; not available: %v", rep.Acquisitions, rep.Unavailable)
	}
	for _, name := range faults.FaultNames() {
		if rep.Faults[name] != 1 || rep.Observed[name] == "" {
			t.Errorf("%s fired %d times, observed %q", name, rep.Faults[name], rep.Observed[name])
		}
	}
}

// run makes a run on containers and checks that nothing is left of it.
func run(t *testing.T, cfg chaos.Config) *chaos.Report {
	t.Helper()
	rep := patient.Run(t, onContainers(t, cfg))
	mustBeGone(t)
	return rep
}

func onContainers(t *testing.T, cfg chaos.Config) chaos.Config {
	t.Helper()
	cfg.Backend, cfg.Backends, cfg.Dir = "containers", containers.Registry(), t.TempDir()
	return cfg
}

// TestABrokenLockIsCaughtOnContainers shows that a pass on containers means something, and that a failed run leaves
// nothing.
func TestABrokenLockIsCaughtOnContainers(t *testing.T) {
	broken := chaos.Controls()[0]
	cfg := onContainers(t,
		chaos.Config{Subject: broken.Subject, Scenario: broken.Scenario, Seed: 1, Duration: broken.Duration})
	patient.Caught(t, cfg, patient.By(broken.Oracle))
	mustBeGone(t)
}

func TestAFleetThatCannotBeOpenedLeavesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		options containers.Options
		caller  func(*testing.T) context.Context
	}{
		"its program is missing": {containers.Options{Server: "no-such-server"}, withTime},
		"its image is missing":   {containers.Options{ToxiproxyImage: "localhost:1/no-such-image"}, withTime},
		"the caller gave up":     {containers.Options{}, whileItOpens},
	} {
		t.Run(name, func(t *testing.T) {
			fleet, err := containers.Backend(tt.options)(tt.caller(t), masters.Options{N: 3, Clients: 5})
			if err == nil {
				t.Error(fleet.Close())
				t.Fatal("it was opened")
			}
			t.Log(err)
			mustBeGone(t)
		})
	}
}

func withTime(t *testing.T) context.Context {
	t.Helper()
	return within(t, time.Minute)
}

// whileItOpens ends when a part of a fleet is there: its networks and something more, of two networks and four
// containers.
func whileItOpens(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(withTime(t))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			if names, err := parts(ctx); err == nil && len(names) >= 3 {
				cancel()
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-watched
	})
	return ctx
}

// TestContainersOfADeadProcessAreRemoved checks the purpose of the watchdog: a dead process can't
// clean up after itself.
func TestContainersOfADeadProcessAreRemoved(t *testing.T) {
	for name, signal := range map[string]os.Signal{"panic": nil, "interrupt": os.Interrupt, "kill": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			must(t, err)
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
				return strings.HasPrefix(s, victimVariable)
			}), victimVariable+"="+name)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			must(t, err)
			said, err := bufio.NewReader(out).ReadString('\n')
			if said != "open\n" {
				_ = cmd.Wait()
				if strings.Contains(said, masters.ErrUnavailable.Error()) {
					redistest.NothingTested(t, said)
				}
				t.Fatalf("it said %q, %v", said, err)
			}
			if signal != nil {
				if names := left(t); len(names) < 5 {
					t.Errorf("before it died there was only %v", names)
				}
				must(t, cmd.Process.Signal(signal))
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it ended by itself")
			}
			mustBeGone(t)
		})
	}
}
