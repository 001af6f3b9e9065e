package backend_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started starts a cluster in a directory that the server's user can reach.
func started(t *testing.T, start func(dir string) (*backend.Cluster, error)) (cluster *backend.Cluster, dir string) {
	t.Helper()
	//nolint:usetesting // PostgreSQL's user can't reach what testing makes
	dir, err := os.MkdirTemp("", "redlock-backend-")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	cluster, err = start(dir)
	if errors.Is(err, backend.ErrNotInstalled) {
		_ = os.RemoveAll(dir)
		redistest.NothingTested(t, err)
	}
	must(t, err)
	return cluster, dir
}

// gone fails unless the cluster has ended and left nothing.
func gone(t *testing.T, cluster *backend.Cluster, dir string) {
	t.Helper()
	if err := cluster.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for _, s := range cluster.Servers {
		if err := syscall.Kill(s.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v; want that it has ended", s.Pid(), err)
		}
		if conn, err := net.Dial("tcp", s.Addr()); err == nil {
			_ = conn.Close()
			t.Errorf("a server still listens on %s", s.Addr())
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
	must(t, os.Remove(dir))
}

func TestEtcdServesWithOneMemberStoppedAndLeavesNothing(t *testing.T) {
	cluster, dir := started(t, func(dir string) (*backend.Cluster, error) { return backend.Etcd(t.Context(), dir, 3) })
	leader, err := backend.EtcdLeader(t.Context(), cluster.Addrs())
	must(t, err)
	victim, other := cluster.Servers[(leader+1)%3], cluster.Servers[(leader+2)%3]
	must(t, victim.Pause())
	client, err := backend.EtcdClient([]string{other.Addr()})
	must(t, err)
	redistest.Eventually(t, time.Minute, func() bool { // an election on a busy machine takes time
		_, err := client.Put(t.Context(), "key", "value")
		return err == nil
	}, "a write with one of three members stopped")
	must(t, client.Close())
	gone(t, cluster, dir) // the stopped one too
}

func TestPostgresKeepsItsDataThroughAKillAndLeavesNothing(t *testing.T) {
	cluster, dir := started(t, func(dir string) (*backend.Cluster, error) { return backend.Postgres(t.Context(), dir) })
	server := cluster.Servers[0]
	ask := func(sql string) error {
		conn, err := pgx.Connect(t.Context(), backend.PostgresURL(server.Addr()))
		if err != nil {
			return err
		}
		_, err = conn.Exec(t.Context(), sql)
		return errors.Join(err, conn.Close(t.Context()))
	}
	must(t, ask(`CREATE TABLE kept (n int)`))
	must(t, server.Kill())
	if err := ask(`SELECT 1`); err == nil {
		t.Error("it answers after it was killed")
	}
	must(t, server.Start(t.Context()))
	if err := ask(`INSERT INTO kept VALUES (1)`); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	pid := strconv.Itoa(server.Pid())
	if n := sharedMemory(t, pid); runtime.GOOS == "linux" && n != 1 {
		t.Errorf("it has %d segments of shared memory; want one, or the next question means nothing", n)
	}
	gone(t, cluster, dir)
	if n := sharedMemory(t, pid); n != 0 {
		t.Errorf("%d segments of shared memory are left", n)
	}
}

// sharedMemory counts the System V segments that a process has made.
func sharedMemory(t *testing.T, pid string) (n int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	text, err := os.ReadFile("/proc/sysvipc/shm")
	must(t, err)
	const creator = 4 // key shmid perms size cpid …
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > creator && fields[creator] == pid {
			n++
		}
	}
	return n
}

func TestAMissingProgramIsNamedWithItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	backend.HideDebianPostgres(t, filepath.Join(t.TempDir(), "*"))
	_, etcd := backend.Etcd(t.Context(), t.TempDir(), 3)
	_, postgres := backend.Postgres(t.Context(), t.TempDir())
	for want, err := range map[string]error{"etcd-server": etcd, "postgresql": postgres} {
		if !errors.Is(err, backend.ErrNotInstalled) || !strings.Contains(err.Error(), "apt-get install "+want) {
			t.Errorf("%v; want ErrNotInstalled and %s", err, want)
		}
	}
}

// Ctrl-C may come while the servers start.
func TestACanceledStartLeavesNothing(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, dir string) (*backend.Cluster, error){
		"etcd": func(ctx context.Context, dir string) (*backend.Cluster, error) {
			return backend.Etcd(ctx, dir, 3)
		},
		"PostgreSQL": backend.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := start(ctx, dir)
			if errors.Is(err, backend.ErrNotInstalled) {
				redistest.NothingTested(t, err)
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left on disk: %v, %v", left, err)
			}
		})
	}
}
