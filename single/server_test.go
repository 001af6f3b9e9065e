package single_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// value reads a string key; "" when it is not there.
func value(tb testing.TB, s *redistest.Server, key string) string {
	tb.Helper()
	got, err := s.Client().Get(tb.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return got
}

// life reads how long a key will live; negative when it is not there or never expires.
func life(tb testing.TB, s *redistest.Server, key string) time.Duration {
	tb.Helper()
	got, err := s.Client().PTTL(tb.Context(), key).Result()
	must(tb, err)
	return got
}

// lives fails the test unless a key will live for this long.
func lives(tb testing.TB, s *redistest.Server, key string, want time.Duration) {
	tb.Helper()
	if got := life(tb, s, key); !about(got, want) {
		tb.Errorf("%s lives for %v, want %v", key, got, want)
	}
}

// exists reports that a key is there.
func exists(tb testing.TB, s *redistest.Server, key string) bool {
	tb.Helper()
	n, err := s.Client().Exists(tb.Context(), key).Result()
	must(tb, err)
	return n == 1
}

// serverNow is the server's time.
func serverNow(tb testing.TB, s *redistest.Server) time.Time {
	tb.Helper()
	now, err := s.Client().Time(tb.Context()).Result()
	must(tb, err)
	return now
}

// setMarked adds to a sorted set as the scripts make them.
func setMarked(tb testing.TB, s *redistest.Server, key string, more ...redis.Z) {
	tb.Helper()
	must(tb,
		s.Client().ZAdd(tb.Context(), key,
			append(more, redis.Z{Score: single.LeastScore, Member: single.Mark(key)})...).Err())
}

// members reads a sorted set, without the mark.
func members(tb testing.TB, s *redistest.Server, key string) []redis.Z {
	tb.Helper()
	zs, err := s.Client().ZRangeWithScores(tb.Context(), key, 0, -1).Result()
	must(tb, err)
	if len(zs) > 0 && zs[0].Member == single.Mark(key) {
		return zs[1:]
	}
	return zs
}

// names reads the members of a sorted set in their order, without the mark.
func names(tb testing.TB, s *redistest.Server, key string) []string {
	tb.Helper()
	var all []string
	for _, z := range members(tb, s, key) {
		all = append(all, z.Member.(string))
	}
	return all
}

// has fails the test unless a sorted set has these members in this order, and the mark.
func has(tb testing.TB, s *redistest.Server, key string, want ...string) {
	tb.Helper()
	if got := names(tb, s, key); !slices.Equal(got, want) {
		tb.Errorf("%s has %q, want %q", key, got, want)
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

// contents is all data of a server, except times.
func contents(tb testing.TB, s *redistest.Server) map[string]string {
	tb.Helper()
	all, err := s.Client().Keys(tb.Context(), "*").Result()
	must(tb, err)
	found := make(map[string]string)
	for _, key := range all {
		if s.Client().Type(tb.Context(), key).Val() == "zset" {
			members := names(tb, s, key)
			if !strings.HasPrefix(key, single.QueuePrefix) {
				slices.Sort(members) // claims have an end each, which depends on when they were made
			}
			found[key] = strings.Join(members, " ")
		} else {
			found[key] = value(tb, s, key)
		}
	}
	return found
}

// stored returns the data of a server under a key: the value in DUMP's form, and when it expires.
func stored(tb testing.TB, s *redistest.Server, key string) string {
	tb.Helper()
	pipe := s.Client().Pipeline()
	dump, ends := pipe.Dump(tb.Context(), key), pipe.PExpireTime(tb.Context(), key)
	_, _ = pipe.Exec(tb.Context())
	if dump.Err() != nil {
		return ""
	}
	return fmt.Sprintf("%q until %d", dump.Val(), ends.Val())
}

// queueOf is the name of a key's arrival queue, spelled out.
func queueOf(key string) string { return "redlock:queue:{" + key + "}" }

// claim reads until when a writer keeps readers out of the key.
func claim(tb testing.TB, s *redistest.Server, waiter string) time.Time {
	tb.Helper()
	for _, z := range members(tb, s, "key") {
		if z.Member == "c:"+waiter {
			return time.UnixMilli(int64(-z.Score))
		}
	}
	return time.Time{}
}

// counterOf returns the name of a key's counter.
func counterOf(key string) string { return "redlock:token:{" + key + "}" }

// counted returns the value of key's counter, "" if there is none.
func counted(tb testing.TB, s *redistest.Server, key string) string {
	tb.Helper()
	score, err := s.Client().ZScore(tb.Context(), counterOf(key), "redlock:token").Result()
	if errors.Is(err, redis.Nil) {
		return ""
	}
	must(tb, err)
	return strconv.FormatFloat(score, 'f', 0, 64)
}

// setCounter sets the counter of key to n, for a minute.
func setCounter(tb testing.TB, s *redistest.Server, key string, n float64) {
	tb.Helper()
	must(tb, s.Client().ZAdd(tb.Context(), counterOf(key), redis.Z{Score: n, Member: "redlock:token"}).Err())
	must(tb, s.Client().Expire(tb.Context(), counterOf(key), time.Minute).Err())
}

// endOf returns the millisecond in which "key" ends.
func endOf(tb testing.TB, s *redistest.Server) int64 {
	tb.Helper()
	end, err := s.Client().Do(tb.Context(), "pexpiretime", "key").Int64()
	must(tb, err)
	return end
}

// endOfHold returns for how long the hold a:1 lasts, in either form.
func endOfHold(tb testing.TB, s *redistest.Server) time.Duration {
	tb.Helper()
	if s.Client().Type(tb.Context(), "key").Val() == "string" {
		return life(tb, s, "key")
	}
	return time.UnixMilli(int64(content(tb, s)["r:a:1"])).Sub(serverNow(tb, s))
}

// holding takes these holds of the key, or a plain lock.
func holding(t *testing.T, m *single.Master, names string) {
	t.Helper()
	for name := range strings.FieldsSeq(names) {
		if name == "plain" {
			grants(t, m, acquire("key", "plain", time.Minute))
		} else {
			grants(t, m, held(name))
		}
	}
}

func foreign(tb testing.TB, s *redistest.Server) {
	tb.Helper()
	must(tb, s.Client().HSet(tb.Context(), "key", "field", "x").Err())
	must(tb, s.Client().PExpire(tb.Context(), "key", time.Minute).Err())
}

// full uses up the server's memory, or frees it.
func full(tb testing.TB, s *redistest.Server, on bool) {
	tb.Helper()
	limit := map[bool]string{true: "1", false: "0"}[on]
	must(tb, s.Client().ConfigSet(tb.Context(), "maxmemory", limit).Err())
}

// limited makes a user of a server, a Master in its name, and a function that changes the user's rights.
func limited(t *testing.T, s *redistest.Server) (m *single.Master, without func(tb rapid.TB, commands ...string)) {
	t.Helper()
	without = func(tb rapid.TB, commands ...string) {
		rules := []any{"acl", "setuser", "limited", "on", "nopass", "~*", "&*", "+@all"}
		for _, command := range commands {
			rules = append(rules, "-"+command)
		}
		if err := s.Client().Do(t.Context(), rules...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	without(t)
	return dial(t, "redis://limited:any@"+s.Addr()), without
}

// reservedFor lets a waiter queue for the key, and releases the key, so that it is reserved for the waiter.
func reservedFor(t *testing.T, server *redistest.Server, m *single.Master, waiter string) {
	t.Helper()
	must(t, server.Client().FlushDB(t.Context()).Err())
	grants(t, m, acquire("key", "holder", time.Minute))
	refuses(t, m, "holder", by(waiter, 0, acquire("key", waiter, time.Minute)))
	grants(t, m, reserving(time.Hour, release("key", "holder")))
	refuses(t, m, "", polite(by("other", 0, acquire("key", "o", time.Minute)))) // the control
}

// listen subscribes to the channels of waiters. Their notifications arrive on the returned channel as "waiter key".
func listen(tb testing.TB, s *redistest.Server, waiters ...string) <-chan string {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	channels := make([]string, len(waiters))
	for i, w := range waiters {
		channels[i] = "redlock:free:" + w
	}
	sub := s.Client().Subscribe(ctx, channels...)
	heard := make(chan string, 100)
	for range waiters {
		if _, err := sub.ReceiveTimeout(ctx, patience); err != nil { // the confirmations
			tb.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			message, err := sub.ReceiveMessage(ctx)
			if err != nil {
				return
			}
			select {
			case heard <- message.Channel[len("redlock:free:"):] + " " + message.Payload:
			case <-ctx.Done(): // the test has failed, and nobody wants to know
				return
			}
		}
	}()
	tb.Cleanup(func() {
		cancel()
		_ = sub.Close()
		<-ended
	})
	return heard
}

// hears waits for the next notification.
func hears(tb testing.TB, heard <-chan string) string {
	tb.Helper()
	select {
	case call := <-heard:
		return call
	case <-time.After(patience):
		tb.Fatal("no waiter was notified")
		return ""
	}
}

// hearsThat waits for the next notification, which has to be this one.
func hearsThat(tb testing.TB, heard <-chan string, want string) {
	tb.Helper()
	if got := hears(tb, heard); got != want {
		tb.Errorf("%q was notified, want %q", got, want)
	}
}

// silent fails the test if a waiter was notified. It publishes to a sentinel, and no other message may come before
// that one.
func silent(tb testing.TB, s *redistest.Server, heard <-chan string, waiter string) {
	tb.Helper()
	must(tb, s.Client().Publish(tb.Context(), "redlock:free:"+waiter, "-").Err())
	hearsThat(tb, heard, waiter+" -")
}

// ran counts how often the server has run each command, in scripts or not.
func ran(tb testing.TB, s *redistest.Server) map[string]int {
	tb.Helper()
	info, err := s.Client().Info(tb.Context(), "commandstats").Result()
	must(tb, err)
	counts := make(map[string]int)
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		var calls int
		if n, _ := fmt.Sscanf(rest, "calls=%d,", &calls); n == 1 {
			counts[name] = calls
		}
	}
	return counts
}

// since lists the commands that the server has run since before, except those that only look.
func since(tb testing.TB, s *redistest.Server, before map[string]int) string {
	tb.Helper()
	var all []string
	for _, name := range []string{
		"set", "evalsha", "eval", "get", "mget", "exists", "type", "pttl", "time", "pexpire", "del", "zadd", "zscore",
		"zrange", "zrevrange", "zcount", "zrem", "zremrangebyscore",
	} {
		if n := ran(tb, s)[name] - before[name]; n > 0 {
			all = append(all, fmt.Sprintf("%s %d", name, n))
		}
	}
	return strings.Join(all, ", ")
}

// scripts counts the scripts that a server has run since.
func scripts(tb testing.TB, s *redistest.Server, before map[string]int) int {
	tb.Helper()
	after := ran(tb, s)
	return after["eval"] + after["evalsha"] - before["eval"] - before["evalsha"]
}

// said describes a batch's results in short form.
func said(batch []*single.Call) string {
	var words []string
	for _, c := range batch {
		word := [...]string{"refused", "granted"}[c.Reply.Outcome]
		if c.Reply.Called {
			word = "called"
		}
		if c.Err != nil {
			word, _, _ = strings.Cut(c.Err.Error(), " ")
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
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

// lister is a client of one connection to count others by: a pool may open a second one whenever the machine is slow.
func lister(t *testing.T, s *redistest.Server) *redis.Client {
	t.Helper()
	o := *s.Client().Options() // which has all rights
	o.PoolSize, o.ReadTimeout = 1, patience
	c := redis.NewClient(&o)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// connections returns how many connections a server has.
func connections(t *testing.T, list *redis.Client) int {
	t.Helper()
	all, err := list.ClientList(t.Context()).Result()
	must(t, err)
	return strings.Count(all, "\n")
}
