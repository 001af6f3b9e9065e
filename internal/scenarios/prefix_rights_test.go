package scenarios_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// tenantRules are the rules that docs/operate/security.md gives a user with one Prefix, for each form of it: orders:
// and {orders}:.
func tenantRules(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate/security.md")
	Must(t, err)
	var blocks []string
	for _, after := range strings.Split(string(page), "```acl\n")[1:] {
		block, _, _ := strings.Cut(after, "```")
		blocks = append(blocks, block)
	}
	if len(blocks) != 3 {
		t.Fatalf("docs/operate/security.md has %d blocks of rules, want all, a prefix, a prefix with a hash tag",
			len(blocks))
	}
	_, others, _ := strings.Cut(blocks[0], "\n") // all but the keys
	return map[string][]string{
		"orders:":   strings.Fields(blocks[1] + others),
		"{orders}:": strings.Fields(blocks[2] + others),
	}
}

// tenant makes a user with these rules on the servers, and a Locker of it with a Prefix; both have orders replaced by
// name.
func tenant(t *testing.T, servers []*redistest.Server, name, prefix string, rules []string) *redlock.Locker {
	t.Helper()
	urls := make([]string, len(servers))
	for i, s := range servers {
		args := []any{"ACL", "SETUSER", name, "on", ">secret"}
		for _, rule := range rules {
			args = append(args, strings.ReplaceAll(rule, "orders", name))
		}
		Must(t, s.Client().Do(t.Context(), args...).Err())
		urls[i] = strings.Replace(s.URL(), "redis://", "redis://"+name+":secret@", 1)
	}
	l, err := redlock.Dial(t.Context(), urls, redlock.Options{Prefix: prefix})
	Must(t, err)
	t.Cleanup(func() { CloseLocker(t, l) })
	return l
}

func TestATenantsUserCanDoEverythingWithItsPrefixAndNothingElse(t *testing.T) {
	for prefix, rules := range tenantRules(t) {
		t.Run(prefix, func(t *testing.T) {
			servers := redistest.StartN(t, 3)
			theirs := strings.ReplaceAll(prefix, "orders", "payments")
			a, again := tenant(t, servers, "orders", prefix, rules), tenant(t, servers, "orders", prefix, rules)
			b := tenant(t, servers, "payments", theirs, rules)
			keys := []string{"42"}
			if strings.HasPrefix(prefix, "{") {
				keys = append(keys, "4{2}", "4}2", "{payments}")
			}
			for _, key := range keys {
				everyKind(t, servers, prefix, key, [2]*redlock.Locker{a, again})
			}
			for _, s := range servers {
				entries, err := s.Client().ACLLog(t.Context(), 10).Result()
				Must(t, err)
				for _, e := range entries {
					t.Errorf("%s was refused %s %s", e.Username, e.Reason, e.Object)
				}
			}
			if prefix == "orders:" {
				if err := Try(t, a, "4{2}", redlock.Fenced()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
					t.Errorf("a key with braces: %v", err)
				}
			}
			held := Take(t, b, "42", LongTTL, redlock.Fenced())
			trespass(t, servers, "orders", theirs)
			Must(t, held.Verify(t.Context()))
			Give(t, held)
		})
	}
}

// everyKind takes and releases locks of every kind on a key, and waits for such locks, with two Lockers of one tenant
// in turns.
func everyKind(t *testing.T, servers []*redistest.Server, prefix, key string, lockers [2]*redlock.Locker) {
	t.Helper()
	for i, opts := range [][]redlock.Option{
		{redlock.AutoRenew()},
		{redlock.Fenced()},
		{redlock.Published("here")},
		{redlock.Shared()},
		{redlock.Exclusive()},
		{redlock.Reentrant("me")},
		{redlock.AndKeys("other")},
		{redlock.MinHold(time.Millisecond)},
	} {
		held := Take(t, lockers[0], key, LongTTL)
		w := Wait(t, t.Context(), lockers[1], key, LongTTL, opts...)
		redistest.Eventually(t, Promptly, func() bool { return waitersOf(t, servers, prefix+key) > len(servers)/2 },
			"the waiter to queue up on a majority")
		redistest.Eventually(t, Promptly, func() bool { return Listening(t, servers) > 0 }, "the waiter to listen")
		published := Calls(t, servers, "publish")
		Give(t, held)
		lock := w.Get(t)
		// At least one master publishes: the masters that granted the lock and the masters that have the waiter in
		// their queues have one in common. The waiter leaves the other queues when it gets the lock, maybe before the
		// release has arrived there.
		redistest.Eventually(t, Promptly, func() bool { return Calls(t, servers, "publish") > published },
			"a master to notify the waiter")
		Must(t, lock.Extend(t.Context(), 2*LongTTL))
		Must(t, lock.Verify(t.Context()))
		if h, err := lockers[0].Holder(t.Context(), key); err != nil || h.ID != lock.ID() {
			t.Errorf("options %d: held by %+v, %v", i, h, err)
		}
		if lock.Token() > 0 && i == 1 {
			h, err := lock.Handover()
			Must(t, err)
			lock, err = lockers[0].Attach(t.Context(), h, LongTTL)
			Must(t, err)
		}
		Give(t, lock)
	}
}

// waitersOf counts the servers that have a waiter for a key in their queues. A position that is only reserved does
// not count.
func waitersOf(t *testing.T, servers []*redistest.Server, key string) (n int) {
	t.Helper()
	for _, s := range servers {
		if slices.ContainsFunc(s.Client().ZRange(t.Context(), single.QueueKey(key), 0, -1).Val(),
			func(member string) bool {
				return !strings.HasPrefix(member, "!") && !single.Reserved(member)
			}) {
			n++
		}
	}
	return n
}

// trespass tries to use the keys behind another tenant's Prefix, as a tenant's user, with a Locker and by hand.
func trespass(t *testing.T, servers []*redistest.Server, name, theirs string) {
	t.Helper()
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = strings.Replace(s.URL(), "redis://", "redis://"+name+":secret@", 1)
	}
	l, err := redlock.Dial(t.Context(), urls, redlock.Options{Prefix: theirs})
	Must(t, err)
	defer CloseLocker(t, l)
	for what, opt := range map[string]redlock.Option{
		"plain": redlock.AutoRenew(), "fenced": redlock.Fenced(), "shared": redlock.Shared(),
		"several": redlock.AndKeys("other"),
	} {
		if err := Try(t, l, "free", opt); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := l.Holder(t.Context(), "42"); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("Holder: %v", err)
	}
	client := redis.NewClient(&redis.Options{Addr: servers[0].Addr(), Username: name, Password: "secret"})
	defer client.Close()
	for _, command := range [][]any{
		{"get", theirs + "42"},
		{"zadd", single.QueueKey(theirs + "42"), 1, "me"},
		{"zrange", single.QueueKey(theirs + "42"), 0, -1},
		{"zadd", single.CounterKey(theirs + "42"), 1, "me"},
		{"del", single.CounterKey(theirs + "42")},
		{"psubscribe", single.ChannelPrefix + "*"},
		{"pubsub", "channels"},
		{"scan", 0},
	} {
		if err := client.Do(t.Context(), command...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("%v: %v, want NOPERM", command, err)
		}
	}
}
