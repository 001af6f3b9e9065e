package single_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// transfer takes key from an owner, with at least this token.
func transfer(key, owner, from string, token uint64) single.Request {
	return single.Request{
		Op: single.Transfer, Keys: []string{key}, Owner: owner, From: from, Token: token, TTL: time.Minute,
	}
}

func TestAKeyIsTransferredOnce(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "old", 41))
	for _, step := range []struct {
		owner, from string
		token       uint64
		want        single.Reply
		counter     int
	}{
		{"thief", "ol", 42, single.Reply{Holder: "old", Key: "key", TTL: time.Minute, Token: 41}, 41},
		{"first", "old", 42, single.Reply{Outcome: single.Granted, Token: 42}, 42},
		{"second", "old", 42, single.Reply{Holder: "first", Key: "key", TTL: time.Minute, Token: 42}, 42},
		{"first", "old", 42, single.Reply{Outcome: single.Granted, Token: 43}, 43}, // repeated
		{"second", "first", 90, single.Reply{Outcome: single.Granted, Token: 90}, 90},
		// repeated late
		{"first", "old", 42, single.Reply{Holder: "second", Key: "key", TTL: time.Minute, Token: 90}, 90},
	} {
		got := ask(t, m, transfer("key", step.owner, step.from, step.token))
		if got.TTL > 0 && got.TTL <= time.Minute {
			got.TTL = time.Minute
		}
		if got != step.want {
			t.Errorf("%s from %s: %+v, want %+v", step.owner, step.from, got, step.want)
		}
		if got := counted(t, server, "key"); got != strconv.Itoa(step.counter) {
			t.Errorf("%s from %s: the counter is %s, want %d", step.owner, step.from, got, step.counter)
		}
	}
	for name, late := range map[string]single.Request{
		"an extension": extend("key", "old", time.Hour, true), "a release": release("key", "old"),
		"a raise": raise("key", "old", 100),
	} {
		if got := ask(t, m, late); got.Outcome != single.Refused {
			t.Errorf("%s of the old owner: %+v", name, got)
		}
	}
	if got := server.Client().Get(t.Context(), "key").Val(); got != "second" {
		t.Errorf("the key is %s's", got)
	}
}

// A transfer takes an existing key and sets no missing key: it may arrive when the key is free or another owner's.
func TestATransferSetsNoKeyThatIsFree(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	if got := ask(t, m, transfer("key", "new", "old", 7)); got.Outcome != single.Refused || got.Holder != "" ||
		got.TTL != 0 {
		t.Errorf("a free key: %+v", got)
	}
	if n := server.Client().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are there", n)
	}
	ask(t, m, fenced("key", "old", single.MaxToken))
	if _, err := m.Ask(t.Context(), transfer("key", "new", "old", 7)); err == nil {
		t.Errorf("behind the last token: %v", err)
	}
	if got := server.Client().Get(t.Context(), "key").Val(); got != "old" {
		t.Errorf("it failed, and the key is %s's", got)
	}
}

// A transferred key lives for the ttl of the transfer, even if the key had longer: the former owner no longer relies
// on it. A repeated transfer, which may be late, does not shorten the time.
func TestATransferredKeyLivesForTheTransfersTTL(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	near := func(want time.Duration) {
		t.Helper()
		if got := server.Client().PTTL(t.Context(), "key").Val(); got > want || got < want-30*time.Second {
			t.Errorf("the key lives for %v, want %v", got, want)
		}
	}
	ask(t, m, acquire("key", "old", time.Hour))
	ask(t, m, transfer("key", "new", "old", 7))
	near(time.Minute)
	ask(t, m, extend("key", "new", time.Hour, false))
	ask(t, m, transfer("key", "new", "old", 7))
	near(time.Hour)
	must(t, server.Client().PExpire(t.Context(), "key", time.Second).Err())
	ask(t, m, transfer("key", "new", "old", 7))
	near(time.Minute)
}

// A user without the right to change the key does not get it. A full master still transfers it.
func TestATransferThatFailsChangesNoOwner(t *testing.T) {
	for _, right := range []string{"-set", "-zadd", "-pexpire", "-zscore"} {
		server := redistest.Start(t, redistest.WithUser("~*", "&*", "+@all", right))
		must(t, server.Client().Set(t.Context(), "key", "old", time.Minute).Err())
		setCounter(t, server, "key", 9)
		m := dial(t, server.URL())
		if _, err := m.Ask(t.Context(), transfer("key", "new", "old", 10)); err == nil {
			t.Errorf("%s: %v", right, err)
		}
		if got := server.Client().Get(t.Context(), "key").Val(); got != "old" {
			t.Errorf("%s: the key is %s's", right, got)
		}
	}
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "old", 9))
	full(t, server, true)
	if got := ask(t, m, transfer("key", "new", "old", 10)); got.Outcome != single.Granted || got.Token != 10 {
		t.Errorf("on a full master: %+v", got)
	}
	full(t, server, false)
}
