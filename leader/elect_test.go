package leader_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// elect makes a candidate with a separate Locker.
func elect(t *testing.T, servers []*redistest.Server, key string, ttl time.Duration,
	opts ...redlock.Option,
) *leader.Election {
	t.Helper()
	election, err := leader.NewElection(dial(t, servers), key, ttl, opts...)
	must(t, err)
	return election
}

// campaign waits for a leadership that must come.
func campaign(t *testing.T, election *leader.Election) *leader.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel() // a term outlives the context of its campaign
	term, err := election.Campaign(ctx)
	must(t, err)
	t.Cleanup(func() { _ = term.Resign(context.Background()) })
	return term
}

// resigns is a leader that resigns at once.
func resigns(context.Context, *leader.Term) error { return nil }

// terms judges a history of leaderships: whenever one begins, all earlier ones must know that they are over.
type terms struct {
	mu       sync.Mutex
	all      []*leader.Term
	overlaps []string
	disorder []string
}

// began is called by a leader as soon as it has been elected.
func (h *terms) began(term *leader.Term) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, earlier := range h.all {
		if earlier.Err() == nil && term.Err() == nil {
			h.overlaps = append(h.overlaps, fmt.Sprintf("%d and %d", earlier.Token(), term.Token()))
		}
		if earlier.Token() >= term.Token() {
			h.disorder = append(h.disorder, fmt.Sprintf("%d before %d", earlier.Token(), term.Token()))
		}
	}
	h.all = append(h.all, term)
}

func TestTwoCandidatesNeverLeadAtOnce(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var history terms
	var wg sync.WaitGroup
	const enough = 60
	for candidate := range 4 {
		// Two leaders resign. The terms of two others end by MaxHold.
		election := elect(t, servers, "leader", time.Second, redlock.MaxHold(100*time.Millisecond))
		wg.Go(func() {
			err := election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
				history.began(term)
				history.mu.Lock()
				if len(history.all) >= enough {
					stop()
				}
				history.mu.Unlock()
				if candidate%2 == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("candidate %d ended with %v, want its context's error", candidate, err)
			}
		})
	}
	time.AfterFunc(30*time.Second, stop)
	wg.Wait()
	if len(history.all) < enough {
		t.Errorf("%d terms in 30s, want %d", len(history.all), enough)
	}
	if len(history.overlaps)+len(history.disorder) > 0 {
		t.Errorf("overlapping terms: %v; tokens out of order: %v", history.overlaps, history.disorder)
	}
}

// The control: leaders of two elections do overlap, and the judge sees it.
func TestTheJudgeOfElectionsSeesOverlaps(t *testing.T) {
	servers := redistest.StartN(t, 3)
	var history terms
	history.began(campaign(t, elect(t, servers, "one", time.Minute)))
	history.began(campaign(t, elect(t, servers, "other", time.Minute)))
	if len(history.overlaps) != 1 {
		t.Errorf("found overlaps %v, want one", history.overlaps)
	}
}

func TestResigningHandsOverAtOnce(t *testing.T) {
	servers := redistest.StartN(t, 3)
	first, second := elect(t, servers, "leader", time.Minute), elect(t, servers, "leader", time.Minute)
	term := campaign(t, first)
	elected := make(chan *leader.Term, 1)
	go func() {
		next, err := second.Campaign(t.Context())
		if err != nil {
			t.Errorf("Campaign: %v", err)
		}
		elected <- next
	}()
	redistest.Eventually(t, 5*time.Second, func() bool { return waits(t, servers[0]) }, "the second candidate to wait")
	began := time.Now()
	must(t, term.Resign(t.Context()))
	select {
	case <-term.Done():
	default:
		t.Error("Done is open after Resign")
	}
	next := <-elected
	if took := time.Since(began); took > 2*time.Second { // the ttl is a minute
		t.Errorf("the next leader came %v after the resignation", took)
	}
	if next.Token() <= term.Token() {
		t.Errorf("tokens %d and then %d", term.Token(), next.Token())
	}
	must(t, next.Resign(t.Context()))
}

// waits reports whether a waiter listens for a release on this server. A waiter listens after the masters have
// refused it.
func waits(t *testing.T, server *redistest.Server) bool {
	t.Helper()
	channels, err := server.Client().PubSubChannels(t.Context(), "*").Result()
	must(t, err)
	return len(channels) > 0
}

