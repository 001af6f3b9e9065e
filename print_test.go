package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

// printed returns v in every form in which Go prints values.
func printed(v any) []string {
	var text, js strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Info("", "v", v)
	slog.New(slog.NewJSONHandler(&js, nil)).Info("", "v", v)
	return []string{
		fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s", v),
		text.String(), js.String(),
	}
}

func TestHazard115WhatIsPrintedHasNamesAndNoSecrets(t *testing.T) {
	const password = "hush-hush"
	server := redistest.Start(t, redistest.WithPassword(password))
	opt, err := redis.ParseURL(server.URL())
	Must(t, err)
	client, cluster := redis.NewClient(opt),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"b:1"}, Password: password})
	dialled, err := single.Dial(server.URL(), single.Options{})
	Must(t, err)
	brought, err := redlock.NewMaster(client)
	Must(t, err)
	clustered, err := redlock.NewMaster(cluster)
	Must(t, err)
	locker, err := redlock.New([]redlock.Master{dialled}, redlock.Options{})
	Must(t, err)
	lock := Acquire(t, locker, LongTTL)
	secret := lock.Owner()[strings.LastIndexByte(lock.Owner(), '/')+1:]
	group := sharded.Group{Name: "g", URLs: []string{server.URL()}}
	groups, err := sharded.New([]sharded.Group{group}, sharded.Options{})
	Must(t, err)
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"dialled master":      {dialled, server.Addr()},
		"master of a client":  {brought, server.Addr()},
		"master of a cluster": {clustered, "b:1"},
		"masters":             {[]redlock.Master{dialled, brought}, server.Addr() + " " + server.Addr()},
		"Locker":              {locker, "locker over " + server.Addr()},
		"Lock":                {lock, "lock on "},
		"Lock in a struct":    {struct{ L *redlock.Lock }{lock}, ""},
		"group":               {group, "group "},
		"sharded.Locker":      {groups, "locker over [group "},
		"no Locker":           {(*redlock.Locker)(nil), "no locker"},
		"no sharded.Locker":   {&sharded.Locker{}, "no locker"},
		"no master":           {(*single.Master)(nil), "no master"},
	} {
		for i, text := range printed(test.value) {
			isSlice := name == "masters" && i != 0 && i != 1 && i != 3 // in the forms in which nobody asks its elements
			if !strings.Contains(text, test.want) && !isSlice || strings.Contains(text, password) ||
				strings.Contains(text, secret) || len(text) > 300 {
				t.Errorf("%s: printed as %.300q (%d bytes), want %q", name, text, len(text), test.want)
			}
		}
	}
	for _, text := range printed(redlock.Options{Identity: "orders"}) {
		if !strings.Contains(text, "orders") || len(text) > 400 {
			t.Errorf("Options: printed as %q", text)
		}
	}
	if got, want := lock.String(), fmt.Sprintf("lock on %q #%s", Key, lock.ID()); got != want {
		t.Errorf("printed as %q, want %q", got, want)
	}
	if got := (*redlock.Lock)(nil).String(); got != "no lock" {
		t.Errorf("no lock is printed as %q", got)
	}
	Must(t, lock.Release(t.Context()))
	Must(t, locker.Close(context.Background()))
	Must(t, groups.Close(context.Background()))
	if text := fmt.Sprint(locker); !strings.HasSuffix(text, ", closed") {
		t.Errorf("after Close the Locker is printed as %q", text)
	}
	for _, c := range []interface{ Close() error }{dialled, client, cluster} {
		Must(t, c.Close())
	}
}

func TestHazard113OptionsAreEnoughWithoutAClient(t *testing.T) {
	const password = "hush-hush"
	servers := redistest.StartN(t, 3, redistest.WithPassword(password))
	masters := make([]*redis.Options, len(servers))
	for i, s := range servers {
		masters[i] = &redis.Options{Addr: s.Addr(), CredentialsProvider: func() (username, secret string) {
			return "", password
		}}
	}
	locker, err := redlock.Open(masters, redlock.Options{RestartGuard: LongTTL})
	Must(t, err)
	if _, err := locker.TryAcquire(t.Context(), Key, 2*LongTTL); !errors.Is(err, redlock.ErrInvalid) ||
		!strings.Contains(err.Error(), "guard") {
		t.Errorf("a ttl above the guard: %v", err)
	}
	Must(t, locker.Close(context.Background()))
	locker, err = redlock.Open(masters, redlock.Options{})
	Must(t, err)
	lock := Acquire(t, locker, LongTTL)
	Must(t, lock.Release(t.Context()))
	Must(t, locker.Close(context.Background())) // with its connections: TestMain looks for goroutines
	for name, bad := range map[string][]*redis.Options{
		"no masters":     nil,
		"nil options":    {masters[0], nil},
		"the same":       {masters[0], masters[0]},
		"the port":       {masters[0], {Addr: "a:99999"}},
		"PoolSize":       {{Addr: "a:1", PoolSize: -1}},
		"master 2 of 2:": {masters[0], nil},
	} {
		if _, err := redlock.Open(bad, redlock.Options{}); !errors.Is(err, redlock.ErrInvalid) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := redlock.Open(masters, redlock.Options{DriftFactor: 2}); !errors.Is(err, redlock.ErrInvalid) {
		t.Error(err)
	}
}

func TestMessagesCutLongKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"orders:42": `"orders:42"`, strings.Repeat("ö", 128): `"` + strings.Repeat("ö", 128) + `"`,
		strings.Repeat("ö", 30_000): `"` + strings.Repeat("ö", 200) + `"…(60000 bytes)`,
	} {
		e := &redlock.QuorumError{
			Reason: redlock.ErrHeld, Op: "acquire", Key: key, Quorum: 1, N: 1,
			Nodes: []redlock.NodeResult{{Master: "m", Vote: redlock.Refused, Key: key, TTL: time.Second}},
		}
		want = fmt.Sprintf("redlock: held by another: acquire %s: granted 0 of 1, need 1 "+
			"(m: refused because of %[1]s, free in 1s)", want)
		if e.Error() != want {
			t.Errorf("%q, want %q", e, want)
		}
	}
}
