package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestAQuorumErrorIsOneLineThatAnOperatorCanActOn(t *testing.T) {
	err := &redlock.QuorumError{
		Op: "acquire", Key: "orders:42", Granted: 1, Quorum: 3, N: 5, Reason: redlock.ErrHeld,
		Nodes: []redlock.NodeResult{
			{Master: "a:6379", Vote: redlock.Granted},
			{Master: "b:6379", Vote: redlock.Refused, TTL: 1500 * time.Millisecond},
			{Master: "c:6379", Vote: redlock.Refused},
			{Master: "d:6379", Vote: redlock.Unknown, Err: errors.New("i/o timeout")},
			{Master: "e:6379", Vote: redlock.Pending},
		},
	}
	const want = `redlock: held by another: acquire "orders:42": granted 1 of 5, need 3 ` +
		`(b:6379: refused, free in 1.5s; c:6379: refused; d:6379: i/o timeout; e:6379: pending)`
	if got := err.Error(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	err.Key = "line\nfeed"
	if got := err.Error(); strings.Contains(got, "\n") {
		t.Errorf("a key with a line feed makes two lines: %q", got)
	}
	err.Nodes = nil
	if got, want := err.Error(), `redlock: held by another: acquire "line\nfeed": granted 1 of 5, need 3`; got != want {
		t.Errorf("without nodes: %s, want %s", got, want)
	}
}

func TestAQuorumErrorStaysOneLineForAnyReplyOfAMaster(t *testing.T) {
	masters := NewFakes(1)
	masters.Behave(On(single.Acquire, Act{Err: errors.Join(errors.New("one"), errors.New("two"))}))
	_, err := masters.Locker(t, redlock.Options{}).TryAcquire(t.Context(), Key, LongTTL)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "two") {
		t.Errorf("want one line with the whole error: %q", err)
	}
}

func TestAQuorumErrorHasTheReplyOfEveryMaster(t *testing.T) {
	WithLocker(t, 5, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters[1].Take("somebody", time.Second)
		masters[2].Take("somebody", 3*time.Second)
		masters[3].Behave(On(single.Acquire, Act{Lost: true}))
		masters[4].Behave(On(single.Acquire, Act{Err: errors.New("broken")}))
		_, err := l.Acquire(Within(t, time.Millisecond), Key, LongTTL, redlock.RetryEvery(time.Minute)) // one round

		q, ok := errors.AsType[*redlock.QuorumError](err)
		if !ok {
			t.Fatalf("%v is no QuorumError", err)
		}
		if q.Op != "acquire" || q.Key != Key || q.Granted != 1 || q.Quorum != 3 || q.N != 5 || len(q.Nodes) != 5 {
			t.Errorf("%+v", q)
		}
		votes := []redlock.Vote{redlock.Granted, redlock.Refused, redlock.Refused, redlock.Pending, redlock.Unknown}
		for i, want := range votes {
			if node := q.Nodes[i]; node.Vote != want || node.Master != masters[i].Name() ||
				(node.Err != nil) != (want == redlock.Unknown) {
				t.Errorf("node %d: %+v, want %v", i, node, want)
			}
		}
		if q.Nodes[1].TTL != time.Second || q.Nodes[2].TTL != 3*time.Second || q.Nodes[1].Holder != "#729d7d638cef" {
			t.Errorf("the refusals: %+v, %+v", q.Nodes[1], q.Nodes[2])
		}
		if text := err.Error(); strings.Contains(text, "somebody") {
			t.Errorf("the message shows the owner value, which is enough to release the lock: %s", text)
		}
	})
}