func TestADeadLeaderIsFollowedWithinTTL(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	servers := redistest.StartN(t, 3)
	locker := dial(t, servers)
	election, err := leader.NewElection(locker, "leader", ttl)
	must(t, err)
	term := campaign(t, election)
	other := elect(t, servers, "leader", ttl)

	dead, cancel := context.WithCancel(context.Background())
	cancel()
	if err := locker.Close(dead); err == nil { // gives nothing back
		t.Error("Close on an ended context said that nothing was left")
	}
	died := time.Now()
	is(t, term.Err(), redlock.ErrNotHeld)
	next := campaign(t, other)
	if took := time.Since(died); took > ttl+ttl/2 {
		t.Errorf("the next leader came after %v, want about %v at most", took, ttl)
	}
	if next.Token() <= term.Token() {
		t.Errorf("tokens %d and then %d", term.Token(), next.Token())
	}
}

// childURLs carries the masters to a copy of this test binary that leads until it is killed.
const childURLs = "REDLOCK_TEST_ELECTION_URLS"

func TestAKilledLeaderIsFollowedWithinTTL(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	if urls := os.Getenv(childURLs); urls != "" {
		leadUntilKilled(t, strings.Fields(urls), ttl)
		return
	}
	servers := redistest.StartN(t, 3)
	child := exec.Command(os.Args[0], "-test.run=^TestAKilledLeaderIsFollowedWithinTTL$")
	child.Env = append(os.Environ(), childURLs+"="+strings.Join(locktest.URLs(servers), " "))
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "leading as ") {
		t.Fatalf("the child said %q, %v", line, err)
	}
	id := strings.TrimSpace(strings.TrimPrefix(line, "leading as "))
	other := elect(t, servers, "leader", ttl)
	if leader, err := other.Leader(t.Context()); err != nil || leader.ID != id {
		t.Fatalf("Leader: %+v, %v, want the child, %s", leader, err, id)
	}
	must(t, child.Process.Kill())
	died := time.Now()
	campaign(t, other)
	if took := time.Since(died); took > ttl+ttl/2 {
		t.Errorf("the next leader came after %v, want about %v at most", took, ttl)
	}
}

func leadUntilKilled(t *testing.T, urls []string, ttl time.Duration) {
	t.Helper()
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{})
	must(t, err)
	election, err := leader.NewElection(locker, "leader", ttl)
	must(t, err)
	_ = election.Run(t.Context(), func(ctx context.Context, term *leader.Term) error {
		fmt.Println("leading as " + term.ID())
		<-ctx.Done() // the parent kills us
		return nil
	})
}

func TestMaxHoldEndsATermThatHangs(t *testing.T) {
	servers := redistest.StartN(t, 3)
	term := campaign(t, elect(t, servers, "leader", time.Minute, redlock.MaxHold(100*time.Millisecond)))
	<-term.Done()
	if err := term.Err(); !errors.Is(err, redlock.ErrNotHeld) || !strings.Contains(err.Error(), "MaxHold") {
		t.Errorf("the term ended with %v, want one that names MaxHold", err)
	}
	campaign(t, elect(t, servers, "leader", time.Minute))
}

func TestRunEndsWithTheLeadersOwnError(t *testing.T) {
	servers := redistest.StartN(t, 3)
	election := elect(t, servers, "leader", time.Minute)
	broken := errors.New("disk full")
	calls := 0
	err := election.Run(t.Context(), func(context.Context, *leader.Term) error {
		if calls++; calls < 3 {
			return nil // resigns, and is elected again
		}
		return broken
	})
	if !errors.Is(err, broken) || calls != 3 {
		t.Errorf("Run returned %v after %d terms, want the leader's error after 3", err, calls)
	}
	campaign(t, elect(t, servers, "leader", time.Minute)) // it has resigned
}

func TestRunResignsWhenTheLeaderPanics(t *testing.T) {
	servers := redistest.StartN(t, 3)
	election := elect(t, servers, "leader", time.Minute)
	var none []string
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not pass through")
			}
		}()
		_ = election.Run(t.Context(), func(_ context.Context, term *leader.Term) error {
			return errors.New(none[len(term.ID())])
		})
	}()
	campaign(t, elect(t, servers, "leader", time.Minute))
}

