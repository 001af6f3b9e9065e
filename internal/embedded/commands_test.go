package embedded_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// Embedded masters must answer a lock's commands exactly as Redis does, so each check runs against both.
func TestCommandsALockUsesAnswerAsRedisDoes(t *testing.T) {
	_, c := start(t)
	t.Run("embedded", func(t *testing.T) { checkCommands(t, c) })
	t.Run("redis-server", func(t *testing.T) { checkCommands(t, redistest.Start(t).Client()) })
}

func checkCommands(t *testing.T, c *redis.Client) {
	t.Helper()
	t.Run("SET NX PX", func(t *testing.T) {
		must(t, c.SetArgs(t.Context(), "lock", "a", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err())
		if err := c.SetArgs(t.Context(), "lock", "b", redis.SetArgs{Mode: "NX", TTL: time.Minute}).
			Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("the second SET NX: %v, want a nil reply", err)
		}
		if owner := c.Get(t.Context(), "lock").Val(); owner != "a" {
			t.Errorf("owner is %q, want the first", owner)
		}
	})
	t.Run("ttl", func(t *testing.T) {
		if left := c.PTTL(t.Context(), "none").Val(); left != -2 {
			t.Errorf("PTTL of no key: %v, want -2", left)
		}
		must(t, c.Set(t.Context(), "eternal", 1, 0).Err())
		if left := c.PTTL(t.Context(), "eternal").Val(); left != -1 {
			t.Errorf("PTTL without a ttl: %v, want -1", left)
		}
		if set := c.PExpire(t.Context(), "eternal", time.Minute).Val(); !set {
			t.Error("PEXPIRE refused an existing key")
		}
		if left := c.PTTL(t.Context(), "eternal").Val(); left < 50*time.Second || left > time.Minute {
			t.Errorf("PTTL after PEXPIRE: %v, want about a minute", left)
		}
		if set := c.PExpire(t.Context(), "none", time.Minute).Val(); set {
			t.Error("PEXPIRE accepted a missing key")
		}
	})
	t.Run("AUTH without a password that is asked for", func(t *testing.T) {
		if err := c.Do(t.Context(), "AUTH", "default", "any").Err(); err != nil {
			t.Errorf("of the default user: %v", err)
		}
		if err := c.Do(t.Context(), "AUTH", "any").Err(); !redis.HasErrorPrefix(err, "AUTH") {
			t.Errorf("without a user name: %v", err)
		}
		if err := c.Do(t.Context(), "AUTH", "nobody", "any").Err(); !redis.HasErrorPrefix(err, "WRONGPASS") {
			t.Errorf("with an unknown user: %v", err)
		}
	})
	t.Run("scripts", func(t *testing.T) { checkScripts(t, c) })
	t.Run("publish and subscribe", func(t *testing.T) { checkPubSub(t, c) })
	t.Run("sets and hashes", func(t *testing.T) { checkCollections(t, c) })
	t.Run("pipeline", func(t *testing.T) {
		pipe := c.Pipeline()
		first, second := pipe.Incr(t.Context(), "counter"), pipe.Incr(t.Context(), "counter")
		_, err := pipe.Exec(t.Context())
		must(t, err)
		if first.Val() != 1 || second.Val() != 2 {
			t.Errorf("counted %d, %d; want 1, 2", first.Val(), second.Val())
		}
	})
	t.Run("configuration", func(t *testing.T) {
		got, err := c.ConfigGet(t.Context(), "maxmemory-p*").Result()
		must(t, err)
		if len(got) != 1 || got["maxmemory-policy"] != "noeviction" {
			t.Errorf("CONFIG GET: %v, want one policy, noeviction", got)
		}
		for _, field := range []string{"run_id", "uptime_in_seconds", "redis_version", "process_id"} {
			if infoField(t, c, field) == "" {
				t.Errorf("INFO server: %s is empty", field)
			}
		}
	})
}

