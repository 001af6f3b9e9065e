package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// openPostgres starts one server.
func openPostgres(ctx context.Context, o masters.Options) (*masters.Fleet, error) {
	if o.N != 1 {
		return nil, fmt.Errorf("postgres is one server, and %d were asked for", o.N)
	}
	cluster, err := backend.Postgres(ctx, o.TempDir)
	if err != nil {
		return nil, unavailable(err)
	}
	return fleetOf("postgres", cluster, lookPostgres), nil
}

func lookPostgres(ctx context.Context, addr string, keys []string) (out []masters.Key, err error) {
	conn, err := pgx.Connect(ctx, backend.PostgresURL(addr))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx,
		`SELECT classid::bigint << 32 | objid::bigint, pid FROM pg_locks WHERE locktype = 'advisory' AND granted`)
	if err != nil {
		return nil, err
	}
	var lock, pid int64
	_, err = pgx.ForEachRow(rows, []any{&lock, &pid}, func() error {
		if i := slices.IndexFunc(keys, func(k string) bool { return subject.AdvisoryKey(k) == lock }); i >= 0 {
			out = append(out, masters.Key{Name: keys[i], Owners: []string{strconv.FormatInt(pid, 10)}})
		}
		return nil
	})
	return out, err
}

// advisory is pg_advisory_lock, each lock on a separate connection. The lock lasts as long as the server considers the
// connection alive. The holder learns of its end only from its next query, so a holder that makes none goes on.
type advisory struct{}

func (advisory) Name() string { return "pg-advisory" }

// RenewsHolds implements workload.Renewer.
func (advisory) RenewsHolds() {}

func (advisory) Supports(kind history.Kind) error { return plainOr("pg-advisory", kind) }

// advisoryConnections is how many a client has at most: more than its workers.
const advisoryConnections = 18

func (advisory) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	locks, err := subject.OpenAdvisory(ctx, addrs[0], advisoryConnections)
	if err != nil {
		return nil, err
	}
	return &advisoryLocker{locks: locks}, nil
}

type advisoryLocker struct {
	locks *subject.AdvisoryLocks
	tries atomic.Int64
}

func (l *advisoryLocker) Close(context.Context) error {
	l.locks.Close()
	return nil
}

func (l *advisoryLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		lock, err := l.locks.Lock(ctx, r.Key, r.Once)
		switch {
		case err == nil:
			return &advisoryHold{lock: lock, nth: l.tries.Add(1), until: time.Now().Add(unbounded)}, nil
		case errors.Is(err, subject.ErrAdvisoryHeld):
			return nil, fmt.Errorf("%w: %w", workload.ErrHeld, err)
		case ctx.Err() != nil || r.Once:
			return nil, errors.Join(ctx.Err(), fmt.Errorf("%w: %w", workload.ErrNoQuorum, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

type advisoryHold struct {
	lock *subject.AdvisoryLock
	// until is far away and fixed: a change would look like an extension.
	until time.Time
	nth   int64 // of this client's: the next hold of the same connection is another
}

func (h *advisoryHold) Owner() string            { return fmt.Sprintf("%d/%d", h.lock.Pid(), h.nth) }
func (h *advisoryHold) Token() uint64            { return 0 }
func (h *advisoryHold) Remaining() time.Duration { return time.Until(h.until) }
func (h *advisoryHold) Done() <-chan struct{}    { return nil }

func (h *advisoryHold) Extend(ctx context.Context, _ time.Duration) error {
	if err := h.lock.Ping(ctx); err != nil {
		return fmt.Errorf("%w: %w", workload.ErrLost, err)
	}
	return nil
}

func (h *advisoryHold) Release(ctx context.Context) error {
	err := h.lock.Release(ctx)
	switch {
	case errors.Is(err, subject.ErrNotHeld):
		return workload.ErrLost
	case err != nil:
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	}
	return nil
}
