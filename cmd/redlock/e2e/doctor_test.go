package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// set is three servers without faults, and the flags that tell the command about the servers.
type set struct {
	servers []*redistest.Server
	urls    []string
	master  string // the subject of the finding; by default the first master
}

// mistake is planted on real servers, one at a time.
type mistake struct {
	name     string
	plant    func(t *testing.T, s *set)
	severity string
	what     string
}

// mistakes are in the order of their severity, except the first.
var mistakes = []mistake{
	{"far away", speak(aSlowWay), "note", "It answers in "}, // which takes longest
	{"nothing is kept", config("appendonly", "no"), "unsafe", "A restart loses its data (persistence: none)"},
	{"only snapshots are kept", config("appendonly", "no", "save", "3600 1"), "unsafe", "A restart loses its data " +
		"(persistence: snapshots)"},
	{"locks are evicted", config("maxmemory-policy", "allkeys-lru", "maxmemory", "1gb"), "unsafe", "It evicts keys " +
		"when its memory is full (maxmemory-policy allkeys-lru)"},
	{"a replica is listed", beReplica, "unsafe", "It is a replica of 127.0.0.1:"},
	{"two addresses of one server", listTwice, "unsafe", "They are one server"},
	{"a clock that runs too fast", speak(aClockThatRuns()), "unsafe", "faster than this machine's"},

	{"fsync every second", config("appendfsync", "everysec"), "risk", "It answers before its data is on disk " +
		"(persistence: aof, fsync everysec)"},
	{"no fsync during rewrites", config("no-appendfsync-on-rewrite", "yes"), "risk", "fsync always but not during " +
		"rewrites"},
	{"it has a replica", haveReplica, "risk", "It has 1 replicas."},
	{"a Sentinel watches it", beWatched, "risk", "Sentinel watches it."},
	{"part of a Cluster", beCluster, "risk", "It is part of a Redis Cluster."},
	{"writes need replicas", config("min-replicas-to-write", "1"), "risk", "A lock could not be taken: NOREPLICAS"},
	{"memory nearly full", fill, "risk", "Its memory is full to"},
	{"an old version", speak(anOldVersion), "risk", "It is Redis 4."},
	{"a clock ahead", speak(aClockAhead), "risk", "Its clock is off by 1m0"},
	{"a wrong password", wrongPassword, "risk", "It does not let this client in: WRONGPASS"},
	{"a user without EVALSHA", user("-evalsha"), "risk", "This user may not do what a lock needs: NOPERM"},
	{"a master that is down", func(t *testing.T, s *set) {
		t.Helper()
		must(t, s.servers[0].Kill())
	}, "risk", "It can't be asked"},

	{
		"evicted as soon as there is a limit", config("maxmemory-policy", "volatile-ttl"), "note",
		"Its maxmemory-policy is volatile-ttl, though maxmemory is not set.",
	},
	{"a user for other keys", user("resetkeys", "~orders:*"), "note", "This user may only use certain keys"},
	{"a user who may not publish", user("resetchannels"), "note", "This user can't publish or subscribe"},
	{"a user who may not ask", user("-info", "-config"), "note", "It does not answer INFO, CONFIG GET."},
	{"an even number", oneMore, "note", "There are 4 masters."},
}

// config sets parameters of the first master.
func config(pairs ...string) func(t *testing.T, s *set) {
	return func(t *testing.T, s *set) {
		t.Helper()
		for pair := range slices.Chunk(pairs, 2) {
			tell(t, s.servers[0], "CONFIG", "SET", pair[0], pair[1])
		}
	}
}

// user lets the command in as a user without some rights.
func user(rules ...string) func(t *testing.T, s *set) {
	return func(t *testing.T, s *set) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		tell(t, s.servers[0], args...)
		s.urls[0] = "redis://app:pw@" + s.servers[0].Addr()
	}
}

// speak puts a proxy in front of the first master that changes its replies.
func speak(change func(line string) string) func(t *testing.T, s *set) {
	return func(t *testing.T, s *set) {
		t.Helper()
		s.urls[0] = liar(t, s.servers[0], change)
		s.master = strings.TrimPrefix(s.urls[0], "redis://")
	}
}

func beReplica(t *testing.T, s *set) {
	t.Helper()
	other := redistest.Start(t, redistest.WithAOF())
	tell(t, s.servers[0], "REPLICAOF", "127.0.0.1", other.Port())
}

