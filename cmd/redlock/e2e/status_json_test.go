package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// seen is the output of `redlock status -json` for a key, by all masters and by each one.
type seen struct {
	Key     string
	Raw     []byte `json:"key_base64"`
	Verdict string
	shown
	Masters []shown
}

type shown struct {
	Holder *string
	Holds  *int
	TTL    *float64 `json:"ttl_seconds"`
	NoLock string   `json:"no_lock"`
}

func statusJSON(t *testing.T, master *redistest.Server, status int, key string) seen {
	t.Helper()
	r := runRedlock(t, "status", "-json", "-masters", master.URL(), key)
	r.want(t, status, "")
	var s seen
	if err := json.Unmarshal([]byte(r.out), &s); err != nil || len(s.Masters) != 1 {
		t.Fatalf("%v: %q %q", err, r.out, r.err)
	}
	return s
}

func TestStatusJSONOfDataThatIsNoLockNamesNoOwner(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	c, ctx := master.Client(), t.Context()
	must(t, c.Set(ctx, "string", "somebody", 0).Err())
	must(t, c.Set(ctx, "json", `{"user":1}`, time.Hour).Err())
	must(t, c.HSet(ctx, "hash", "field", "value").Err())
	for _, key := range []string{"string", "json", "hash"} {
		s := statusJSON(t, master, 0, key)
		m := s.Masters[0]
		if s.Verdict != "held" || m.NoLock == "" || s.Holder != nil || m.Holder != nil || s.Holds != nil ||
			m.Holds != nil {
			t.Errorf("%s: %+v", key, s)
		}
		for _, ttl := range []*float64{s.TTL, m.TTL} {
			if ttl != nil && *ttl < 0 && *ttl != -1 {
				t.Errorf("%s: a ttl of %v", key, *ttl)
			}
		}
	}
	if ttl := statusJSON(t, master, 0, "string").Masters[0].TTL; ttl == nil || *ttl != -1 {
		t.Errorf("what never expires has a ttl of %v", ttl)
	}
	must(t, c.Set(ctx, "lock", "somebody", time.Hour).Err())
	if s := statusJSON(t, master, 0, "lock"); s.Holder == nil || s.Masters[0].Holder == nil || s.Raw != nil {
		t.Errorf("a lock: %+v", s)
	}
}

func TestEventsInJSONShowAKeyThatIsNoText(t *testing.T) {
	t.Parallel()
	const key = "b\xff\xfen"
	masters := redistest.Start(t).URL()
	log := runRedlock(t, "run", "-log", "json", "-masters", masters, "-key", key, "--", "true")
	receipt := runRedlock(t, "acquire", "-json", "-masters", masters, "-key", key, "-ttl", "1m", "-out",
		filepath.Join(t.TempDir(), "ticket"))
	lines := strings.Split(strings.TrimSpace(log.err+receipt.out), "\n")
	if len(lines) < 3 {
		t.Errorf("only %q", lines)
	}
	for _, line := range lines {
		var event seen
		if err := json.Unmarshal([]byte(line), &event); err != nil || string(event.Raw) != key {
			t.Errorf("%v: %q", err, line)
		}
	}
}

func TestStatusJSONShowsAKeyThatIsNoText(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	for _, key := range []string{"b\xff\xfen", "\xc3", "b\xffn"} {
		if s := statusJSON(t, master, 1, key); string(s.Raw) != key {
			t.Errorf("%q became %q and %q", key, s.Key, s.Raw)
		}
	}
	for _, key := range []string{"plain", "größe", "\ufffd", "a\nb"} {
		if s := statusJSON(t, master, 1, key); s.Key != key || s.Raw != nil {
			t.Errorf("%q became %q and %q", key, s.Key, s.Raw)
		}
	}
}