// A failure that one master reports says nothing about the whole: not when there is a quorum, and not in the error when
// there is none.
func TestHazard11OneMastersErrorIsNotTheRounds(t *testing.T) {
	for _, leaky := range []error{
		redlock.ErrHeld, redlock.ErrExpired, redlock.ErrNotHeld, context.DeadlineExceeded, context.Canceled,
		single.ErrDown,
	} {
		WithLocker(t, 5, func(t *testing.T, masters Fakes, l *redlock.Locker) {
			fails := func(*single.Request) Act { return Act{Err: fmt.Errorf("one master: %w", leaky)} }
			masters[:2].Behave(fails)
			lock, err := l.TryAcquire(t.Context(), Key, LongTTL)
			Must(t, err)
			Must(t, lock.Extend(t.Context(), LongTTL))
			Must(t, lock.Release(t.Context()))

			masters[:3].Behave(fails)
			_, err = l.TryAcquire(t.Context(), Key, LongTTL)
			OnlyIs(t, err, redlock.ErrNoQuorum)
			IsNot(t, err, single.ErrDown)
			if !strings.Contains(err.Error(), leaky.Error()) {
				t.Errorf("%v does not have the masters' error", err)
			}
			masters.Behave(nil)
		})
	}
}

// One refusal in an outage is not "held": it would send an operator to look for a holder.
func TestHazard11ARefusalInAnOutageIsNotHeld(t *testing.T) {
	WithLocker(t, 5, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters[:3].Behave(RefuseAll)
		masters[3:].Take("somebody", LongTTL)
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrNoQuorum)
		masters.Behave(nil)
	})
}

// The caller can ask for the reason that ended the wait, and for the verdict of the last round. Neither error matches
// the other.
func TestHazard12CancelledExhaustedAndHeldAreDifferentErrors(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters.Take("somebody", time.Hour)
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrHeld)

		_, err = l.Acquire(t.Context(), Key, LongTTL, redlock.MaxAttempts(3))
		OnlyIs(t, err, redlock.ErrHeld)

		_, err = l.Acquire(Within(t, time.Second), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrHeld, context.DeadlineExceeded)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = l.Acquire(ctx, Key, LongTTL)
		OnlyIs(t, err, redlock.ErrHeld, context.Canceled)

		masters.Behave(func(*single.Request) Act { return Act{Lost: true} })
		_, err = l.TryAcquire(Within(t, time.Millisecond), Key, LongTTL) // nobody has said anything yet
		OnlyIs(t, err, context.DeadlineExceeded)

		_, err = l.Acquire(Within(t, 5*time.Second), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrNoQuorum, context.DeadlineExceeded)
		masters.Behave(nil)
	})
}

func TestAWaitThatEndedMatchesItsContextsErrorAndItsCause(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters.Take("somebody", time.Hour)
		why := errors.New("why")
		for name, a := range acquirers {
			if name == "TryAcquire" {
				continue
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(why) })
			err := a(l, ctx, Key, LongTTL)
			Is(t, err, why)
			Is(t, err, context.Canceled)
		}
	})
}

// A master that answers the acquire with an error has not performed it, so there is nothing to release there.
func TestARefusedConnectionLeavesNothingToCleanUp(t *testing.T) {
	servers := redistest.StartN(t, 3, redistest.WithPassword("right"))
	wrong := make([]string, len(servers))
	for i, s := range servers {
		wrong[i] = "redis://:wrong@" + s.Addr()
	}
	l, err := redlock.Dial(t.Context(), wrong, redlock.Options{})
	Must(t, err)
	_, err = l.TryAcquire(t.Context(), Key, LongTTL)
	Is(t, err, redlock.ErrNoQuorum)
	CloseLocker(t, l) // long before the ttl is over
}

// A context may end because of another lock's error. That says nothing about this acquisition's masters.
func TestTheCauseOfAContextIsNoOutage(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters.Behave(On(single.Acquire, Act{Lost: true}))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(redlock.ErrNoQuorum) })
		_, err := l.TryAcquire(ctx, Key, LongTTL)
		Is(t, err, context.Canceled)
		Is(t, err, redlock.ErrNoQuorum)
		if since := redlock.OutageSince(l); since != 0 {
			t.Errorf("the cause of a context counts as an outage that began at %v", since)
		}
	})
}
