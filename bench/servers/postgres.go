package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	_ "github.com/lib/pq" // the driver

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/localport"
)

// findPostgres finds a program of the server: on PATH or where Debian has it.
func findPostgres(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target, nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", fmt.Errorf("%w: no %s on PATH (Debian: apt-get install postgresql)", masters.ErrUnavailable, name)
	}
	return slices.Max(found), nil
}

// openPostgres starts one server. PostgreSQL does not run as root, so for root it is the user postgres who runs it.
func openPostgres(ctx context.Context, o masters.Options) (*masters.Fleet, error) {
	if o.N != 1 {
		return nil, fmt.Errorf("postgres is one server, and %d were asked for", o.N)
	}
	postgres, err := findPostgres("postgres")
	if err != nil {
		return nil, err
	}
	initdb := filepath.Join(filepath.Dir(postgres), "initdb")
	dir, err := os.MkdirTemp(o.TempDir, "redlock-postgres-")
	if err != nil {
		return nil, err
	}
	fleet := &masters.Fleet{Backend: "postgres", Cleanup: func() error { return os.RemoveAll(dir) }}
	as, err := runAs(dir)
	if err != nil {
		return nil, errors.Join(err, fleet.Close())
	}
	data := filepath.Join(dir, "data")
	setUp := exec.CommandContext(ctx, initdb, "-D", data, "-U", "locks", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
	setUp.Dir, setUp.SysProcAttr = dir, as
	if out, err := setUp.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), fleet.Close())
	}
	s, err := newPostgres(postgres, dir, data, as)
	if err != nil {
		return nil, errors.Join(err, fleet.Close())
	}
	fleet.Masters = []masters.Master{s}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, fleet.Close())
	}
	return fleet, nil
}

// runAs is how processes are started that may not be root's, and gives them the directory.
func runAs(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // as whoever runs this
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: PostgreSQL does not run as root, and there is no user postgres: %w", masters.ErrUnavailable, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, os.Chown(dir, int(uid), int(gid))
}

func newPostgres(binary, dir, data string, as *syscall.SysProcAttr) (*server, error) {
	port, err := localport.Reserve()
	if err != nil {
		return nil, err
	}
	db, err := postgresAt(port.Addr())
	if err != nil {
		return nil, err
	}
	return &server{
		port: port,
		command: func() *exec.Cmd {
			cmd := exec.Command(binary, "-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port.Number()), "-k", dir, "-c", "max_connections=200")
			cmd.Dir, cmd.SysProcAttr = dir, as
			return cmd
		},
		ready: db.PingContext,
		look:  func(ctx context.Context, keys []string) ([]masters.Key, error) { return lookPostgres(ctx, db, keys) },
		close: db.Close,
	}, nil
}

func postgresAt(addr string) (*sql.DB, error) {
	return sql.Open("postgres", "postgres://locks@"+addr+"/postgres?sslmode=disable&connect_timeout=5")
}

// number is the advisory lock of a key: not negative and below 1<<31, so that pg_locks has it whole in objid.
func number(key string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	return int64(h.Sum32() >> 1)
}

func lookPostgres(ctx context.Context, db *sql.DB, keys []string) ([]masters.Key, error) {
	rows, err := db.QueryContext(ctx, `SELECT objid, pid FROM pg_locks WHERE locktype = 'advisory' AND granted`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // only read
	var out []masters.Key
	for rows.Next() {
		var lock, pid int64
		if err := rows.Scan(&lock, &pid); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(keys, func(k string) bool { return number(k) == lock }); i >= 0 {
			out = append(out, masters.Key{Name: keys[i], Owners: []string{strconv.FormatInt(pid, 10)}})
		}
	}
	return out, rows.Err()
}

// advisory is pg_advisory_lock on a connection of the holder's own. The lock lasts as long as the server takes the connection for alive;
// nothing tells the holder of its end but the next query, so a holder that makes none goes on.
type advisory struct{}

func (advisory) Name() string { return "pg-advisory" }

func (advisory) Supports(kind history.Kind) error { return plainOr("pg-advisory", kind) }

func (advisory) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	db, err := postgresAt(addrs[0])
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(16)
	return &advisoryLocker{db: db}, nil
}

type advisoryLocker struct {
	db    *sql.DB
	tries atomic.Int64
}

func (l *advisoryLocker) Close(context.Context) error { return l.db.Close() }

func (l *advisoryLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		h, err := l.try(ctx, r)
		if err == nil || errors.Is(err, workload.ErrHeld) {
			return h, err
		}
		if ctx.Err() != nil || r.Once {
			return nil, errors.Join(ctx.Err(), fmt.Errorf("%w: %w", workload.ErrNoQuorum, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *advisoryLocker) try(ctx context.Context, r workload.Request) (workload.Hold, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	h := &advisoryHold{conn: conn, lock: number(r.Key), nth: l.tries.Add(1), until: time.Now().Add(unbounded)}
	granted := true
	if r.Once {
		err = conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1), pg_backend_pid()`, h.lock).Scan(&granted, &h.pid)
	} else {
		err = conn.QueryRowContext(ctx, `SELECT pg_backend_pid() FROM pg_advisory_lock($1)`, h.lock).Scan(&h.pid)
	}
	switch {
	case err != nil:
		h.hangUp() // it may have been granted
		return nil, err
	case !granted:
		return nil, errors.Join(workload.ErrHeld, conn.Close())
	}
	return h, nil
}

type advisoryHold struct {
	conn *sql.Conn
	lock int64
	pid  int64
	// until is far away, and stays where it is: what moves is taken for an extension.
	until time.Time
	nth   int64 // of this client's: the next hold of the same connection is another
}

// hangUp closes the connection instead of keeping it for others, and with it ends what locks it has.
func (h *advisoryHold) hangUp() {
	_ = h.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = h.conn.Close()
}

func (h *advisoryHold) Owner() string            { return fmt.Sprintf("%d/%d", h.pid, h.nth) }
func (h *advisoryHold) Token() uint64            { return 0 }
func (h *advisoryHold) Remaining() time.Duration { return time.Until(h.until) }
func (h *advisoryHold) Done() <-chan struct{}    { return nil }

func (h *advisoryHold) Extend(ctx context.Context, _ time.Duration) error {
	if err := h.conn.PingContext(ctx); err != nil {
		return fmt.Errorf("%w: %w", workload.ErrLost, err)
	}
	return nil
}

func (h *advisoryHold) Release(ctx context.Context) error {
	var held bool
	err := h.conn.QueryRowContext(ctx, `SELECT pg_advisory_unlock($1)`, h.lock).Scan(&held)
	switch {
	case err != nil:
		h.hangUp()
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	case !held:
		return errors.Join(workload.ErrLost, h.conn.Close())
	}
	return h.conn.Close()
}
