package audit_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// planted is a mistake on a real server, and the finding that it must cause.
type planted struct {
	name     string
	args     []string                                      // of the server
	password string                                        // likewise
	plant    func(t *testing.T, s *redistest.Server)       // after its start
	options  func(s *redistest.Server, opt *redis.Options) // of the client
	severity audit.Severity
	what     string
}

// run runs a command from outside.
func run(t *testing.T, s *redistest.Server, args ...any) {
	t.Helper()
	if err := s.Client().Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// user creates a user with all rights except some.
func user(rules ...string) func(t *testing.T, s *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		run(t, s, args...)
	}
}

// joinCluster makes a cluster-enabled server a whole Cluster.
func joinCluster(t *testing.T, s *redistest.Server) {
	t.Helper()
	run(t, s, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	redistest.Eventually(t, 10*time.Second, func() bool {
		return strings.Contains(s.Client().ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, "the cluster to be ready")
}

func asUser(_ *redistest.Server, opt *redis.Options) { opt.Username, opt.Password = "app", "pw" }

var mistakes = []planted{
	{
		name: "no persistence and no guard", args: []string{"--appendonly", "no"},
		severity: audit.Unsafe, what: "A restart loses its data (persistence: none)",
	},
	{
		name: "snapshots only", args: []string{"--appendonly", "no", "--save", "3600 1"},
		severity: audit.Unsafe, what: "A restart loses its data (persistence: snapshots)",
	},
	{
		name: "fsync every second", args: []string{"--appendfsync", "everysec"},
		severity: audit.Risk, what: "It answers before its data is on disk (persistence: aof, fsync everysec)",
	},
	{
		name: "no fsync during rewrites", args: []string{"--no-appendfsync-on-rewrite", "yes"},
		severity: audit.Risk, what: "but not during rewrites",
	},
	{
		name: "eviction", args: []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"},
		severity: audit.Unsafe, what: "maxmemory-policy volatile-ttl",
	},
	{
		name: "eviction as soon as there is a limit", args: []string{"--maxmemory-policy", "allkeys-lru"},
		severity: audit.Note, what: "allkeys-lru, though maxmemory is not set",
	},
	{
		name: "memory nearly full",
		plant: func(t *testing.T, s *redistest.Server) {
			t.Helper()
			// Large enough that five percent is more than the check itself needs.
			run(t, s, "SETRANGE", "ballast", 20<<20, "x")
			_, rest, _ := strings.Cut(s.Client().Info(t.Context(), "memory").Val(), "used_memory:")
			used, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
			must(t, err)
			run(t, s, "CONFIG", "SET", "maxmemory", used+used/20)
		},
		severity: audit.Risk, what: "Its memory is full to",
	},
	{
		name: "a Sentinel watches it",
		plant: func(t *testing.T, s *redistest.Server) {
			t.Helper()
			sentinel := s.Client().Subscribe(t.Context(), "__sentinel__:hello") // the first step of a Sentinel
			t.Cleanup(func() { _ = sentinel.Close() })
			if _, err := sentinel.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		severity: audit.Risk, what: "Sentinel watches it.",
	},
	{
		name: "part of a Cluster", args: []string{"--cluster-enabled", "yes"},
		plant:    joinCluster,
		severity: audit.Risk, what: "It is part of a Redis Cluster.",
	},
	{
		name: "a user who may not run scripts", plant: user("-evalsha"), options: asUser,
		severity: audit.Risk, what: "This user may not do what a lock needs",
	},
	{
		name: "a user who may not do what a script does", plant: user("-del"), options: asUser,
		severity: audit.Risk, what: "This user may not do what a lock needs",
	},
	{
		name: "a user for other keys", plant: user("resetkeys", "~orders:*"), options: asUser,
		severity: audit.Note, what: "This user may only use certain keys",
	},
	{
		name: "a user who may not publish", plant: user("resetchannels"), options: asUser,
		severity: audit.Note, what: "This user can't publish or subscribe",
	},
	{
		name: "a user who may not ask", plant: user("-info", "-config"), options: asUser,
		severity: audit.Note, what: "It does not answer INFO, CONFIG GET.",
	},
	{
		name: "writes need replicas that there are not", args: []string{"--min-replicas-to-write", "1"},
		severity: audit.Risk, what: "A lock could not be taken: NOREPLICAS",
	},
	{
		name: "a wrong password", password: "right",
		options:  func(_ *redistest.Server, opt *redis.Options) { opt.Password = "wrong" },
		severity: audit.Risk, what: "It does not let this client in: WRONGPASS",
	},
	{
		name: "no password", password: "right",
		severity: audit.Risk, what: "It does not let this client in: NOAUTH",
	},
	{
		name: "a master far away",
		options: func(_ *redistest.Server, opt *redis.Options) {
			opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return farConn{conn}, err
			}
		},
		severity: audit.Note, what: "It answers in ",
	},
	{
		name:     "a master that is down",
		plant:    func(_ *testing.T, s *redistest.Server) { s.Kill() },
		severity: audit.Risk, what: "It can't be asked",
	},
}

// farConn takes its time.
type farConn struct{ net.Conn }

func (c farConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	<-time.After(60 * time.Millisecond)
	return n, err
}

func TestHazard33EveryPlantedMistakeIsFound(t *testing.T) {
	t.Parallel()
	for _, p := range mistakes {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.WithAOF(), redistest.WithArgs(p.args...),
				redistest.WithPassword(p.password))
			if p.plant != nil {
				p.plant(t, s)
			}
			opt := &redis.Options{Addr: s.Addr()}
			if p.options != nil {
				p.options(s, opt)
			}
			got := look(t, among(t, masterOf(t, opt)), redlock.Options{})
			wants(t, got, p.severity, s.Addr(), p.what)
		})
	}
}
