package single_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// behind is a server that sends one reply too many, stray, when it gets a bundle of two locks with two keys each.
// From then on each command gets the reply of the command before, and the reply to the last command never comes.
// answer gives the replies, after the replies of a usual server.
func behind(t *testing.T, stray string, answer func(words []string) string) *odd {
	t.Helper()
	var mu sync.Mutex
	owed, late := "", false
	return oddServer(t, func(_ int, words []string) string {
		mu.Lock()
		defer mu.Unlock()
		reply := answer(words)
		if strings.HasPrefix(strings.ToLower(words[0]), "eval") && words[2] == "8" && !late {
			late, owed = true, reply
			return stray
		}
		if !late {
			return reply
		}
		if reply == "" {
			reply = usual("odd", words)
		}
		owed, reply = reply, owed
		return reply
	})
}

// grantedNothing fails if any call of the batch counts as answered. A call with an unknown result must say so.
func grantedNothing(t *testing.T, m *single.Master, of ...string) {
	t.Helper()
	batch := several(single.Acquire, of...)
	m.Do(within(t, patience), batch)
	for i, c := range batch {
		if c.Err == nil || !c.Unsure() {
			t.Errorf("call %d: %+v, %v, unsure %t", i, c.Reply, c.Err, c.Unsure())
		}
	}
}

const everybodyGranted = "*2\r\n:1\r\n:1\r\n"

// waysTo returns masters with own connections, with own connections and a guard that asks its questions behind the
// first batch, and with a user's client.
func waysTo(t *testing.T, server *odd) map[string]*single.Master {
	t.Helper()
	guarded, err := single.Open(&redis.Options{Addr: server.addr}, single.Options{RestartGuard: time.Second})
	must(t, err)
	t.Cleanup(func() { must(t, guarded.Close()) })
	return map[string]*single.Master{
		"own":     dial(t, "redis://"+server.addr),
		"guarded": guarded,
		"brought": over(t,
			redis.NewClient(&redis.Options{
				Addr: server.addr, ContextTimeoutEnabled: true, DisableIdentity: true, Protocol: 2,
			})),
	}
}

// A bundle's reply in the place of the last command's reply shows that the replies are misaligned, whatever the reply
// and the kind of client.
func TestHazard95ASurplusReplyIsNoticedByTheRepliesBehindIt(t *testing.T) {
	for name, own := range map[string]string{
		"held": "*2\r\n:-1\r\n:-1\r\n", "forgotten": "-NOSCRIPT No matching script.\r\n", "full": "-OOM command not " +
			"allowed\r\n", "busy": "-BUSY Redis is busy\r\n",
		"about somebody named ping": "-ERR 'ping'\r\n",
	} {
		for _, way := range []string{"own", "guarded", "brought"} {
			t.Run(name+", "+way, func(t *testing.T) {
				server := behind(t, everybodyGranted, func(words []string) string {
					if strings.HasPrefix(strings.ToLower(words[0]), "eval") {
						return own
					}
					return guardAnswer(words)
				})
				grantedNothing(t, waysTo(t, server)[way], "a,b me", "c,d me")
			})
		}
	}
}

// After a reply that is impossible for a bundle, nothing counts either.
func TestHazard95AnImpossibleReplyDiscardsTheRestOfItsBatch(t *testing.T) {
	for _, stray := range []string{"*1\r\n:1\r\n", "*2\r\n+a\r\n+b\r\n"} {
		for _, way := range []string{"own", "brought"} {
			t.Run(way, func(t *testing.T) {
				server := behind(t, stray, func(words []string) string {
					if strings.HasPrefix(strings.ToLower(words[0]), "eval") && words[2] == "8" {
						return everybodyGranted
					}
					if strings.HasPrefix(strings.ToLower(words[0]), "eval") {
						return "-WRONGTYPE a list of somebody else is no lock\r\n"
					}
					return guardAnswer(words)
				})
				grantedNothing(t, waysTo(t, server)[way], "a,b me", "c,d me", "e,f,g me")
			})
		}
	}
}

// A user without the right to PING uses the answers as they are. So does a user with no right to any command.
func TestAUserWithoutTheRightToPingGetsBundles(t *testing.T) {
	server := redistest.Start(t)
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "on", "nopass", "~*", "&*", "+@all", "-ping").
		Err())
	for name, m := range map[string]*single.Master{
		"own":     dial(t, "redis://some:any@"+server.Addr()),
		"brought": over(t, redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "some", Password: "any"})),
	} {
		for _, op := range []single.Op{single.Acquire, single.Release} {
			batch := several(op, "a,b me", "c,d me")
			if m.Do(t.Context(), batch); said(batch) != "granted granted" {
				t.Errorf("%s: %s, %v", name, said(batch), batch[0].Err)
			}
		}
	}
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "-@all", "+hello", "+auth").Err())
	batch := several(single.Acquire, "a,b me", "c,d me")
	if dial(t, "redis://some:any@"+server.Addr()).Do(t.Context(), batch); said(batch) != "NOPERM NOPERM" {
		t.Errorf("a user without any right: %s", said(batch))
	}
}

// Each of two selectors allows some of a lock's keys, and neither allows all. Keys that were set one by one can be
// removed one by one.
func TestAUserWithTwoSelectorsLeavesNothing(t *testing.T) {
	server := redistest.Start(t)
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "on", "nopass", "~*", "&*", "+@all", "-set",
		"-del",
		"(+set +del ~a:*)", "(+set +del ~b:*)").Err())
	m := dial(t, "redis://some:any@"+server.Addr())
	batch := several(single.Acquire, "a:1,b:1,theirs me")
	m.Do(t.Context(), batch)
	if n := server.Client().Exists(t.Context(), "a:1", "b:1", "theirs").Val(); batch[0].Err == nil || n > 0 {
		t.Errorf("%v, and %d keys of the lock that was refused are there", batch[0].Err, n)
	}
	for _, of := range [][]string{{"a:1,b:1 me"}, {"a:1,b:1 me", "a:2,b:2 me"}} {
		for _, op := range []single.Op{single.Acquire, single.Release} {
			batch := several(op, of...)
			m.Do(t.Context(), batch)
			for _, c := range batch {
				if c.Err != nil || c.Reply.Outcome != single.Granted {
					t.Errorf("op %d of %d locks: %+v, %v", op, len(of), c.Reply, c.Err)
				}
			}
		}
		if left := contents(t, server); len(left) > 0 {
			t.Errorf("%d locks left %v", len(of), left)
		}
	}
}
