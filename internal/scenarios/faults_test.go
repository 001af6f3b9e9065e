package scenarios_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/single"
)

// These tests try every error that a call can end with, while a caller waits: for half a second and permanently. The
// code decides by the table single.Faults, which also has the expected results.

// asked returns the error of a request for a plain lock, sent to a server through connections with these options.
func asked(t *testing.T, opt *redis.Options) error {
	t.Helper()
	m, err := single.Open(opt, single.Options{})
	Must(t, err)
	defer func() { Must(t, m.Close()) }()
	return refusal(t, m)
}

func refusal(t *testing.T, m *single.Master) error {
	t.Helper()
	_, err := m.Ask(Within(t, Promptly),
		single.Request{Op: single.Acquire, Keys: []string{Key}, Owner: "me", TTL: LongTTL})
	if err == nil {
		t.Fatal("the request was granted")
	}
	return err
}

// metWith returns example errors by the name of their fault. Servers produce most of these errors.
func metWith(t *testing.T) map[string][]error {
	t.Helper()
	open, secret, replica := redistest.Start(t), redistest.Start(t, redistest.WithPassword("right")), redistest.Start(t)
	secure, foreign := redistest.SelfSigned(t), redistest.SelfSigned(t)
	behindTLS := redistest.Start(t, redistest.WithTLS(secure.Files))
	moved := oddserver.Start(t, open.Addr(),
		oddserver.At("SET EVALSHA EVAL", oddserver.Say("-MOVED 3999 127.0.0.1:6381\r\n")))
	Demote(t, replica)
	Must(t, open.Client().Do(t.Context(), "ACL", "SETUSER", "off", "off", ">x", "+@all", "~*").Err())
	Must(t, open.Client().Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">x", "+get", "~*").Err())
	Must(t, open.Client().RPush(t.Context(), Key, "a list").Err())
	gone, err := single.Open(&redis.Options{Addr: open.Addr()}, single.Options{})
	Must(t, err)
	Must(t, gone.Close())
	brought := redis.NewClient(&redis.Options{Addr: open.Addr()})
	through, err := single.New(brought, single.Options{})
	Must(t, err)
	Must(t, brought.Close())
	wrong := func() (user, password string) { return "", "wrong" }
	return map[string][]error{
		"the client is closed":              {refusal(t, gone), refusal(t, through)},
		"another slot than the other keys'": {ReplyError("CROSSSLOT Keys in request don't hash to the same slot")},
		"credentials of a provider that the server refuses": {
			asked(t, &redis.Options{Addr: secret.Addr(), CredentialsProvider: wrong}),
			asked(t,
				&redis.Options{
					Addr: secret.Addr(), CredentialsProvider: wrong,
					OnConnect: func(context.Context, *redis.Conn) error { return nil },
				}),
		},
		"wrong password, user switched off, right missing": {
			asked(t, &redis.Options{Addr: secret.Addr(), Password: "wrong"}),
			asked(t, &redis.Options{Addr: secret.Addr()}),
			asked(t, &redis.Options{Addr: open.Addr(), Username: "off", Password: "x"}),
			asked(t, &redis.Options{Addr: open.Addr(), Username: "reader", Password: "x"}),
			ReplyError("DENIED Redis is running in protected mode"),
			ReplyError("ERR ACL failure in script: User reader has no permissions to run the 'set' command"),
		},
		"certificate of the server not accepted": {
			asked(t, &redis.Options{Addr: behindTLS.Addr(), TLSConfig: foreign.Client()}),
		},
		"certificate of the client not accepted": {
			&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
		},
		"no TLS at the server's port": {
			tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
		},
		"replica, or another node's key, at an address that was given": {
			asked(t, &redis.Options{Addr: replica.Addr()}), asked(t, &redis.Options{Addr: moved.Addr()}),
		},
		"the restart guard gets no answer": {
			&single.GuardError{Guard: time.Minute, Remaining: time.Minute, Unclear: "NOPERM"},
		},
		"the server is too old, or of another kind": {ReplyError("ERR unknown command 'evalsha'")},
		"the database does not exist":               {asked(t, &redis.Options{Addr: open.Addr(), DB: 99})},
		"something else is in the key's place": {
			ReplyError("ERR there is no greater fencing token than 9007199254740991"),
			asked(t, &redis.Options{Addr: open.Addr()}),
		},
		"everything else: no connection, no answer, still loading, out of memory, guarded after a restart": {
			ErrSilent, io.EOF, context.DeadlineExceeded, single.ErrDown, single.ErrLate, single.ErrFull,
			single.ErrBehind,
			asked(t, &redis.Options{Addr: "127.0.0.1:1"}),
			asked(t, &redis.Options{Addr: behindTLS.Addr(), Dialer: hangsUp}),
			&single.GuardError{Guard: time.Minute, Remaining: time.Second},
			ReplyError("READONLY You can't write against a read only replica."),
			ReplyError("LOADING Redis is loading the dataset in memory"),
			ReplyError("BUSY Redis is busy running a script"),
			ReplyError("MASTERDOWN Link with MASTER is down"),
			ReplyError("OOM command not allowed when used memory > 'maxmemory'"),
			ReplyError("MISCONF Redis is configured to save RDB snapshots"),
			ReplyError("CLUSTERDOWN The cluster is down"),
			ReplyError("TRYAGAIN Multiple keys request during rehashing of slot"),
			ReplyError("ERR max number of clients reached"),
		},
	}
}