func haveReplica(t *testing.T, s *set) {
	t.Helper()
	replica := redistest.Start(t)
	tell(t, replica, "REPLICAOF", "127.0.0.1", s.servers[0].Port())
	redistest.Eventually(t, patience, func() bool {
		return strings.Contains(s.servers[0].Client().Info(t.Context(), "replication").Val(), "connected_slaves:1")
	}, "the replica to be connected")
}

// listTwice lists the first master again under an address that does not look like its own.
func listTwice(t *testing.T, s *set) {
	t.Helper()
	s.urls[1] = liar(t, s.servers[0], func(line string) string { return line })
	s.master = s.servers[0].Addr() + ", " + strings.TrimPrefix(s.urls[1], "redis://")
}

func oneMore(t *testing.T, s *set) {
	t.Helper()
	s.urls = append(s.urls, redistest.Start(t, redistest.WithAOF()).URL())
	s.master = ""
}

// beWatched subscribes, which is the first step of a Sentinel.
func beWatched(t *testing.T, s *set) {
	t.Helper()
	sentinel := s.servers[0].Client().Subscribe(t.Context(), "__sentinel__:hello")
	t.Cleanup(func() { _ = sentinel.Close() })
	_, err := sentinel.Receive(t.Context())
	must(t, err)
}

