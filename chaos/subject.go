package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Redlock is this library as a subject, with its default options.
func Redlock() workload.Subject { return RedlockWith("redlock", redlock.Options{}) }

// RedlockWith is this library with other options, under a name of its own.
func RedlockWith(name string, opts redlock.Options) workload.Subject {
	return ownSubject{name: name, opts: opts}
}

type ownSubject struct {
	name string
	opts redlock.Options
}

// Name implements workload.Subject.
func (s ownSubject) Name() string { return s.name }

// Supports implements workload.Subject: this library has all kinds.
func (s ownSubject) Supports(history.Kind) error { return nil }

// OwnerOf implements workload.OwnerReader. A plain lock's key has the owner itself; of the other kinds each hold is
// mode:owner:id.
func (s ownSubject) OwnerOf(raw string) string {
	_, rest, ok := strings.Cut(raw, ":")
	end := strings.LastIndexByte(rest, ':')
	if !ok || end < 0 {
		return raw
	}
	return rest[:end]
}

// Open implements workload.Subject.
func (s ownSubject) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	urls := make([]string, len(addrs))
	for i, addr := range addrs {
		urls[i] = "redis://" + addr
	}
	locker, err := redlock.Dial(ctx, urls, s.opts)
	if err != nil {
		return nil, err
	}
	return ownLocker{locker}, nil
}

type ownLocker struct{ *redlock.Locker }

// Acquire implements workload.Locker.
func (l ownLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	var opts []redlock.Option
	if r.Renew {
		opts = append(opts, redlock.AutoRenew())
	}
	switch r.Kind {
	case history.Fenced:
		opts = append(opts, redlock.Fenced())
	case history.Shared:
		opts = append(opts, redlock.Shared())
	case history.Exclusive:
		opts = append(opts, redlock.Exclusive())
	case history.Reentrant:
		opts = append(opts, redlock.Reentrant(orElse(r.Owner, rand.Text())))
	}
	acquire := l.Locker.Acquire
	if r.Once {
		acquire = l.TryAcquire
	}
	lock, err := acquire(ctx, r.Key, r.TTL, opts...)
	if err != nil {
		return nil, translate(err)
	}
	return ownHold{lock}, nil
}

// translate puts the library's errors into the workload's words.
func translate(err error) error {
	for own, word := range map[error]error{
		redlock.ErrHeld: workload.ErrHeld, redlock.ErrNoQuorum: workload.ErrNoQuorum, redlock.ErrExpired: workload.ErrExpired,
		redlock.ErrNotHeld: workload.ErrLost,
	} {
		if errors.Is(err, own) {
			return fmt.Errorf("%w: %w", word, err)
		}
	}
	return err
}

type ownHold struct{ *redlock.Lock }

// Extend implements workload.Hold.
func (h ownHold) Extend(ctx context.Context, ttl time.Duration) error {
	return translate(h.Lock.Extend(ctx, ttl))
}

// Release implements workload.Hold.
func (h ownHold) Release(ctx context.Context) error { return translate(h.Lock.Release(ctx)) }