func hangsUp(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }

// met has the examples for all tests; the servers of the first test make them.
var met struct {
	once     sync.Once
	examples map[string][]error
}

// faulty runs body for every fault, in virtual time, with masters that end every request for a lock with it.
func faulty(t *testing.T,
	body func(t *testing.T, masters Fakes, lasts single.Lasting, fails func(*single.Request) Act),
) {
	t.Helper()
	t.Parallel()
	met.once.Do(func() { met.examples = metWith(t) })
	for _, fault := range single.Faults() {
		if len(met.examples[fault.Name]) == 0 {
			t.Errorf("there is no example of %q", fault.Name)
		}
		for _, err := range met.examples[fault.Name] {
			t.Run(fault.Name, func(t *testing.T) {
				if got := single.Lasts(err); got != fault.Lasts {
					t.Errorf("%v lasts %d, want %d", err, got, fault.Lasts)
				}
				Bubble(t, 3, func(t *testing.T, masters Fakes) {
					defer masters.Behave(nil)
					body(t, masters, fault.Lasts, On(single.Acquire, Act{Err: err, After: time.Millisecond}))
				})
			})
		}
	}
}

func TestHazard105AWaitOutlastsEveryFaultThatMayPass(t *testing.T) {
	faulty(t, func(t *testing.T, masters Fakes, lasts single.Lasting, fails func(*single.Request) Act) {
		masters.Behave(fails)
		began := time.Now()
		w := Wait(t, Within(t, 5*time.Second), masters.Locker(t, redlock.Options{}), Key, LongTTL)
		Settle(500 * time.Millisecond)
		masters.Behave(nil)
		if lasts >= single.Final {
			if err, took := w.Fail(t), w.At.Sub(began); took > 20*time.Millisecond {
				t.Errorf("the wait took %v to end with %v", took, err)
			}
			return
		}
		lock := w.Get(t)
		if took := w.At.Sub(began); took > 700*time.Millisecond {
			t.Errorf("the lock came after %v", took)
		}
		Must(t, lock.Release(t.Context()))
	})
}

// endsOf returns when a wait without a deadline ends, and with which error, for a fault that does not end; nil:
// never.
func endsOf(lasts single.Lasting) (error, time.Duration) { //nolint:revive,staticcheck // the error is a table's value
	switch lasts {
	case single.Closed:
		return redlock.ErrClosed, 0
	case single.Final:
		return redlock.ErrMisconfigured, 0
	case single.Mendable:
		return redlock.ErrMisconfigured, redlock.MendTime
	default:
		return nil, 0
	}
}

func TestHazard105TheTableOfFaultsSaysWhenAWaitEnds(t *testing.T) {
	faulty(t, func(t *testing.T, masters Fakes, lasts single.Lasting, fails func(*single.Request) Act) {
		var complaints atomic.Int64
		l := masters.Locker(t, redlock.Options{Observer: func(e redlock.Event) {
			if e.Kind == redlock.EventComplaint {
				complaints.Add(1)
			}
		}})
		masters.Behave(fails)
		const crowd = 30
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []*Waiting
		began := time.Now()
		for range crowd {
			all = append(all, Wait(t, ctx, l, Key, LongTTL))
		}
		Settle(time.Minute)
		want, after := endsOf(lasts)
		if want == nil {
			cancel()
			synctest.Wait()
		}
		for _, w := range all {
			err, took := w.Fail(t), w.At.Sub(began)
			switch {
			case want == nil:
				Is(t, err, context.Canceled)
			case took < after || took > after+2*time.Second:
				t.Errorf("the wait ended after %v, want %v: %v", took, after, err)
			default:
				Is(t, err, want)
			}
			if t.Failed() {
				break
			}
		}
		told := int64(1)
		if lasts == single.Passing || lasts >= single.Final {
			told = 0
		}
		if n := complaints.Load(); n != told {
			t.Errorf("the event was sent %d times, want %d", n, told)
		}
		if n := masters[0].Count(single.Acquire); lasts == single.Mendable && n > 60 {
			t.Errorf("%d waiters asked %d times", crowd, n)
		}
	})
}