// beCluster replaces the first master by a Cluster of one server.
func beCluster(t *testing.T, s *set) {
	t.Helper()
	cluster := redistest.Start(t, redistest.WithAOF(), redistest.WithArgs("--cluster-enabled", "yes"))
	tell(t, cluster, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	redistest.Eventually(t, patience, func() bool {
		return strings.Contains(cluster.Client().ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, "the cluster to be ready")
	s.urls[0], s.master = cluster.URL(), cluster.Addr()
}

// fill leaves five percent of memory free, which is more than the audit itself needs.
func fill(t *testing.T, s *set) {
	t.Helper()
	tell(t, s.servers[0], "SETRANGE", "ballast", 20<<20, "x")
	_, rest, _ := strings.Cut(s.servers[0].Client().Info(t.Context(), "memory").Val(), "used_memory:")
	used, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	must(t, err)
	tell(t, s.servers[0], "CONFIG", "SET", "maxmemory", used+used/20)
}

// secret must never be shown.
const secret = "wrong-and-secret"

func wrongPassword(t *testing.T, s *set) {
	t.Helper()
	tell(t, s.servers[0], "CONFIG", "SET", "requirepass", "right")
	s.urls[0] = "redis://:" + secret + "@" + s.servers[0].Addr()
}

func tell(t *testing.T, s *redistest.Server, args ...any) {
	t.Helper()
	must(t, s.Client().Do(t.Context(), args...).Err())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoctorFindsEveryPlantedMistake checks each set twice: before the mistake is planted, when the doctor must find
// nothing of it, and afterwards.
func TestDoctorFindsEveryPlantedMistake(t *testing.T) {
	t.Parallel()
	// The doctor would report a disk that takes a second for one fsync. Three sets of three servers are enough for one
	// disk.
	const atOnce = 3
	for i := range atOnce {
		t.Run(fmt.Sprintf("%d of %d", i+1, atOnce), func(t *testing.T) {
			t.Parallel()
			for n := i; n < len(mistakes); n += atOnce {
				t.Run(mistakes[n].name, mistakes[n].isFound)
			}
		})
	}
}

// isFound is the test of one mistake.
func (m *mistake) isFound(t *testing.T) {
	s := &set{servers: redistest.StartN(t, 3, redistest.WithAOF())}
	for _, server := range s.servers {
		s.urls = append(s.urls, server.URL())
	}
	s.master = s.servers[0].Addr()
	if status, healthy := s.document(t); status != 0 || healthy.Worst != "note" || len(healthy.about(m.what)) > 0 {
		t.Fatalf("before it is planted: status %d, %+v", status, healthy)
	}

	m.plant(t, s)
	status, got := s.document(t)
	m.isFoundIn(t, s, got)
	again, text := s.redlock(t, "doctor")
	m.isShownIn(t, s, text)
	strict, seen := s.document(t, "-strict")
	if seen.late && m.severity == "note" {
		strict = 0 // it fails because of a risk of this machine, not because of the planted mistake
	}
	want := map[string][3]int{"unsafe": {1, 1, 1}, "risk": {0, 0, 1}, "note": {0, 0, 0}}[m.severity]
	if statuses := [3]int{status, again, strict}; statuses != want {
		t.Errorf("exit status with -json, without, and with -strict: %d, want %d", statuses, want)
	}
}

// isFoundIn fails the test unless the mistake is found once, at the right place, and no other finding is as severe,
// except notes.
func (m *mistake) isFoundIn(t *testing.T, s *set, got auditDocument) {
	t.Helper()
	found := got.about(m.what)
	if len(found) != 1 || found[0].Severity != m.severity || found[0].Master != s.master || found[0].Why == "" ||
		found[0].Fix == "" {
		t.Errorf("found %+v; want one %s about %q: %q", found, m.severity, s.master, m.what)
	}
	if got.Worst != m.severity {
		t.Errorf("the worst is %q, want %q", got.Worst, m.severity)
	}
	for _, f := range got.Findings {
		if f.Severity != "note" && f.Severity == m.severity && !strings.Contains(f.What, m.what) {
			t.Errorf("found besides: %+v", f)
		}
	}
}

func (m *mistake) isShownIn(t *testing.T, s *set, text string) {
	t.Helper()
	heading := strings.ToUpper(m.severity) + ": " + s.master
	if s.master == "" {
		heading += "the set of masters"
	}
	if unwrapped := strings.Join(strings.Fields(text), " "); !strings.Contains(text, "\n"+heading+"\n") ||
		!strings.Contains(unwrapped, m.what) {
		t.Errorf("want %q and %q in:\n%s", heading, m.what, text)
	}
}

// auditDocument is the part of -json's output that scripts may rely on.
type auditDocument struct {
	Worst    string
	Findings []finding
	Masters  []struct{ Master string }
	late     bool // see forgetLate
}

type finding struct{ Severity, Master, What, Why, Fix string }

// about returns the findings with this text.
func (d *auditDocument) about(what string) []finding {
	return slices.DeleteFunc(slices.Clone(d.Findings), func(f finding) bool { return !strings.Contains(f.What, what) })
}

// forgetLate drops the findings that a server of this machine answers late, because on a busy machine it does.
func (d *auditDocument) forgetLate(s *set) {
	all := len(d.Findings)
	d.Findings = slices.DeleteFunc(d.Findings, func(f finding) bool {
		return strings.HasPrefix(f.What, "It answers in ") &&
			slices.ContainsFunc(s.servers, func(o *redistest.Server) bool { return o.Addr() == f.Master })
	})
	if d.late = len(d.Findings) < all; !d.late {
		return
	}
	for _, severity := range []string{"note", "risk", "unsafe"} {
		if slices.ContainsFunc(d.Findings, func(f finding) bool { return f.Severity == severity }) {
			d.Worst = severity
		}
	}
}

// document runs `redlock doctor -json` and returns the status and the output, without findings about slow answers.
func (s *set) document(t *testing.T, flags ...string) (status int, doc auditDocument) {
	t.Helper()
	status, raw := s.redlock(t, append([]string{"doctor", "-json"}, flags...)...)
	if err := json.Unmarshal([]byte(raw), &doc); err != nil || len(doc.Masters) != len(s.urls) {
		t.Fatalf("%v, %d masters of %d, in:\n%s", err, len(doc.Masters), len(s.urls), raw)
	}
	doc.forgetLate(s)
	return status, doc
}

// redlock runs the command, which must print nothing on standard error and no secret.
func (s *set) redlock(t *testing.T, args ...string) (status int, stdout string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "redlock", args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = []string{"LANG=C", "REDLOCK_MASTERS=" + strings.Join(s.urls, ",")}
	for _, name := range []string{"PATH", "TESTSCRIPT_COVER_DIR", "GOCOVERDIR", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	cmd.Dir = t.TempDir()
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if errs.Len() > 0 || strings.Contains(out.String(), secret) {
		t.Errorf("%q says on standard error:\n%s\nand on standard output:\n%s", args, errs.String(), out.String())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestAServerThatIsLateIsNoPlantedMistake(t *testing.T) {
	t.Parallel()
	s := &set{servers: redistest.StartN(t, 1)}
	late := finding{Severity: "risk", Master: s.servers[0].Addr(), What: "It answers in 3s."}
	far, note := late, finding{Severity: "note", What: "something else"}
	far.Master = "somewhere:1"
	d := auditDocument{Worst: "risk", Findings: []finding{late, note}}
	if d.forgetLate(s); !d.late || d.Worst != "note" || len(d.Findings) != 1 {
		t.Errorf("%+v, want the note alone", d)
	}
	d = auditDocument{Worst: "risk", Findings: []finding{far, note}}
	if d.forgetLate(s); d.late || d.Worst != "risk" || len(d.Findings) != 2 {
		t.Errorf("%+v, want the planted findings to stay", d)
	}
}
