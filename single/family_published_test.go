package single_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// exact requests exactly this token.
func exact(key, owner string, token uint64) single.Request {
	r := fenced(key, owner, token)
	r.Exact = true
	return r
}

func TestAnExactTokenIsGivenOrRefused(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, retains := range []bool{false, true} { // the form without the script must not be used
		key := map[bool]string{false: "key", true: "k"}[retains]
		setCounter(t, server, key, 10)
		for _, step := range []struct {
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
			r := exact(key, step.owner, step.token)
			r.Retained = retains
			got := ask(t, m, r)
			if got.TTL > 0 && got.TTL <= time.Minute {
				got.TTL = time.Minute
			}
			if got != step.want {
				t.Errorf("%s asks for %d: %+v, want %+v", step.owner, step.token, got, step.want)
			}
		}
		if got := counted(t, server, key); got != "11" {
			t.Errorf("the counter is %s, want 11", got)
		}
	}
}

// After a refusal there must be no key with a value that names a token which it does not have.
func TestARefusedExactTokenSetsNothing(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	setCounter(t, server, "key", 10)
	r := exact("key", "me", 10)
	r.Retained = true
	ask(t, m, r)
	if n := server.Client().Exists(t.Context(), "key").Val(); n != 0 {
		t.Error("the key is set")
	}
}

func TestReleasedKeysAreKept(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	kept := func(d time.Duration, keys ...string) single.Request {
		r := release(keys[0], "me")
		r.Keys, r.Keep, r.KeepAs = keys, d, "kept"
		return r
	}
	near := func(key string, want time.Duration) {
		t.Helper()
		if got := server.Client().PTTL(t.Context(), key).Val(); got > want || got < want-30*time.Second {
			t.Errorf("%s lives for %v, want %v", key, got, want)
		}
	}
	ask(t, m, acquire("a", "me", 10*time.Minute))
	ask(t, m, acquire("b", "me", time.Minute))
	ask(t, m, acquire("c", "other", 10*time.Minute))
	if got := ask(t, m, kept(5*time.Minute, "a", "b")); got.Outcome != single.Granted {
		t.Errorf("both are the owner's: %+v", got)
	}
	near("a", 5*time.Minute)
	near("b", time.Minute) // never longer than it had
	if got := ask(t, m, kept(2*time.Minute, "a", "c")); got.Outcome != single.Refused {
		t.Errorf("a key is another owner's: %+v", got)
	}
	near("a", 2*time.Minute) // a repetition keeps it no longer than it says, and changes nothing else
	near("c", 10*time.Minute)
	if got := ask(t, m, kept(5*time.Minute, "a", "b")); got.Outcome != single.Granted {
		t.Errorf("repeated: %+v", got)
	}
	for name, late := range map[string]single.Request{
		"an extension": extend("a", "me", time.Hour, true), "a release": release("a", "me"),
		"a repetition": acquire("a", "me", time.Hour),
	} {
		if got := ask(t, m, late); got.Outcome != single.Refused {
			t.Errorf("%s of the owner that comes late: %+v", name, got)
		}
		near("a", 2*time.Minute)
	}
	full(t, server, true)
	r := kept(time.Minute, "c")
	r.Owner = "other"
	if got := ask(t, m, r); got.Outcome != single.Granted {
		t.Errorf("on a full master: %+v", got)
	}
	full(t, server, false)
	near("c", time.Minute)
	for _, bad := range []single.Request{
		{Op: single.Release, Keys: []string{"a"}, Owner: "me", Keep: time.Microsecond, KeepAs: "kept"},
		{Op: single.Release, Keys: []string{"a"}, Owner: "me", Keep: time.Minute},
		{Op: single.Release, Keys: []string{"a"}, Owner: "me", KeepAs: "kept"},
		{Op: single.Release, Keys: []string{"a"}, Owner: "me", Keep: time.Minute, KeepAs: "me"},
		{Op: single.Acquire, Keys: []string{"a"}, Owner: "me", TTL: time.Minute, Keep: time.Minute, KeepAs: "kept"},
		{
			Op: single.Release, Kind: single.Shared, Keys: []string{"a"}, Owner: "me", Hold: "h", Keep: time.Minute,
			KeepAs: "kept",
		},
	} {
		if _, err := m.Ask(t.Context(), bad); err == nil {
			t.Errorf("accepted: %+v", bad)
		}
	}
}