func TestElectionsThatMakeNoSenseAreRefused(t *testing.T) {
	servers := redistest.StartN(t, 1)
	locker := dial(t, servers)
	errorOf := func(_ *leader.Election, err error) error { return err }
	for name, err := range map[string]error{
		"no locker":    errorOf(leader.NewElection(nil, "leader", time.Minute)),
		"no key":       errorOf(leader.NewElection(locker, "", time.Minute)),
		"no ttl":       errorOf(leader.NewElection(locker, "leader", 0)),
		"many leaders": errorOf(leader.NewElection(locker, "leader", time.Minute, redlock.Shared())),
	} {
		locktest.Refused(t, name, err)
	}
	election := elect(t, servers, "leader", time.Minute)
	var noContext context.Context
	is(t, election.Run(noContext, resigns), redlock.ErrInvalid)
	is(t, election.Run(t.Context(), nil), redlock.ErrInvalid)
}

// The context of a leader ends when its term is over. If the leader then returns another error than the context's,
// Run ends with it: a leader that could not save its work must not be elected again as if nothing were wrong.
func TestWhatALeaderReturnsAfterItsTermEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := redlocktest.New(t, redlocktest.Count(3)).Locker(t, redlock.Options{})
		election, err := leader.NewElection(l, "leader", time.Second, redlock.MaxHold(500*time.Millisecond))
		must(t, err)
		broken := errors.New("disk full")
		returns := []func(context.Context) error{
			func(ctx context.Context) error { return ctx.Err() },
			context.Cause,
			func(context.Context) error { return broken },
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		terms := 0
		err = election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
			if term.Token() == 0 {
				t.Error("a term without a token")
			}
			select {
			case <-ctx.Done():
				is(t, context.Cause(ctx), redlock.ErrNotHeld)
			case <-time.After(time.Hour):
				t.Error("a leader's term is over, and its context has not ended")
				return broken
			}
			terms++
			return returns[min(terms, len(returns))-1](ctx)
		})
		if is(t, err, broken); terms != len(returns) {
			t.Errorf("%d terms, want %d", terms, len(returns))
		}
	})
}

func ExampleElection_Run() {
	masters, err := embedded.Start(3) // in your program: the URLs of three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	locker, err := redlock.Dial(ctx, masters.URLs(), redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locker.Close(context.Background()) }()
	election, err := leader.NewElection(locker, "scheduler", 10*time.Second, redlock.MaxHold(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		leader, err := election.Leader(ctx)
		if err != nil {
			return err
		}
		fmt.Println("leading:", leader.ID == term.ID(), "- fenced:", term.Token() > 0)
		stop() // this process is told to shut down
		<-ctx.Done()
		return nil
	})
	fmt.Println("shut down:", errors.Is(err, context.Canceled))
	// Output:
	// leading: true - fenced: true
	// shut down: true
}

// NewElection refuses what no Campaign could use.
func TestNewElectionRefusesAGraceThatLeavesNoValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		l := masters.Locker(t, redlock.Options{DriftFactor: 0.9})
		e, err := leader.NewElection(l, "leader", 10*time.Second)
		if err == nil {
			_, err = e.Campaign(t.Context())
			t.Errorf("NewElection accepted it, and Campaign says %v", err)
		}
	})
}

// What an Observer does under an event's context is no term of an election.
func TestAnAcquisitionUnderAnEventsContextIsNoTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		got := make(chan context.Context, 1)
		l := masters.Locker(t, redlock.Options{Observer: func(e redlock.Event) {
			if e.Kind == redlock.EventReturned {
				select {
				case got <- e.Context:
				default:
				}
			}
		}})
		e, err := leader.NewElection(l, "leader", 10*time.Second)
		must(t, err)
		running, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- e.Run(running, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return ctx.Err() })
		}()
		ctx := <-got
		stop()
		is(t, <-done, context.Canceled)
		other := masters.Locker(t, redlock.Options{})
		masters.Fail(redlocktest.ReplyError("NOPERM this user has no permissions"))
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = other.Acquire(bounded, "audit", 10*time.Second)
		if took := time.Since(began); !errors.Is(err, redlock.ErrMisconfigured) || took > 2*redlock.MendTime {
			t.Errorf("Acquire ended after %v with %v, want ErrMisconfigured after MendTime", took, err)
		}
	})
}
