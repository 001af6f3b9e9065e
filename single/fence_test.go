package single_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestATokenIsTheProposalOrAboveTheCounter(t *testing.T) {
	server, m := started(t)
	for _, step := range []struct{ proposal, want uint64 }{
		{0, 1}, {0, 2}, {10, 10}, {10, 11}, {3, 12}, {1_700_000_000_000_000, 1_700_000_000_000_000}, {
			5, 1_700_000_000_000_001,
		},
	} {
		if got := ask(t, m, fenced("key", "me", step.proposal)); got.Outcome != single.Granted ||
			got.Token != step.want {
			t.Errorf("proposal %d: %+v, want token %d", step.proposal, got, step.want)
		}
		if got := counted(t, server, "key"); got != strconv.FormatUint(step.want, 10) {
			t.Errorf("the counter is %q, want %d", got, step.want)
		}
		ask(t, m, release("key", "me"))
	}
}

func TestARefusedAcquireTellsTheCounter(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
	ask(t, m, fenced("key", "holder", 41))
	for _, step := range []struct{ proposal, want uint64 }{{30, 41}, {41, 41}, {100, 100}, {41, 100}} {
		got := ask(t, m, retained(fenced("key", "me", step.proposal))) // its ZADD raises the counter
		if got.Outcome != single.Refused || got.Token != step.want || got.Holder != "holder" {
			t.Errorf("%+v, want refused and the counter, %d", got, step.want)
		}
	}
	if got := ask(t, m, fenced("key", "me", 200)); got.Outcome != single.Refused || got.Token != 100 {
		t.Errorf("a request by script: %+v, want refused and an unchanged counter, 100", got)
	}
}

func TestSpareTokensAreGivenToNoOtherOwner(t *testing.T) {
	server, m := started(t)
	spare := func(r single.Request, n uint64) single.Request {
		r.Spare = n
		return r
	}
	for _, step := range []struct {
		request       single.Request
		want, counter uint64
	}{
		{spare(fenced("key", "me", 100), 10), 100, 110},
		{fenced("key", "me", 105), 111, 111}, // another owner would get the same token
		{retained(spare(fenced("key", "me", 0), 5)), 112, 117},
		{spare(raise("key", "me", 200), 50), 200, 250},
		{retained(fenced("key", "me", 230)), 251, 251},
	} {
		if got := grants(t, m, step.request); got.Token != step.want {
			t.Errorf("%+v, want token %d", got, step.want)
		}
		if got := counted(t, server, "key"); got != strconv.FormatUint(step.counter, 10) {
			t.Errorf("the counter is %q, want %d", got, step.counter)
		}
	}
	if got := refuses(t, m, "", spare(raise("key", "me", 240), 50)); got.Token != 251 {
		t.Errorf("%+v, want a refusal: the counter is above the token", got)
	}
	grants(t, m, fenced("last", "me", single.MaxToken-5))
	if _, err := m.Ask(t.Context(), spare(fenced("last", "me", 0), 5)); err == nil ||
		!strings.Contains(err.Error(), "no greater fencing token") {
		t.Errorf("spare tokens above the greatest one: %v", err)
	}
}

// A repeated request must not get a token that the counter has reached for another owner.
func TestARepeatedFencedAcquireGetsATokenOfItsOwn(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
	for _, want := range []uint64{41, 42, 43} {
		if got := ask(t, m, fenced("key", "me", 41)); got.Outcome != single.Granted || got.Token != want {
			t.Errorf("%+v, want token %d", got, want)
		}
	}
	ask(t, m, retained(fenced("key", "other", 50))) // refused
	if got := ask(t, m, fenced("key", "me", 44)); got.Token != 51 {
		t.Errorf("a request repeated after another's had raised the counter: %+v, want token 51", got)
	}
}

