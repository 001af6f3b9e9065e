package scenarios_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// takeover lets one client hold a lock on two of three masters while the third can't be reached. Then one of the two
// restarts without its data and the third comes back. takeover returns the error of a second client that tries for a
// part of the first one's validity; nil means that it got the lock too.
func takeover(t *testing.T, opts redlock.Options) error {
	t.Helper()
	const ttl = 4 * time.Second
	servers := redistest.StartN(t, 3)
	opts.RequestTimeout = time.Second // for a busy machine
	first, second := Dial(t, servers, opts), Dial(t, servers, opts)
	ctx := Within(t, 20*time.Second)
	// Servers that were started just now do not vote yet, if they are guarded.
	warm, err := second.Acquire(ctx, "warm-up", ttl)
	Must(t, err)
	Must(t, warm.Release(ctx))

	servers[2].Pause()
	lock, err := first.Acquire(ctx, "orders:42", ttl)
	Must(t, err)
	servers[0].RestartEmpty()
	servers[2].Kill() // what it had not read is not to be in the way
	servers[2].RestartEmpty()
	trying, stop := context.WithTimeout(ctx, lock.Remaining()-time.Second)
	defer stop()
	other, err := second.Acquire(trying, "orders:42", ttl)
	if lock.Err() != nil {
		t.Fatalf("the first lock did not last until the second client was done: %v", lock.Err())
	}
	if err == nil {
		Must(t, other.Release(ctx))
	}
	return err
}

func TestHazard33TheRestartGuardPreventsASecondHolder(t *testing.T) {
	t.Parallel()
	err := takeover(t, redlock.Options{RestartGuard: 4 * time.Second})
	Is(t, err, context.DeadlineExceeded)
	if err == nil || !strings.Contains(err.Error(), "may have forgotten locks: it does not vote for another") {
		t.Errorf("the error does not say which master does not vote, and for how long: %v", err)
	}
}

// The control: without the guard the same restarts do make two holders.
func TestWithoutTheGuardARestartMakesTwoHolders(t *testing.T) {
	t.Parallel()
	Must(t, takeover(t, redlock.Options{})) // or the test above shows nothing
}

func TestAGuardedMastersVoteIsUnknownAndSaysForHowLong(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	locker := Dial(t, servers, redlock.Options{RestartGuard: time.Minute, RequestTimeout: time.Second})
	for range 20 { // also once the master is only probed
		_, err := locker.TryAcquire(t.Context(), "orders:42", 10*time.Second)
		var quorum *redlock.QuorumError
		if !errors.Is(err, redlock.ErrNoQuorum) || !errors.As(err, &quorum) {
			t.Fatalf("got %v, want a QuorumError that matches ErrNoQuorum", err)
		}
		guards, spared := 0, 0
		for _, node := range quorum.Nodes {
			var guarded *single.GuardError
			switch {
			case node.Vote == redlock.Unknown && errors.As(node.Err, &guarded):
				guards++
			case errors.Is(node.Err, single.ErrBehind): // a busy machine has not got round to it yet
				spared++
			}
		}
		if guards+spared < quorum.Quorum || guards == 0 { // which decide the round
			t.Fatalf("%d votes are unknown because of the guard, want %d: %v", guards, quorum.Quorum, err)
		}
	}
}
