package single_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// Requests that no master can perform are not sent. Their error is one of this package.
func TestMeaninglessRequestsAreNotSent(t *testing.T) {
	server, m := started(t)
	made := func() string {
		return single.InfoField(server.Client().Info(t.Context(), "stats").Val(), "total_connections_received")
	}
	before := made()
	with := func(r single.Request, change func(*single.Request)) single.Request {
		change(&r)
		return r
	}
	two := func(r *single.Request) { r.Keys = []string{"a", "b"} }
	plain, share, end := acquire("a", "me", time.Minute), reader("me", "1", time.Minute), release("a", "me")
	spare := func(n uint64) func(*single.Request) { return func(r *single.Request) { r.Spare = n } }
	keep := func(d time.Duration, as string) func(*single.Request) {
		return func(r *single.Request) { r.Keep, r.KeepAs = d, as }
	}
	for what, r := range map[string]single.Request{
		"no key":           {Op: single.Acquire, Owner: "me", TTL: time.Second},
		"empty key":        acquire("", "me", time.Second),
		"one empty key":    {Op: single.Release, Keys: []string{"a", ""}, Owner: "me"},
		"no owner":         acquire("key", "", time.Second),
		"extend, no owner": extend("key", "", time.Second, true),
		"release, nobody":  release("key", ""),
		"no hold's owner":  as(single.Release, reader("", "1", 0)),
		"no ttl":           acquire("key", "me", 0),
		"negative ttl":     acquire("key", "me", -time.Second),
		"ttl below 1 ms":   extend("key", "me", time.Millisecond-1, true),
		"inspect nothing":  {Op: single.Inspect},
		"an unknown kind":  with(share, func(r *single.Request) { r.Kind = 9 }),

		"no hold id":       reader("a", "", time.Minute),
		"a colon":          reader("a", "1:2", time.Minute),
		"two keys to read": with(share, two),
		"a reader's fence": with(share, func(r *single.Request) { r.Fence = true }),

		"a fence of two":   with(fenced("a", "me", 0), two),
		"a raise of two":   with(raise("a", "me", 1), two),
		"too high a token": fenced("a", "me", single.MaxToken+1),
		"too high a raise": raise("a", "me", single.MaxToken+1),

		"spare tokens of an extension": with(extend("a", "me", time.Minute, false), func(r *single.Request) {
			r.Token, r.Spare = 1, 1
		}),
		"spare tokens of a plain key": with(plain, spare(1)),
		"too many spare tokens":       with(fenced("a", "me", single.MaxToken-5), spare(6)),

		"a transfer of two":           with(transfer("a", "me", "b", 0), two),
		"a transfer from itself":      transfer("a", "a", "a", 1),
		"a transfer from nobody":      transfer("a", "a", "", 1),
		"a shared transfer":           with(as(single.Transfer, share), func(r *single.Request) { r.From = "b" }),
		"a transfer for no time":      with(transfer("a", "me", "b", 0), func(r *single.Request) { r.TTL = 0 }),
		"an acquisition from another": with(plain, func(r *single.Request) { r.From = "b" }),

		"kept for too short":      with(end, keep(time.Microsecond, "kept")),
		"kept as nothing":         with(end, keep(time.Minute, "")),
		"kept for no time":        with(end, keep(0, "kept")),
		"kept as its own":         with(end, keep(time.Minute, "me")),
		"an acquisition is kept":  with(plain, keep(time.Minute, "kept")),
		"a reader's hold is kept": with(as(single.Release, share), keep(time.Minute, "kept")),
	} {
		if _, err := m.Ask(t.Context(), r); err == nil || !strings.HasPrefix(err.Error(), "single: ") {
			t.Errorf("%s: %v, want an error of this package", what, err)
		}
	}
	if after := made(); before == "" || after != before {
		t.Errorf("there were %q connections, and there are %q", before, after)
	}
	if keys := server.Client().Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("keys were set: %q", keys)
	}
}

