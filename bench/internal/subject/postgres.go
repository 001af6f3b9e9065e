package subject

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
)

// postgresConnections is the greatest number of a client's connections: most of the hundred that a server allows by
// default.
const postgresConnections = 90

// postgresSubject is a session-level advisory lock of a PostgreSQL server.
type postgresSubject struct{}

// Postgres is pg_advisory_lock, which waits on the server, with a separate connection for each acquisition.
func Postgres() Subject { return postgresSubject{} }

func (postgresSubject) Name() string { return "postgres" }

func (postgresSubject) About() string {
	return fmt.Sprintf("pg_advisory_lock over pgx on one server with its default settings, which keeps such locks in "+
		"memory and writes nothing; a connection for every acquisition under way, %d at most", postgresConnections)
}

// OneMaster marks a subject that scenarios about several masters leave out.
func (postgresSubject) OneMaster() {}

// Start implements Hosted.
func (postgresSubject) Start(ctx context.Context) (*fleet.Fleet, error) { return fleet.Postgres(ctx) }

func (postgresSubject) Open(ctx context.Context, addrs []string) (Client, error) {
	locks, err := OpenAdvisory(ctx, addrs[0], postgresConnections)
	if err != nil {
		return nil, err
	}
	return postgresClient{locks}, nil
}

type postgresClient struct{ locks *AdvisoryLocks }

// Acquire implements Client. Such a lock has no ttl.
func (c postgresClient) Acquire(ctx context.Context, key string, _ time.Duration) (Handle, error) {
	return granted(c.locks.Lock(ctx, key, false))
}

func (c postgresClient) Close(context.Context) error {
	c.locks.Close()
	return nil
}

// ErrAdvisoryHeld is matched by the error of a key that another connection holds.
var ErrAdvisoryHeld = errors.New("subject: postgres: held by another connection")

// AdvisoryLocks holds a process's connections for advisory locks of a PostgreSQL server. The bench and the comparison
// under faults share it. It is safe for concurrent use.
type AdvisoryLocks struct{ pool *pgxpool.Pool }

// OpenAdvisory makes one with so many connections at most to the server at addr.
func OpenAdvisory(ctx context.Context, addr string, connections int) (*AdvisoryLocks, error) {
	cfg, err := pgxpool.ParseConfig(backend.PostgresURL(addr))
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &AdvisoryLocks{pool}, nil
}

// Close ends the connections. All locks have been released before.
func (l *AdvisoryLocks) Close() { l.pool.Close() }

// AdvisoryKey returns the number that PostgreSQL uses for a key.
func AdvisoryKey(key string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	return int64(h.Sum64())
}

// AdvisoryLock is one acquisition. It lasts as long as the server considers its connection alive. The holder learns of
// its end only from its next query.
type AdvisoryLock struct {
	conn *pgxpool.Conn
	key  int64
}

// Lock acquires the key. It waits until it has the key or ctx ends. With once it does not wait: the error for a held
// key matches [ErrAdvisoryHeld].
func (l *AdvisoryLocks) Lock(ctx context.Context, key string, once bool) (*AdvisoryLock, error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	k := &AdvisoryLock{conn: conn, key: AdvisoryKey(key)}
	granted := true
	if once {
		err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, k.key).Scan(&granted)
	} else {
		_, err = conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, k.key)
	}
	switch {
	case err != nil:
		k.hangUp() // it may have been granted
		return nil, err
	case !granted:
		conn.Release()
		return nil, ErrAdvisoryHeld
	}
	return k, nil
}

// hangUpTimeout limits the end of a connection to a server that may not answer.
const hangUpTimeout = time.Second

// hangUp closes the connection instead of returning it to the pool, and so ends its locks.
func (k *AdvisoryLock) hangUp() {
	ctx, cancel := context.WithTimeout(context.Background(), hangUpTimeout)
	defer cancel()
	_ = k.conn.Conn().Close(ctx)
	k.conn.Release()
}

// Pid is the number of the server's process that holds the lock.
func (k *AdvisoryLock) Pid() uint32 { return k.conn.Conn().PgConn().PID() }

// Ping asks the server whether the connection is alive, and so the lock.
func (k *AdvisoryLock) Ping(ctx context.Context) error { return k.conn.Ping(ctx) }

// Release implements Handle.
func (k *AdvisoryLock) Release(ctx context.Context) error {
	var held bool
	if err := k.conn.QueryRow(ctx, `SELECT pg_advisory_unlock($1)`, k.key).Scan(&held); err != nil {
		k.hangUp()
		return fmt.Errorf("subject: postgres: release: %w", err)
	}
	k.conn.Release()
	if !held {
		return ErrNotHeld
	}
	return nil
}
