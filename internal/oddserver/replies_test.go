package oddserver_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/garble"
	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/single"
)

// disorder damages the order of whole replies: the n-th byte decides about the n-th reply.
func disorder(plan []byte) oddserver.Script {
	next := 0
	return func(step oddserver.Step) oddserver.Act {
		if step.Name == oddserver.Connect || step.Name == "HELLO" || step.Name == "AUTH" || step.Name == "SELECT" ||
			step.Name == "CLIENT" || next >= len(plan) {
			return oddserver.Pass()
		}
		what := plan[next]
		next++
		switch what % 16 {
		case 1:
			return oddserver.Again(1 + int(what/16))
		case 2:
			return oddserver.Unanswered()
		case 3:
			return oddserver.Late()
		case 4:
			return oddserver.Pieces(1 + int(what/16))
		case 5:
			return oddserver.After("+OK\r\n")
		case 6:
			return oddserver.After(":1\r\n")
		case 7:
			return oddserver.After("*5\r\n:1\r\n:1000\r\n$6\r\nowner3\r\n$4\r\nkey3\r\n:1\r\n")
		case 8:
			return oddserver.After("$-1\r\n")
		case 9:
			return oddserver.Cut(int(what / 16)).ThenClose()
		case 10:
			return oddserver.Before(">2\r\n+invalidate\r\n*1\r\n$1\r\nx\r\n")
		case 11:
			return oddserver.Lie("").ThenReset()
		default:
			return oddserver.Pass()
		}
	}
}

const heldKeys = 8

// heldKey is a key that its owner holds all the time.
func heldKey(i int) (key, owner string) {
	return fmt.Sprintf("key%d", i%heldKeys), fmt.Sprintf("owner%d", i%heldKeys)
}

// order sends a master one request after another while replies are in disorder. Each request has a unique answer.
// order returns an error if a request got another request's answer.
func order(addr string, look *redis.Client, plan, asks []byte) (answered int, err error) {
	for i := range heldKeys {
		key, owner := heldKey(i)
		if err := look.Set(bg, key, owner, 0).Err(); err != nil {
			return 0, err
		}
	}
	odd, err := oddserver.Run(addr, nil)
	if err != nil {
		return 0, err
	}
	defer odd.Close()
	m, err := single.Open(&redis.Options{Addr: odd.Addr(), PoolSize: 1}, single.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Close() }()
	for what := range 4 { // the connection is made and the scripts are known
		if ok, err := askOne(bg, m, look, what, fmt.Sprintf("free:%d", runs.Add(1))); err != nil || !ok {
			return 0, fmt.Errorf("in good order: %w", err)
		}
	}
	odd.Play(disorder(plan))
	for i, what := range asks {
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		ok, err := askOne(ctx, m, look, int(what), fmt.Sprintf("free:%d:%d", runs.Add(1), i))
		cancel()
		if err != nil {
			return answered, fmt.Errorf("request %d of %x, replies by %s: %w", i, asks, hex.EncodeToString(plan), err)
		}
		if ok {
			answered++
		}
	}
	return answered, nil
}

// askOne sends one request; ok reports whether an answer came.
func askOne(ctx context.Context, m *single.Master, look *redis.Client, what int, free string) (ok bool, err error) {
	key, owner := heldKey(what / 4)
	switch what % 4 {
	case 0:
		reply, err := m.Ask(ctx, single.Request{Op: single.Inspect, Keys: []string{key}})
		if err == nil && (reply.Outcome != single.Granted || reply.Holder != owner || reply.Key != key) {
			return false, fmt.Errorf("inspect of %s, which %s holds: %+v", key, owner, reply)
		}
		return err == nil, nil
	case 1:
		reply, err := m.Ask(ctx, single.Request{Op: single.Acquire, Keys: []string{key}, Owner: "me", TTL: longTTL})
		if err == nil && (reply.Outcome != single.Refused || reply.Holder != owner) {
			return false, fmt.Errorf("acquire of %s, which %s holds: %+v", key, owner, reply)
		}
		return err == nil, nil
	case 2:
		reply, err := m.Ask(ctx, single.Request{Op: single.Acquire, Keys: []string{free}, Owner: "me", TTL: longTTL})
		if err == nil && (reply.Outcome != single.Granted || look.Get(bg, free).Val() != "me") {
			return false,
				fmt.Errorf("acquire of the free %s: %+v, and %q has it", free, reply, look.Get(bg, free).Val())
		}
		return err == nil, nil
	default:
		reply, err := m.Ask(ctx, single.Request{Op: single.Release, Keys: []string{key}, Owner: "me"})
		if err == nil && reply.Outcome != single.Refused {
			return false, fmt.Errorf("release of %s by a stranger: %+v", key, reply)
		}
		return err == nil, nil
	}
}

// disorders are good starting points for FuzzReplies: plans and requests. Each is a test of its own, too.
var disorders = [][2][]byte{
	{{1}, {2, 1, 1}},                                   // a grant twice
	{{5}, {0, 1, 5, 0}},                                // an OK behind an inspection
	{{7, 7, 7}, {0, 4, 8, 12, 1}},                      // another client's inspection
	{{2, 0, 3, 0}, {0, 1, 4, 5, 0}},                    // lost, late
	{{8}, {2, 2, 1}},                                   // a null behind a grant
	{{17, 33, 65, 6}, {0, 4, 8, 3, 7, 1}},              // again and again
	{{4, 20, 9, 25, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7}}, // bent, but in order
}