func checkScripts(t *testing.T, c *redis.Client) {
	t.Helper()
	const release = `if redis.call('GET', KEYS[1]) == ARGV[1] then
		redis.call('PUBLISH', KEYS[1], 'free')
		return redis.call('DEL', KEYS[1])
	end
	return {-1, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1])}`
	must(t, c.Set(t.Context(), "held", "owner", time.Minute).Err())
	if err := c.EvalSha(t.Context(), "0000000000000000000000000000000000000000", nil).
		Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("EVALSHA of an unknown script: %v, want NOSCRIPT", err)
	}
	sha, err := c.ScriptLoad(t.Context(), release).Result()
	must(t, err)
	if want := redis.NewScript(release).Hash(); sha != want {
		t.Errorf("SCRIPT LOAD: %s, want %s", sha, want)
	}
	refused, err := c.EvalSha(t.Context(), sha, []string{"held"}, "another").Slice()
	must(t, err)
	if len(refused) != 3 || refused[0] != int64(-1) || refused[2] != "owner" {
		t.Errorf("a foreign release: %v, want -1, the ttl and the owner", refused)
	}
	if n, err := c.EvalSha(t.Context(), sha, []string{"held"}, "owner").Int(); err != nil || n != 1 {
		t.Errorf("the owner's release: %d, %v; want 1", n, err)
	}
	must(t, c.ScriptFlush(t.Context()).Err())
	if err := c.EvalSha(t.Context(), sha, []string{"held"}, "owner").Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("EVALSHA after SCRIPT FLUSH: %v, want NOSCRIPT", err)
	}
	if err := c.Eval(t.Context(), "return redis.error_reply('ERR mine')", nil).Err(); err == nil ||
		err.Error() != "ERR mine" {
		t.Errorf("an error made by a script: %v", err)
	}
}

func checkPubSub(t *testing.T, c *redis.Client) {
	t.Helper()
	subscription := c.Subscribe(t.Context(), "news")
	defer subscription.Close()
	_, err := subscription.Receive(t.Context()) // the confirmation
	must(t, err)
	if n, err := c.Eval(t.Context(), "return redis.call('PUBLISH', 'news', 'free')", nil).Int(); err != nil || n != 1 {
		t.Errorf("PUBLISH in a script reached %d, %v; want 1", n, err)
	}
	message, err := subscription.ReceiveMessage(t.Context())
	must(t, err)
	if message.Payload != "free" {
		t.Errorf("received %q, want free", message.Payload)
	}
}

func checkCollections(t *testing.T, c *redis.Client) {
	t.Helper()
	must(t, c.ZAdd(t.Context(), "queue", redis.Z{Score: 2, Member: "b"}, redis.Z{Score: 1, Member: "a"},
		redis.Z{Score: 3, Member: "c"}).Err())
	if n := c.ZRemRangeByScore(t.Context(), "queue", "-inf", "(2").Val(); n != 1 {
		t.Errorf("ZREMRANGEBYSCORE removed %d, want 1", n)
	}
	if first := c.ZRangeWithScores(t.Context(), "queue", 0, 0).Val(); len(first) != 1 || first[0].Member != "b" ||
		first[0].Score != 2 {
		t.Errorf("the first of the queue: %v, want b", first)
	}
	must(t, c.HSet(t.Context(), "holds", "r1", 10, "r2", 20).Err())
	if n := c.HDel(t.Context(), "holds", "r1", "r3").Val(); n != 1 {
		t.Errorf("HDEL removed %d, want 1", n)
	}
	if left := c.HGetAll(t.Context(), "holds").Val(); len(left) != 1 || left["r2"] != "20" {
		t.Errorf("hash is %v, want r2 alone", left)
	}
	if kind := c.Type(t.Context(), "holds").Val(); kind != "hash" {
		t.Errorf("TYPE is %s, want hash", kind)
	}
	if err := c.Get(t.Context(), "holds").Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("GET of a hash: %v, want WRONGTYPE", err)
	}
}