func TestHazard64ReservedNamesAreNoKeys(t *testing.T) {
	server, m := started(t)
	for _, key := range []string{single.QueueKey("x"), single.CounterKey("x"), single.GuardKey, "redlock:"} {
		for op := single.Acquire; op <= single.Leave; op++ {
			r := single.Request{Op: op, Keys: []string{"a", key}, Owner: "me", TTL: time.Minute}
			if _, err := m.Ask(t.Context(), r); err == nil || !strings.Contains(err.Error(), `"redlock:"`) {
				t.Errorf("operation %d on %s: %v", op, key, err)
			}
		}
	}
	if n := server.Client().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// A plain lock's owner cannot be taken for a hold.
func TestNoPlainLockLooksLikeAHold(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
	const value = "[hold]r:a:1"
	kept := release("key", "me")
	kept.Keep, kept.KeepAs = time.Second, value
	for name, r := range map[string]single.Request{
		"acquire": acquire("key", value, time.Minute), "release": release("key", value), "keep": kept,
		"transfer": {Op: single.Transfer, Keys: []string{"key"}, Owner: "me", From: value, TTL: time.Minute},
	} {
		if _, err := m.Ask(t.Context(), r); err == nil || !strings.Contains(err.Error(), "[hold]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryScriptHasTheSHAThatTheServerComputes(t *testing.T) {
	server := redistest.Start(t)
	for name, program := range single.Programs() {
		source, sha := program[0], program[1]
		loaded, err := server.Client().ScriptLoad(t.Context(), source).Result()
		must(t, err)
		if loaded != sha {
			t.Errorf("%s: the server knows it as %s, we as %s", name, loaded, sha)
		}
	}
}

func TestScriptsAreSentAgainWhenTheServerForgotThem(t *testing.T) {
	server, m := started(t)
	for round := range 2 {
		must(t, server.Client().Set(t.Context(), "key", "other", time.Minute).Err())
		refuses(t, m, "other", acquire("key", "me", time.Minute))
		grants(t, m, extend("key", "other", time.Hour, false))
		if got := ask(t, m, inspect("key")); got.Holder != "other" {
			t.Errorf("round %d: inspect: %+v", round, got)
		}
		grants(t, m, release("key", "other"))
		must(t, server.Client().ScriptFlush(t.Context()).Err())
	}
	before := ran(t, server)["eval"]
	for range 5 {
		ask(t, m, inspect("key"))
	}
	if sent := ran(t, server)["eval"] - before; sent != 1 {
		t.Errorf("the source was sent %d times for five requests, want once", sent)
	}
}

func TestABatchSendsEveryForgottenScriptOnce(t *testing.T) {
	server, m := started(t)
	const each = 20
	for range 2 { // the second time the connection has been used already
		must(t, server.Client().FlushDB(t.Context()).Err())
		must(t, server.Client().ScriptFlush(t.Context()).Err())
		before := ran(t, server)["eval"]
		var batch []*single.Call
		for i := range each {
			key := fmt.Sprint("key", i)
			must(t, server.Client().Set(t.Context(), key, "me", time.Minute).Err())
			batch = append(batch, batchOf(acquire(key, "other", time.Minute), acquire("free"+key, "me", time.Minute),
				extend(key, "me", time.Hour, false), inspect(key))...)
		}
		m.Do(t.Context(), batch)
		want := []single.Outcome{single.Refused, single.Granted, single.Granted, single.Granted}
		for i, c := range batch {
			took := want[i%4] != single.Refused // a refused call did nothing
			if c.Err != nil || c.Reply.Outcome != want[i%4] || c.Sent != took {
				t.Fatalf("call %d: %+v, %v, sent %t, want outcome %d", i, c.Reply, c.Err, c.Sent, want[i%4])
			}
		}
		for range 3 {
			grants(t, m, acquire("a", "me", time.Minute))
			bundle := releases("a me", "b me")
			if m.Do(t.Context(), bundle); said(bundle) != "granted refused" {
				t.Errorf("the bundle: %s", said(bundle))
			}
		}
		if sent := ran(t, server)["eval"] - before; sent != 4 {
			t.Errorf("scripts were sent %d times, want 4: acquire, extend, inspect, and a bundle's", sent)
		}
	}
}
