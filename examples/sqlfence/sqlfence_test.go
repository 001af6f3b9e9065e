package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // the driver

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/examples/sqlfence"
	"github.com/seed-624411e5/redlock/fence"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes a database with the schema and one row.
func open(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fence.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range []string{sqlfence.Schema, `INSERT INTO documents (id, body) VALUES ('report', '')`} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func body(t *testing.T, db *sql.DB) string {
	t.Helper()
	var text string
	if err := db.QueryRowContext(t.Context(), `SELECT body FROM documents WHERE id = 'report'`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stale fails the test unless err says just this.
func stale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	var got *fence.StaleError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

func TestUpdateRefusesOlderTokens(t *testing.T) {
	db, ctx := open(t), t.Context()
	must(t, sqlfence.Update(ctx, db, "report", "first", 33))
	must(t, sqlfence.Update(ctx, db, "report", "first again", 33))
	must(t, sqlfence.Update(ctx, db, "report", "second", 34))
	stale(t, sqlfence.Update(ctx, db, "report", "late", 33), fence.StaleError{Key: "report", Token: 33, Seen: 34})
	if got := body(t, db); got != "second" {
		t.Errorf("the row says %q, want what the second holder wrote", got)
	}
	if err := sqlfence.Update(ctx, db, "nothing", "", 35); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a row that is not there: %v, want sql.ErrNoRows", err)
	}
	if err := sqlfence.Update(ctx, db, "report", "", 0); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("no token: %v, want ErrNoToken", err)
	}
}

// write changes the row without looking at its token, which InTx does for it.
func write(ctx context.Context, text string) func(tx *sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE documents SET body = ? WHERE id = 'report'`, text)
		return err
	}
}

func TestInTxRefusesOlderTokensAndRollsBack(t *testing.T) {
	db, ctx := open(t), t.Context()
	must(t, sqlfence.InTx(ctx, db, "lock", 33, write(ctx, "first")))
	must(t, sqlfence.InTx(ctx, db, "lock", 34, write(ctx, "second")))
	stale(t, sqlfence.InTx(ctx, db, "lock", 33, write(ctx, "late")), fence.StaleError{Key: "lock", Token: 33, Seen: 34})
	broken := errors.New("broken")
	err := sqlfence.InTx(ctx, db, "lock", 99, func(tx *sql.Tx) error {
		return errors.Join(write(ctx, "half")(tx), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the change's own error", err)
	}
	must(t, sqlfence.InTx(ctx, db, "lock", 34, write(ctx, "second again"))) // 99 was rolled back
	if got := body(t, db); got != "second again" {
		t.Errorf("the row says %q", got)
	}
	if err := sqlfence.InTx(ctx, db, "lock", 0, write(ctx, "")); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("no token: %v, want ErrNoToken", err)
	}
}

// drive has holders write in any order, at the same time, and returns what went wrong: somebody was accepted after a
// newer holder, or refused without one, or the row does not end with what the newest wrote.
func drive(t *testing.T, change func(ctx context.Context, db *sql.DB, token uint64) error) (faults []string) {
	t.Helper()
	db := open(t)
	const holders = 40
	var mu sync.Mutex
	newest := uint64(0) // of those that have been accepted
	var wg sync.WaitGroup
	for i := range uint64(holders) {
		wg.Go(func() {
			token := i*17%holders + 1
			mu.Lock()
			before := newest
			mu.Unlock()
			err := change(t.Context(), db, token)
			var old *fence.StaleError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && token < before:
				faults = append(faults, fmt.Sprintf("token %d was accepted after %d", token, before))
			case err == nil:
				newest = max(newest, token)
			case !errors.As(err, &old) || old.Seen <= token:
				faults = append(faults, fmt.Sprintf("token %d: %v", token, err))
			}
		})
	}
	wg.Wait()
	if got := body(t, db); got != fmt.Sprint(holders) {
		faults = append(faults, fmt.Sprintf("the row says %q, and the newest holder wrote %d", got, holders))
	}
	return faults
}

func TestConcurrentHoldersNeverOverwriteTheirSuccessors(t *testing.T) {
	t.Run("Update", func(t *testing.T) {
		for _, fault := range drive(t, func(ctx context.Context, db *sql.DB, token uint64) error {
			return sqlfence.Update(ctx, db, "report", fmt.Sprint(token), token)
		}) {
			t.Error(fault)
		}
	})
	t.Run("InTx", func(t *testing.T) {
		for _, fault := range drive(t, func(ctx context.Context, db *sql.DB, token uint64) error {
			return sqlfence.InTx(ctx, db, "lock", token, write(ctx, fmt.Sprint(token)))
		}) {
			t.Error(fault)
		}
	})
}

// The control: without the comparison the same holders do overwrite their successors.
func TestWithoutTheComparisonHoldersOverwriteTheirSuccessors(t *testing.T) {
	faults := drive(t, func(ctx context.Context, db *sql.DB, token uint64) error {
		_, err := db.ExecContext(ctx, `UPDATE documents SET body = ? WHERE id = 'report'`, fmt.Sprint(token))
		return err
	})
	if len(faults) == 0 {
		t.Error("nothing went wrong: the holders prove nothing")
	}
}

// A holder is paused until its lock has passed on, and then goes on writing.
func Example() {
	ctx := context.Background()
	masters, err := embedded.Start(3) // in your program: the URLs of three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	locker, err := redlock.Dial(ctx, masters.URLs(), redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locker.Close(ctx) }()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	if _, err := db.ExecContext(ctx, sqlfence.Schema+`; INSERT INTO documents (id, body) VALUES ('report', '')`); err != nil {
		fmt.Println(err)
		return
	}

	paused, err := locker.Acquire(ctx, "report", 200*time.Millisecond, redlock.Fenced())
	if err != nil {
		fmt.Println(err)
		return
	}
	<-paused.Done() // it does not notice

	lock, err := locker.Acquire(ctx, "report", 10*time.Second, redlock.Fenced())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lock.Release(ctx) }()
	fmt.Println("the next holder:", sqlfence.Update(ctx, db, "report", "new", lock.Token()))

	err = sqlfence.Update(ctx, db, "report", "old", paused.Token())
	var old *fence.StaleError
	fmt.Println("the paused one is refused:", errors.As(err, &old))
	// Output:
	// the next holder: <nil>
	// the paused one is refused: true
}
