package single_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// leastRights are the rules in docs/operate/security.md.
func leastRights(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/operate/security.md")
	must(t, err)
	_, block, found := strings.Cut(string(page), "```acl\n")
	block, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		t.Fatal("docs/operate/security.md has no block of rules")
	}
	return strings.Fields(block)
}

// grantedCommands are the commands that docs/operate/security.md lists.
func grantedCommands(t *testing.T) []string {
	t.Helper()
	var commands []string
	for _, rule := range leastRights(t) {
		if command, found := strings.CutPrefix(rule, "+"); found {
			commands = append(commands, command)
		}
	}
	return commands
}

// TestEverythingWorksWithTheRightsThatTheDocumentationGives runs every other test of this package again, on servers
// that give TCP clients only these rights. Tests choose their own keys, so all keys are allowed, except that under
// the library's own prefix only the documented names are. Some tests need additional rights: for other databases, a
// Cluster, the restart guard, and BLPOP, which one test uses to keep a connection busy.
func TestEverythingWorksWithTheRightsThatTheDocumentationGives(t *testing.T) {
	redistest.Need(t)
	rules := slices.DeleteFunc(leastRights(t), func(rule string) bool { return rule == "~orders:*" })
	rules = append(rules, "~[^r]*", "+select", "+cluster|slots", "+command", "~redlock:guard", "+info", "+config|get",
		"+blpop")
	cases := map[string]struct {
		rules []string
		run   string
		fails bool
	}{
		"all tests": {rules, ".", false},
		"without one of them": {
			append(slices.Clone(rules), "-evalsha"), "TestARepeatedAcquireRecognisesItsOwnOwner", true,
		},
		"without the queues": {
			slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == "~redlock:queue:*" }),
			"Queue|Waiter", true,
		},
		"without the namespace": {
			slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == "~[^r]*" }), "TestARepeated", true,
		},
	}
	waits := make(map[string]func() ([]byte, error))
	for name, c := range cases {
		waits[name] = underRights(t, c.rules, c.run)
	}
	t.Parallel() // the child runs during the tests that are not parallel
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := waits[name]()
			if failed := err != nil; failed != c.fails {
				t.Errorf("failed: %t, want %t: %v\n%s", failed, c.fails, err, out[:min(len(out), 4000)])
			}
			if c.fails && !bytes.Contains(out, []byte("NOPERM")) {
				t.Errorf("it failed for another reason:\n%s", out[:min(len(out), 4000)])
			}
		})
	}
}

// underRights starts tests of this package on servers with a user that has only these rights. It returns a function
// that waits for the tests.
func underRights(t *testing.T, rules []string, run string) func() ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+run, "-test.timeout=5m", "-test.short",
		"-test.skip=^TestEverythingWorksWithTheRights|^Fuzz|^Benchmark")
	cmd.Env = append(os.Environ(), "REDISTEST_USER="+strings.Join(rules, " "), "CI=true") // a skipped test fails
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	wait := sync.OnceValue(cmd.Wait)
	t.Cleanup(func() { _ = wait() }) // its context has ended
	return func() ([]byte, error) {
		err := wait()
		return out.Bytes(), err
	}
}

// everyOperation sends every request that the library uses, for one key.
func everyOperation(t *testing.T, m *single.Master, key string) {
	t.Helper()
	with := func(token uint64, r single.Request) single.Request {
		r.Token = token
		return r
	}
	waits := on(key, by("w", 0, acquire(key, "other", time.Minute)))
	me, second, other := on(key, held("r:me:1")), on(key, held("r:me:3")), on(key, by("w", 0, held("w:other:2")))
	send := func(requests ...single.Request) {
		for _, r := range requests {
			_, _ = m.Ask(t.Context(), r) // the server logs forbidden commands
		}
	}
	send(acquire(key, "me", time.Minute), waits, polite(by("x", 0, acquire(key, "third", time.Minute))),
		extend(key, "me", time.Minute, true), inspect(key), by("y", 0, reserving(time.Millisecond, release(key, "me"))),
		polite(by("z", 0, fenced(key, "me", 7))), raise(key, "me", 9), with(9, extend(key, "me", time.Minute, false)),
		transfer(key, "next", "me", 9), release(key, "next"), acquire(key, "me", time.Minute), waits,
		keeping(key, "me", "kept"))
	m.Client().Del(t.Context(), key)
	send(me, second, other, repairing(me), inspect(key), as(single.Release, second), as(single.Release, me))
	m.Do(t.Context(), releases(key+" me", key+" other"))
	listenOnce(t, m)
}