// An exact token is given or refused. After a refusal there must be no key with a value that names a token which it
// does not have.
func TestAnExactTokenIsGivenOrRefused(t *testing.T) {
	server, m := started(t)
	for _, retains := range []bool{false, true} { // the form without the script must not be used
		key := fmt.Sprint("key", retains)
		setCounter(t, server, key, 10)
		for i, step := range []struct {
			owner string
			token uint64
			want  single.Reply
		}{
			{"a", 9, single.Reply{Key: key, Token: 10}},
			{"a", 10, single.Reply{Key: key, Token: 10}},
			{"a", 11, single.Reply{Outcome: single.Granted, Token: 11}},
			{"a", 11, single.Reply{Outcome: single.Granted, Token: 11}}, // repeated
			{"a", 10, single.Reply{Key: key, Token: 11}},
			{"b", 12, single.Reply{Key: key, Token: 11, Holder: "a", TTL: time.Minute}},
		} {
			r := fenced(key, step.owner, step.token)
			r.Exact, r.Retained = true, retains
			got := ask(t, m, r)
			if got.TTL > 0 && got.TTL <= time.Minute {
				got.TTL = time.Minute
			}
			if there := exists(t, server, key); got != step.want || there != (i > 1) {
				t.Errorf("%s asks for %d: %+v, want %+v; the key is there: %t", step.owner, step.token, got, step.want,
					there)
			}
		}
		if got := counted(t, server, key); got != "11" {
			t.Errorf("the counter is %s, want 11", got)
		}
	}
}

// Other commands can come between the commands of a fenced acquisition that is not a script. Each case says which,
// and the right result.
func TestCommandsBetweenAKeyAndItsCounterDoNoHarm(t *testing.T) {
	server, m := started(t)
	c := server.Client()
	set := func(owner string) {
		must(t, c.SetArgs(t.Context(), "key", owner, redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err())
	}
	t.Run("another's counter", func(t *testing.T) {
		set("me") // our first command
		must(t, c.ZAdd(t.Context(), counterOf("key"), redis.Z{Score: 5, Member: "redlock:token"}).Err())
		ask(t, m, retained(fenced("key", "other", 77))) // refused, and ahead of us
		got := ask(t, m, fenced("key", "me", 76))       // the rest of ours, as its script sees it
		if got.Outcome != single.Granted || got.Token != 78 {
			t.Errorf("%+v, want a token above 77", got)
		}
	})
	t.Run("another's acquisition", func(t *testing.T) {
		must(t, c.FlushDB(t.Context()).Err())
		set("me")
		must(t, c.Del(t.Context(), "key").Err()) // it lapsed
		if got := ask(t, m, fenced("key", "other", 77)); got.Token != 77 {
			t.Fatalf("%+v", got)
		}
		// This is our second command; it must not count as accepted.
		changed, err := c.ZAddArgs(t.Context(), counterOf("key"),
			redis.ZAddArgs{GT: true, Ch: true, Members: []redis.Z{{Score: 77, Member: "redlock:token"}}}).Result()
		if must(t, err); changed != 0 {
			t.Error("the counter accepted one number twice")
		}
		refuses(t, m, "other", fenced("key", "me", 77))
	})
}

// Lua counts in doubles. These are exact up to 2^53, and by default print large numbers with an exponent.
func TestTokensAreExactUpToTheGreatest(t *testing.T) {
	server, m := started(t)
	for _, proposal := range []uint64{
		99_999_999_999_999, 100_000_000_000_000, 123_456_789_012_345, 999_999_999_999_999, 9_007_199_254_740_881,
		single.MaxToken - 2,
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		for _, want := range []uint64{proposal, proposal + 1, proposal + 2} {
			got := ask(t, m, fenced("key", "me", proposal))
			if got.Token != want || counted(t, server, "key") != strconv.FormatUint(want, 10) {
				t.Errorf("token %d, counter %s, want %d", got.Token, counted(t, server, "key"), want)
			}
			if got := ask(t, m, raise("key", "me", want)); got.Outcome != single.Refused || got.Token != want {
				t.Errorf("raised to its current value, %d: %+v", want, got)
			}
			ask(t, m, release("key", "me"))
		}
	}
}

func TestAKeyIsTransferredOnce(t *testing.T) {
	server, m := started(t)
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
	server, m := started(t)
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
	server, m := started(t)
	ask(t, m, acquire("key", "old", time.Hour))
	ask(t, m, transfer("key", "new", "old", 7))
	lives(t, server, "key", time.Minute)
	ask(t, m, extend("key", "new", time.Hour, false))
	ask(t, m, transfer("key", "new", "old", 7))
	lives(t, server, "key", time.Hour)
	must(t, server.Client().PExpire(t.Context(), "key", time.Second).Err())
	ask(t, m, transfer("key", "new", "old", 7))
	lives(t, server, "key", time.Minute)
}
