package sqlfence_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/fence"
	"github.com/seed-624411e5/redlock/fence/sqlfence"
)

// The examples module tests the statements with databases, because it may require drivers.

func TestBadArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, table := range []string{"a b", "a;DROP", "1a", `"a"`, "a.b.c", "a.", strings.Repeat("a", 64)} {
		if _, err := sqlfence.New(sqlfence.SQLite, table); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("table %q: %v", table, err)
		}
	}
	for _, dialect := range []sqlfence.Dialect{0, 4} {
		if _, err := sqlfence.New(dialect, ""); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("dialect %d: %v", dialect, err)
		}
	}
	f, err := sqlfence.New(sqlfence.PostgreSQL, "app.fences")
	if err != nil || !strings.Contains(f.Schema(), " app.fences (") {
		t.Fatalf("%v: %v", f, err)
	}
	db, change := new(sql.DB), func(*sql.Tx) error { return nil }
	for what, got := range map[string]error{
		"no database":    f.InTx(t.Context(), nil, nil, "k", 1, change),
		"no change":      f.InTx(t.Context(), db, nil, "k", 1, nil),
		"no key":         f.InTx(t.Context(), db, nil, "", 1, change),
		"a long key":     f.InTx(t.Context(), db, nil, strings.Repeat("k", sqlfence.MaxKey+1), 1, change),
		"a great token":  f.InTx(t.Context(), db, nil, "k", 1<<63, change),
		"no transaction": f.Raise(t.Context(), nil, "k", 1),
		"no result":      sqlfence.Row(nil, nil, "k", 1),
	} {
		if !errors.Is(got, sqlfence.ErrInvalid) {
			t.Errorf("%s: %v", what, got)
		}
	}
	if err := f.InTx(t.Context(), db, nil, "k", 0, change); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("no token: %v", err)
	}
}
