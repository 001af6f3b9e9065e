package single_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// Only +OK grants a SET, and only the documented results of the scripts answer the other commands.
func TestHazard43And63OnlyTheExactReplyGrants(t *testing.T) {
	for _, reply := range []string{
		"+QUEUED\r\n", "+ok\r\n", "+OK \r\n", "$2\r\nOK\r\n", ":77\r\n", ":1\r\n", ":-1\r\n", "#t\r\n", ",1.0\r\n",
		"(1\r\n", "=6\r\ntxt:OK\r\n", "*1\r\n+OK\r\n",
		"*0\r\n", "%0\r\n", "~1\r\n:1\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", "*-2\r\n", "$-7\r\n", "+\r\n",
	} {
		server := oddServer(t, says(map[string]string{
			"set": reply, "evalsha": reply, "zadd": reply, "pexpire": reply, "command": "*0\r\n",
		}))
		for way, m := range ways(t, server.addr) {
			for _, size := range []int{1, 3} {
				var batch []*single.Call
				for i := range size {
					batch = append(batch, &single.Call{Request: new(acquire(fmt.Sprint("key", i), "me", time.Minute))})
				}
				m.Do(within(t, patience), batch)
				for i, c := range batch {
					if c.Err == nil || !c.Sent || c.Reply != (single.Reply{}) {
						t.Errorf("%s, SET %d of %d answered with %q: %+v, error %v, sent %t", way, i, size, reply,
							c.Reply, c.Err, c.Sent)
					}
				}
			}
		}
	}
}

// A surplus reply must not become the answer to the next command, at any time it arrives.
func TestHazard42ASurplusReplyAnswersNoRequest(t *testing.T) {
	extra := make(chan bool, 1)
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "evalsha" {
			return ":0\r\n"
		}
		if words[0] != "set" {
			return ""
		}
		if words[1] == "taken" {
			return "$-1\r\n"
		}
		select {
		case <-extra:
			return "+OK\r\n+OK\r\n"
		default:
			return "+OK\r\n"
		}
	})
	m := dial(t, "redis://"+server.addr)
	granted := func(key string) bool { return won(send(t, m, patience, acquire(key, "me", time.Minute))[0]) }
	if !granted("free") { // on a connection that has been used
		t.Fatal("a free key was not granted")
	}
	extra <- true
	if granted("free") {
		t.Error("one request got two replies, and one reply counts")
	}
	if granted("taken") {
		t.Error("the second +OK granted a key that is taken")
	}
	if !granted("free") {
		t.Fatal("a free key was not granted")
	}
	server.push("+OK\r\n") // while the connection is idle
	redistest.Eventually(t, patience, func() bool { return !single.IdleClean(m) }, "the reply too many to arrive")
	if granted("taken") {
		t.Error("a +OK that came between two requests granted a key that is taken")
	}
}

// A single fenced acquisition sends two commands. It gets nothing from a surplus reply before theirs.
func TestHazard42AFencedRequestGetsNothingFromASurplusReply(t *testing.T) {
	for _, extra := range []string{"", "+OK\r\n", "$-1\r\n", ":1\r\n", ":0\r\n", "+PONG\r\n"} {
		server := oddServer(t, says(map[string]string{
			"set": extra + "+OK\r\n", "zadd": ":1\r\n", "evalsha": "-ERR not now\r\n",
		}))
		m := dial(t, "redis://"+server.addr)
		for range 3 {
			c := send(t, m, patience, retained(fenced("key", "me", 50)))[0]
			if granted := won(c); granted != (extra == "") || !granted && c.Err == nil {
				t.Errorf("with %q in front: %+v, %v", extra, c.Reply, c.Err)
			}
		}
	}
}

