package sqlfence_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // a driver
	_ "github.com/jackc/pgx/v5/stdlib" // a driver

	"github.com/seed-624411e5/redlock/fence/sqlfence"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// The test starts these servers as its own processes, each in its own folder. It reaches them through sockets in those
// folders; they open no port. They end with the test, even if the test is killed. If a program is missing,
// redistest.NothingTested names it.

func servers() []backend {
	return []backend{
		{"PostgreSQL", sqlfence.PostgreSQL, openPostgres},
		{"MariaDB", sqlfence.MySQL, openMariaDB},
	}
}

// find returns a program on PATH or where Debian has it.
func find(t *testing.T, install string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			if target, err := filepath.EvalSymlinks(path); err == nil {
				return target
			}
		}
		for _, pattern := range []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/"} {
			if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
				return slices.Max(found)
			}
		}
	}
	redistest.NothingTested(t, fmt.Sprintf("no %s on PATH (Debian: apt-get install %s)", names[0], install))
	return ""
}

// folder returns a directory for a server, and the attributes that run a program as the directory's user. The path is
// short, because sockets need that. The user is the one who runs the test. As root, it is another user of the system,
// because PostgreSQL refuses to run as root.
func folder(t *testing.T, name string) (dir string, as *syscall.SysProcAttr) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fence-") //nolint:usetesting // the path of a socket in it must be short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	as = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		return dir, as
	}
	u, err := user.Lookup(name)
	if err != nil {
		redistest.NothingTested(t, fmt.Sprintf("there is no user %s to run the server as: %v", name, err))
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	must(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	must(t, err)
	must(t, os.Chown(dir, int(uid), int(gid)))
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return dir, as
}

func output(t *testing.T, as *syscall.SysProcAttr, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as.Credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// run starts a server, waits until it can be used, and ends it with the test. The goroutine keeps its thread: the
// server is killed when that ends.
func run(t *testing.T, as *syscall.SysProcAttr, dir string, db *sql.DB, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = dir, as, log, log
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(exited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	must(t, <-started)
	t.Cleanup(func() {
		_ = db.Close()
		_ = cmd.Process.Signal(syscall.SIGKILL) // its data are of no use any more
		<-exited
		_ = log.Close()
	})
	deadline := time.Now().Add(time.Minute)
	for {
		err := db.PingContext(t.Context())
		if err == nil {
			return
		}
		select {
		case <-exited:
		case <-time.After(20 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("%s can't be used: %v: %s", program, err, text)
	}
}

func openPostgres(t *testing.T) *sql.DB {
	t.Helper()
	postgres := find(t, "postgresql", "postgres")
	dir, as := folder(t, "postgres")
	data := filepath.Join(dir, "data")
	output(t, as, dir, filepath.Join(filepath.Dir(postgres), "initdb"), "-D", data, "-U", "fences", "-A", "trust", "-N",
		"--no-locale", "-E", "UTF8")
	db, err := sql.Open("pgx", "user=fences dbname=postgres sslmode=disable host="+dir)
	must(t, err)
	run(t, as, dir, db, postgres, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	return db
}

func openMariaDB(t *testing.T) *sql.DB {
	t.Helper()
	server := find(t, "mariadb-server", "mariadbd")
	install := find(t, "mariadb-server", "mariadb-install-db")
	dir, as := folder(t, "mysql")
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	output(t, as, dir, install, "--no-defaults", "--datadir="+data, "--tmpdir="+dir,
		"--auth-root-authentication-method=normal", "--skip-test-db")
	db, err := sql.Open("mysql", "root@unix("+socket+")/")
	must(t, err)
	run(t, as, dir, db, server, "--no-defaults", "--datadir="+data, "--tmpdir="+dir, "--socket="+socket,
		"--skip-networking", "--innodb-buffer-pool-size=16M",
		"--innodb-flush-log-at-trx-commit=0", "--pid-file="+filepath.Join(dir, "pid"))
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE fences CHARACTER SET utf8mb4")
	must(t, err)
	must(t, db.Close())
	db, err = sql.Open("mysql", "root@unix("+socket+")/fences")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