func TestMaxOutageBoundsFaultsThatAnOperatorMustMend(t *testing.T) {
	faulty(t, func(t *testing.T, masters Fakes, lasts single.Lasting, fails func(*single.Request) Act) {
		l := masters.Locker(t, redlock.Options{})
		masters.Behave(fails)
		const outage = 3 * time.Second
		began := time.Now()
		_, err := l.Acquire(t.Context(), Key, LongTTL, redlock.MaxOutage(outage), redlock.RetryEvery(time.Second))
		want, after := endsOf(lasts)
		if lasts < single.Final {
			after = outage
		}
		if lasts < single.Mendable {
			want = redlock.ErrNoQuorum
		}
		Is(t, err, want)
		if took := time.Since(began); took < after || took > after+2*time.Second {
			t.Errorf("the wait ended after %v, want %v: %v", took, after, err)
		}
	})
}

// One attempt reports the obstacle at once.
func TestASingleAttemptSaysWhetherAnOperatorMustMend(t *testing.T) {
	faulty(t, func(t *testing.T, masters Fakes, lasts single.Lasting, fails func(*single.Request) Act) {
		l := masters.Locker(t, redlock.Options{})
		masters.Behave(fails)
		began := time.Now()
		_, tried := l.TryAcquire(t.Context(), Key, LongTTL)
		_, once := l.Acquire(t.Context(), Key, LongTTL, redlock.MaxAttempts(1))
		for _, err := range []error{tried, once} {
			Is(t, err, redlock.ErrNoQuorum)
			if mends := lasts == single.Mendable ||
				lasts == single.Final; errors.Is(err, redlock.ErrMisconfigured) != mends {
				t.Errorf("%v matches ErrMisconfigured: %t, want %t", err, !mends, mends)
			}
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("the attempt took %v", took)
		}
	})
}

// A candidate goes on for as long as it takes, asks seldom, and leads soon after that.
func TestHazard105ACandidateOutlastsEveryFaultThatMayPass(t *testing.T) {
	for _, mended := range []time.Duration{500 * time.Millisecond, 10 * time.Minute} {
		t.Run(mended.String(), func(t *testing.T) {
			faulty(t, func(t *testing.T, masters Fakes, lasts single.Lasting, fails func(*single.Request) Act) {
				if lasts == single.Passing && mended > time.Minute {
					return // such an outage is asked out as often as ever
				}
				e, err := leader.NewElection(masters.Locker(t, redlock.Options{}), Key, LongTTL)
				Must(t, err)
				masters.Behave(fails)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				led, ended := make(chan time.Time, 1), make(chan error, 1)
				go func() {
					ended <- e.Run(ctx, func(context.Context, *leader.Term) error {
						led <- time.Now()
						cancel()
						return nil
					})
				}()
				Settle(mended)
				asked := masters[0].Count(single.Acquire)
				masters.Behave(nil)
				began := time.Now()
				select {
				case at := <-led:
					if late := at.Sub(began); late > 8*time.Second {
						t.Errorf("the candidate leads %v after the end of the fault", late)
					}
					if lasts >= single.Final {
						t.Error("the candidate led in spite of a final error")
					}
					if lasts != single.Passing && mended > time.Minute && asked > int(mended/(2*time.Second)) {
						t.Errorf("the candidate asked %d times in %v", asked, mended)
					}
					Is(t, <-ended, context.Canceled)
				case err := <-ended:
					want, _ := endsOf(lasts)
					if lasts < single.Final {
						want = nil
					}
					Is(t, err, want)
				}
			})
		})
	}
}

// The negative control: the test notices a fault without an example, and the first row that fits counts.
func TestEveryFaultHasANameAndAReason(t *testing.T) {
	var names []string
	for _, f := range single.Faults() {
		if f.Name == "" || f.Why == "" || slices.Contains(names, f.Name) {
			t.Errorf("%q, because %q", f.Name, f.Why)
		}
		names = append(names, f.Name)
	}
	both := errors.Join(ReplyError("WRONGTYPE x"), redis.ErrClosed)
	if got := single.Lasts(both); got != single.Closed {
		t.Errorf("a closed client lasts %d", got)
	}
	if last := single.Faults()[len(names)-1]; last.Lasts != single.Passing {
		t.Errorf("an unknown error lasts %d", last.Lasts)
	}
}
