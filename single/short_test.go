package single_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// The scripts for shared keys have a short way for the usual case. A case that differs in one point must go the long
// way. Here each case lacks exactly one condition of the short way.
func TestUnusualSharedKeysDoNotTakeTheShortWay(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const hour = 3_600_000
	now := time.Now().UnixMilli()
	mark := redis.Z{Score: single.LeastScore, Member: "redlock:holds"}
	mine := redis.Z{Score: float64(now + hour), Member: "w:me:1"}
	const wrong = "WRONGTYPE"
	for name, c := range map[string]struct {
		there   []redis.Z
		release string // the result, in the form of [told]; then the rest
		left    map[string]float64
		extend  string
	}{
		"the usual case": {[]redis.Z{mark, mine}, "granted, 0 holds", nil, "granted, 0 holds"},
		"no mark":        {[]redis.Z{mine}, wrong, scores(mine), wrong},
		"a mark too high": {
			[]redis.Z{{Score: 5, Member: "redlock:holds"}, mine},
			wrong,
			scores(redis.Z{Score: 5, Member: "redlock:holds"}, mine), wrong,
		},
		"another one's mark": {
			[]redis.Z{{Score: single.LeastScore, Member: "queue"}, mine},
			wrong,
			scores(redis.Z{Score: single.LeastScore, Member: "queue"}, mine), wrong,
		},
		"somebody else's hold": {
			[]redis.Z{mark, {Score: mine.Score, Member: "w:other:1"}},
			"refused by other",
			scores(mark, redis.Z{Score: mine.Score, Member: "w:other:1"}), "refused by other",
		},
		"another hold of mine": {
			[]redis.Z{mark, {Score: mine.Score, Member: "w:me:2"}},
			"refused by me",
			scores(mark, redis.Z{Score: mine.Score, Member: "w:me:2"}), "refused by ",
		},
		"two holds": {
			[]redis.Z{mark, mine, {Score: mine.Score + 1, Member: "w:me:2"}},
			"granted, 1 holds",
			scores(mark, redis.Z{Score: mine.Score + 1, Member: "w:me:2"}), "granted, 0 holds",
		},
		"a claim": {
			[]redis.Z{mark, {Score: -mine.Score, Member: "c:w"}, mine},
			"granted, 0 holds",
			scores(mark, redis.Z{Score: -mine.Score, Member: "c:w"}), "granted, 0 holds",
		},
		"a hold that has ended": {
			[]redis.Z{mark, {Score: float64(now - hour), Member: "w:me:1"}}, "granted, 0 holds", nil, "refused by ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			put := func() {
				must(t, server.Client().FlushDB(t.Context()).Err())
				must(t, server.Client().ZAdd(t.Context(), "key", c.there...).Err())
				must(t, server.Client().PExpire(t.Context(), "key", 2*time.Hour).Err())
			}
			put()
			if got := told(m.Ask(t.Context(), as(single.Release, writer("me", "1", 0)))); got != c.release {
				t.Errorf("release: %s, want %s", got, c.release)
			}
			if left := content(t, server); !maps.Equal(left, c.left) {
				t.Errorf("after the release there is %v, want %v", left, c.left)
			}
			put()
			longer := mine.Score + 8*hour
			if got := told(m.Ask(t.Context(), as(single.Extend, writer("me", "1", 9*time.Hour)))); got != c.extend {
				t.Errorf("extend: %s, want %s", got, c.extend)
			} else if got[0] == 'g' {
				for member, score := range scores(c.there...) {
					if left := content(t, server)[member]; left != score && (member != "w:me:1" || left < longer) {
						t.Errorf("after the extension %s is at %f, before at %f", member, left, score)
					}
				}
				if left := life(t, server, "key"); !about(left, 9*time.Hour) {
					t.Errorf("after the extension the key lives for %v", left)
				}
				put()
				if told(m.Ask(t.Context(), as(single.Extend, writer("me", "1", time.Minute)))) != c.extend ||
					content(t, server)["w:me:1"] != mine.Score {
					t.Errorf("a shorter extension has moved the hold: %v", content(t, server))
				}
				if left := life(t, server, "key"); !about(left, 2*time.Hour) {
					t.Errorf("after a shorter extension the key lives for %v", left)
				}
			} else if left := content(t, server); !maps.Equal(left, scores(c.there...)) {
				t.Errorf("after an extension that failed there is %v, before %v", left, c.there)
			}
		})
	}
}

// The key of a hold may have lost its expiry (PERSIST), or end before the hold does. An extension of this hold, or of
// another one, then keeps the key.
func TestAnExtensionLetsASharedKeyLiveAsLongAsItsHolds(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for name, disturb := range map[string]func() error{
		"no end":    func() error { return server.Client().Persist(t.Context(), "key").Err() },
		"early end": func() error { return server.Client().PExpire(t.Context(), "key", time.Minute).Err() },
	} {
		for _, extended := range []string{"1", "2"} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			ask(t, m, writer("me", "1", time.Hour))
			ask(t, m, writer("me", "2", time.Minute))
			must(t, disturb())
			ask(t, m, as(single.Extend, writer("me", extended, 2*time.Minute)))
			if left := life(t, server, "key"); !about(left, time.Hour) {
				t.Errorf("%s, hold %s extended: the key lives for %v, the first hold for an hour", name, extended, left)
			}
		}
	}
}

// told describes a reply in words.
func told(reply single.Reply, err error) string {
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return "WRONGTYPE"
	case err != nil:
		return err.Error()
	case reply.Outcome == single.Granted:
		return fmt.Sprintf("granted, %d holds", reply.Token)
	default:
		return "refused by " + reply.Holder
	}
}

func scores(members ...redis.Z) map[string]float64 {
	all := make(map[string]float64, len(members))
	for _, z := range members {
		all[z.Member.(string)] = z.Score
	}
	return all
}

// content returns the members of the sorted set at the key.
func content(tb testing.TB, s *redistest.Server) map[string]float64 {
	tb.Helper()
	members, err := s.Client().ZRangeWithScores(tb.Context(), "key", 0, -1).Result()
	must(tb, err)
	return scores(members...)
}