// A pipeline with a surplus reply counts for nothing, however late the last reply comes.
func TestHazard42APipelineIsReadToItsEndToFindASurplusReply(t *testing.T) {
	for _, extra := range []string{"", "+OK\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{takes: after(0), extra: extra}
			m := f.master(t, redis.Options{})
			var batch []*single.Call
			for _, key := range []string{"free", "taken"} {
				batch = append(batch, &single.Call{Request: new(acquire(key, "me", time.Minute))})
			}
			m.Do(within(t, time.Second), batch)
			for i, c := range batch {
				granted := won(c)
				if extra == "" && (c.Err != nil || granted != (i == 0)) {
					t.Errorf("in good order, request %d: %+v, %v", i, c.Reply, c.Err)
				}
				if extra != "" && (c.Err == nil || !c.Sent) {
					t.Errorf("request %d: %+v, sent %t; want an error of a request that may have taken effect", i,
						c.Reply, c.Sent)
				}
			}
		})
	}
}

// A server's pushes (version 3 of the protocol) are skipped with any content.
func TestHazard68PushesWithAnythingInThemAreSkipped(t *testing.T) {
	for _, push := range []string{
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n", ">1\r\n%1\r\n+a\r\n*2\r\n:1\r\n#t\r\n", ">0\r\n",
		">2\r\n+x\r\n$100000\r\n" + strings.Repeat("x", 100_000) + "\r\n",
	} {
		server := oddServer(t, says(map[string]string{"set": push + push + "+OK\r\n"}))
		m := dial(t, "redis://"+server.addr+"?protocol=3")
		for range 3 {
			if reply := ask(t, m, acquire("key", "me", time.Minute)); reply.Outcome != single.Granted {
				t.Errorf("after %.40q: %+v", push, reply)
			}
		}
		if n := server.connected(); n != 1 {
			t.Errorf("%.40q: %d connections for three requests", push, n)
		}
	}
}

// An error's text is bounded, because each master's error quotes it once.
func TestHazard68ALongErrorIsQuotedInPart(t *testing.T) {
	long := "-ERR " + strings.Repeat("x", 100_000) + "\x1b[2J\r\n"
	for name, command := range map[string]string{"of a request": "set", "of a set-up": "select"} {
		server := oddServer(t, says(map[string]string{command: long}))
		for way, m := range map[string]*single.Master{
			"Dial": dial(t, "redis://"+server.addr+"/1"),
			"New":  over(t, redis.NewClient(&redis.Options{Addr: server.addr, DB: 1})),
		} {
			_, err := m.Ask(within(t, patience), acquire("key", "me", time.Minute))
			if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "ERR xxx") {
				t.Errorf("%s %s: %d bytes, %.60v", way, name, len(fmt.Sprint(err)), err)
			}
			if reply := redis.Error(nil); !errors.As(err, &reply) {
				t.Errorf("%s %s: %.60v is not the server's", way, name, err)
			}
		}
	}
}

// Replies come late, break off or are cut short. Each reply that is used belongs to its request.
func TestEachRequestGetsItsOwnReply(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 10
	}
	answered := 0
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) {
			f := &moody{random: rand.New(rand.NewPCG(uint64(seed), 0))}
			opt := &redis.Options{Addr: "moody:6379", Dialer: f.dial, PoolSize: 1 + seed%5}
			m, err := single.Open(opt, single.Options{})
			must(t, err)
			var mu sync.Mutex
			concurrently(8, func(who int) {
				for n := range 40 {
					batch := make([]*single.Call, 1+f.draw(5))
					for i := range batch {
						batch[i] = &single.Call{Request: new(inspect(fmt.Sprintf("key-%d-%d-%d", who, n, i)))}
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+f.draw(80))*time.Millisecond)
					m.Do(ctx, batch)
					cancel()
					for _, c := range batch {
						if c.Err != nil {
							continue
						}
						mu.Lock()
						answered++
						mu.Unlock()
						if key := c.Request.Keys[0]; c.Reply.Holder != key || c.Reply.Key != key {
							t.Errorf("seed %d: %s is answered with %+v", seed, key, c.Reply)
						}
					}
				}
			})
			must(t, m.Close())
			<-time.After(time.Second) // the master ends
		})
	}
	t.Logf("%d replies", answered)
	if answered < runs*100 {
		t.Errorf("only %d replies", answered)
	}
}
