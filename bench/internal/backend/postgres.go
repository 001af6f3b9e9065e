package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/seed-624411e5/redlock/internal/localport"
)

// Postgres starts one server with PostgreSQL's default settings. Its data are below dir; "" is the system's directory
// for temporary files. PostgreSQL does not run as root, so for root the user postgres runs it. If the program or that
// user is missing, the error matches ErrNotInstalled. ctx limits only the start.
func Postgres(ctx context.Context, dir string) (*Cluster, error) {
	postgres, err := findPostgres()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Version: version(ctx, postgres)}
	if c.dir, err = os.MkdirTemp(dir, "redlock-postgres-"); err != nil {
		return nil, err
	}
	as, err := notAsRoot(c.dir)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	data := filepath.Join(c.dir, "data")
	setUp := exec.CommandContext(ctx, filepath.Join(filepath.Dir(postgres), "initdb"), "-D", data, "-U", postgresUser,
		"-A", "trust", "-N", "--no-locale", "-E", "UTF8")
	setUp.Dir = c.dir
	as(setUp)
	if out, err := setUp.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("backend: initdb: %w: %s", err, out), c.Close())
	}
	s, err := newPostgres(postgres, c.dir, data, as)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.Servers = []*Server{s}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// postgresUser is the database user, who has all rights.
const postgresUser = "locks"

// PostgresURL returns the URL of the server at addr.
func PostgresURL(addr string) string {
	return "postgres://" + postgresUser + "@" + addr + "/postgres?sslmode=disable&connect_timeout=5"
}

// findPostgres finds the server's program on PATH or in Debian's directory. Of several versions it returns the newest.
func findPostgres() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target, nil
		}
	}
	found, _ := filepath.Glob(debianPostgres) // the pattern is a good one
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL: %w: no postgres on PATH (Debian: apt-get install postgresql)",
			ErrNotInstalled)
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(release(a), release(b)) }), nil
}

// debianPostgres is Debian's directory of the server, which is not on PATH. Tests change this variable.
var debianPostgres = "/usr/lib/postgresql/*/bin/postgres"

// release returns the version number in Debian's path of a server.
func release(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

func newPostgres(binary, dir, data string, as func(*exec.Cmd)) (*Server, error) {
	port, err := localport.Reserve()
	if err != nil {
		return nil, err
	}
	return &Server{
		port: port, log: filepath.Join(dir, "postgres.log"),
		command: func() *exec.Cmd {
			cmd := exec.Command(binary, "-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port.Number()), "-c",
				"unix_socket_directories=")
			cmd.Dir = dir
			as(cmd)
			return cmd
		},
		ready: func(ctx context.Context) error { return pingPostgres(ctx, port.Addr()) },
		// This signal ends the server at once. In contrast to a killed server, it frees its shared memory.
		end:   syscall.SIGQUIT,
		close: func() error { return nil },
	}, nil
}

func pingPostgres(ctx context.Context, addr string) error {
	conn, err := pgx.Connect(ctx, PostgresURL(addr))
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx))
}