// listenOnce subscribes as a waiter does and pings. It ends without an error if a command is not permitted.
func listenOnce(t *testing.T, m *single.Master) {
	t.Helper()
	sub := m.Client().Subscribe(t.Context(), single.ChannelPrefix+"w")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err == nil {
		_ = sub.Ping(t.Context())
		_, _ = sub.ReceiveTimeout(t.Context(), patience)
	}
	_ = m.Client().Ping(t.Context()).Err()
}

// refusals lists the commands that the server refused, as its ACL LOG names them.
func refusals(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	entries, err := s.Client().ACLLog(t.Context(), 128).Result()
	must(t, err)
	var objects []string
	for _, e := range entries {
		objects = append(objects, e.Reason+" "+e.Object)
	}
	return objects
}

func TestEveryRightThatTheDocumentationGivesIsNeeded(t *testing.T) {
	t.Parallel()
	rules := leastRights(t)
	for i := -1; i < len(rules); i++ {
		fewer, name := slices.Clone(rules), "all of them"
		if i >= 0 {
			if name = rules[i]; strings.HasPrefix(name, "reset") || strings.HasPrefix(name, "-") {
				continue
			}
			fewer = slices.Delete(fewer, i, i+1)
		}
		server := redistest.Start(t, redistest.WithUser(fewer...))
		everyOperation(t, dial(t, server.URL()), "orders:42")
		refused := refusals(t, server)
		if name == "all of them" && len(refused) > 0 {
			t.Errorf("with %s refused: %q", name, refused)
		}
		if i >= 0 && len(refused) == 0 {
			t.Errorf("nothing misses %s", name)
		}
	}
}

func TestARestrictedUserReachesOnlyItsOwnKeys(t *testing.T) {
	narrow := slices.Clone(leastRights(t))
	for i, rule := range narrow {
		if prefix, found := strings.CutSuffix(rule, ":*"); found && strings.HasPrefix(rule, "~redlock:") {
			narrow[i] = prefix + ":{orders:*"
		}
	}
	for name, rules := range map[string][]string{"documented": leastRights(t), "narrow": narrow} {
		server := redistest.Start(t, redistest.WithUser(rules...))
		m := dial(t, server.URL())
		everyOperation(t, m, "orders:42")
		if refused := refusals(t, server); len(refused) > 0 {
			t.Errorf("%s: its own key: %q", name, refused)
		}
		for _, r := range []single.Request{
			acquire("payments:1", "me", time.Minute), release("payments:1", "me"), inspect("payments:1"),
		} {
			if _, err := m.Ask(t.Context(), r); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Errorf("%s: operation %d on another's key: %v, want NOPERM", name, r.Op, err)
			}
		}
		for _, command := range []string{
			"flushall", "keys *", "config set maxmemory 1", "script flush", "shutdown nosave", "acl list",
		} {
			var args []any
			for word := range strings.FieldsSeq(command) {
				args = append(args, word)
			}
			if err := m.Client().Do(t.Context(), args...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Errorf("%s: %s: %v, want NOPERM", name, command, err)
			}
		}
		if name == "narrow" {
			if err := m.Client().ZAdd(t.Context(), "redlock:queue:{payments:1}", redis.Z{Member: "me"}).Err(); err ==
				nil {
				t.Error("narrow patterns reach another's queue")
			}
		}
	}
}

// TestTheDocumentedCommandsAreThoseOfTheScripts finds commands that a new script needs and the documentation lacks.
func TestTheDocumentedCommandsAreThoseOfTheScripts(t *testing.T) {
	rules := leastRights(t)
	for name, program := range single.Programs() {
		for _, call := range strings.Split(program[0], "call('")[1:] {
			command, _, _ := strings.Cut(call, "'")
			if rule := fmt.Sprintf("+%s", strings.ToLower(command)); !slices.Contains(rules, rule) {
				t.Errorf("%s.lua needs %s", name, rule)
			}
		}
	}
}