// TestHazard42ARequestIsAnsweredByItsOwnReplyOrByAnError adds, loses, repeats, delays and splits whole replies on one
// connection. It is FuzzReplies from a seed, in one process: both the damage to replies and the requests are drawn.
func TestHazard42ARequestIsAnsweredByItsOwnReplyOrByAnError(t *testing.T) {
	server := redistest.Start(t)
	const seed = 3
	source, answered := garble.New(seed, []string{""}), 0
	for i := range soak.Or(10, 2000) {
		plan, asks := make([]byte, 1+source.IntN(16)), make([]byte, 2+source.IntN(12))
		for _, drawn := range [][]byte{plan, asks} {
			for j := range drawn {
				drawn[j] = byte(source.IntN(256))
			}
		}
		n, err := order(server.Addr(), server.Client(), plan, asks)
		answered += n
		if err != nil {
			t.Fatalf("seed %d, %d: %v", seed, i, err)
		}
	}
	if answered == 0 {
		t.Error("nothing was ever answered, which proves nothing")
	}
	t.Logf("%d requests answered", answered)
}

// A pipeline with too many replies counts for nothing, because no reply can be matched with its command. Here the
// refusal of the first of two commands comes last, behind two grants.
func TestHazard42APipelineWithSurplusRepliesCountsForNothing(t *testing.T) {
	server := redistest.Start(t)
	odd := oddserver.Start(t, server.Addr(), nil)
	m, err := single.Open(&redis.Options{Addr: odd.Addr(), PoolSize: 1}, single.Options{})
	must(t, err)
	defer func() { _ = m.Close() }()
	key, owner := heldKey(0)
	must(t, server.Client().Set(bg, key, owner, 0).Err())
	for _, confused := range []bool{false, true} {
		if confused {
			odd.Play(func(step oddserver.Step) oddserver.Act {
				switch {
				case step.Name == "SET" && step.Args[0] == key:
					return oddserver.Late()
				case step.Name == "SET":
					return oddserver.Again(1)
				}
				return oddserver.Pass()
			})
		}
		batch := acquireAll(m, key, fmt.Sprint("free:", confused))
		for i, call := range batch {
			granted := call.Err == nil && call.Reply.Outcome == single.Granted
			if !confused && (call.Err != nil || granted != (i == 1)) {
				t.Errorf("in good order, request %d: %+v, %v", i, call.Reply, call.Err)
			}
			if confused && (call.Err == nil || !call.Sent) {
				t.Errorf("request %d: %+v, sent %t; want an error of a request that may have taken effect", i,
					call.Reply, call.Sent)
			}
		}
	}
}

// After a reply that cannot belong to its request, the following ones may belong to others, too. Here the first
// request's OK comes as the second one's.
func TestHazard42AMisalignedReplyDiscardsTheRestOfItsPipeline(t *testing.T) {
	server := redistest.Start(t)
	odd := oddserver.Start(t, server.Addr(), func(step oddserver.Step) oddserver.Act {
		if step.Name == "SET" && strings.HasPrefix(step.Args[0], "free") {
			return oddserver.Before("+PONG\r\n")
		}
		return oddserver.Pass()
	})
	for _, m := range []*single.Master{
		open(t, &redis.Options{Addr: odd.Addr()}), over(t, redis.NewClient(&redis.Options{Addr: odd.Addr()})),
	} {
		key, owner := heldKey(0)
		must(t, server.Client().Set(bg, key, owner, 0).Err())
		batch := acquireAll(m, fmt.Sprint("free:", runs.Add(1)), key)
		for i, call := range batch {
			if call.Err == nil {
				t.Errorf("request %d: %+v", i, call.Reply)
			}
		}
	}
}

// acquireAll asks for keys in one pipeline.
func acquireAll(m *single.Master, keys ...string) (batch []*single.Call) {
	for _, key := range keys {
		r := single.Request{Op: single.Acquire, Keys: []string{key}, Owner: "me", TTL: longTTL}
		batch = append(batch, &single.Call{Request: &r})
	}
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	m.Do(ctx, batch)
	return batch
}

// open makes two masters, one with the library's own connections and one over a client. Both are closed with the
// test.
func open(t *testing.T, opt *redis.Options) *single.Master {
	t.Helper()
	m, err := single.Open(opt, single.Options{})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func over(t *testing.T, client *redis.Client) *single.Master {
	t.Helper()
	m, end, err := brought(client)
	must(t, err)
	t.Cleanup(end)
	return m
}

// FuzzReplies does the same with any disorder.
func FuzzReplies(f *testing.F) {
	server := redistest.Start(f)
	for _, d := range disorders {
		f.Add(d[0], d[1])
	}
	f.Fuzz(func(t *testing.T, plan, asks []byte) {
		if len(plan) > 32 || len(asks) > 32 {
			return
		}
		if _, err := order(server.Addr(), server.Client(), plan, asks); err != nil {
			t.Error(err)
		}
	})
}
