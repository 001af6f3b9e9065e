package single_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

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

// After a reply with too few results, or with one result for all, it is unknown which calls it answers.
func TestOnlyItsOwnResultsAnswerABundle(t *testing.T) {
	for _, reply := range []string{
		"*1\r\n:1\r\n", "*0\r\n", ":1\r\n", ":3\r\n", ":0\r\n", "+OK\r\n",
		"*2\r\n:1\r\n", "*2\r\n+OK\r\n+OK\r\n", "*2\r\n:0\r\n:7\r\n",
	} {
		server := oddServer(t, func(_ int, words []string) string {
			// keys: those of two calls, each with its queue
			if strings.HasPrefix(words[0], "eval") && (words[2] == "4" || words[2] == "8") {
				return reply
			}
			return ""
		})
		for name, batch := range map[string][]*single.Call{
			"acquisitions":        several(single.Acquire, "a,b me", "c,d me"),
			"releases":            several(single.Release, "a,b me", "c,d me"),
			"releases of one key": releases("a me", "b me"),
		} {
			if name == "releases of one key" && reply == ":1\r\n" {
				continue // which says that all of them are done
			}
			dial(t, "redis://"+server.addr).Do(within(t, short), batch)
			for i, c := range batch {
				if name != "acquisitions" && c.Err == nil && c.Reply.Outcome == single.Refused {
					continue // that a key is not there is nothing to be unsure of
				}
				if c.Err == nil || !c.Unsure() || c.Reply.Outcome != single.Refused {
					t.Errorf("%q: call %d of %s: %+v, %v, sent %t", reply, i, name, c.Reply, c.Err, c.Sent)
				}
			}
		}
	}
}

// A master that does not answer may have released all keys.
func TestABundleWithoutAnAnswerIsUnsure(t *testing.T) {
	server := redistest.Start(t)
	m := direct(t, &redis.Options{Addr: server.Addr()}, 1)
	grants(t, m, acquire("a", "me", time.Minute))
	must(t, server.Pause())
	defer func() { must(t, server.Resume()) }()
	for _, c := range send(t, m, short, release("a", "me"), release("b", "me")) {
		if c.Err == nil || !c.Unsure() || c.Reply.Outcome != single.Refused {
			t.Errorf("%+v, %v, sent %t", c.Reply, c.Err, c.Sent)
		}
	}
}

// A single bundle is one command and has as many votes as calls. A surplus reply must not be taken for its reply.
func TestHazard95ASurplusReplyDoesNotGrantABundle(t *testing.T) {
	server := oddServer(t, func(_ int, words []string) string {
		if strings.HasPrefix(words[0], "eval") && words[2] == "8" { // keys: that of two locks
			return "*2\r\n:1\r\n:1\r\n" // another batch's reply
		}
		if strings.EqualFold(words[0], "ping") { // its own comes later
			return "*2\r\n:-1\r\n:-1\r\n+PONG\r\n"
		}
		return ""
	})
	batch := several(single.Acquire, "a,b me", "c,d me")
	dial(t, "redis://"+server.addr).Do(within(t, patience), batch)
	for _, c := range batch {
		if c.Err == nil || !c.Unsure() {
			t.Errorf("%+v, %v, unsure %t", c.Reply, c.Err, c.Unsure())
		}
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
