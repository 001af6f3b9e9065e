package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // the driver

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/examples/sqlfence"
	"github.com/seed-624411e5/redlock/fence"
	fences "github.com/seed-624411e5/redlock/fence/sqlfence"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is one kind of database.
type backend struct {
	name    string
	dialect fences.Dialect
	open    func(t *testing.T) *sql.DB
}

// each runs a test on every database.
func each(t *testing.T, test func(t *testing.T, b backend)) {
	t.Helper()
	for _, b := range append([]backend{{"SQLite", fences.SQLite, openSQLite}}, servers()...) {
		t.Run(b.name, func(t *testing.T) { test(t, b) })
	}
}

func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fence.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// tables creates new tables with one row.
func tables(t *testing.T, b backend, db *sql.DB) *sqlfence.Documents {
	t.Helper()
	for _, table := range []string{"documents", fences.DefaultTable} {
		_, err := db.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+table)
		must(t, err)
	}
	for range 2 { // existing tables are left alone
		_, err := sqlfence.Open(t.Context(), db, b.dialect)
		must(t, err)
	}
	d, err := sqlfence.Open(t.Context(), db, b.dialect)
	must(t, err)
	_, err = db.ExecContext(t.Context(), `INSERT INTO documents (id, body) VALUES ('report', '')`)
	must(t, err)
	return d
}

func body(t *testing.T, db *sql.DB) string {
	t.Helper()
	var text string
	must(t, db.QueryRowContext(t.Context(), `SELECT body FROM documents WHERE id = 'report'`).Scan(&text))
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

func TestFencesOnEveryDatabase(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		db := b.open(t)
		for _, c := range []struct {
			name string
			test func(*testing.T, backend, *sql.DB)
		}{
			{"Update refuses older tokens", updateRefusesOlderTokens},
			{"a third condition is told from a change that is there", aThirdConditionIsTold},
			{"InTx refuses older tokens and rolls back", inTxRefusesOlderTokens},
			{"keys are told apart by every byte", keysAreToldApart},
			{"holders never overwrite their successors", holdersNeverOverwrite},
			{"without the comparison they do", withoutTheComparison},
		} {
			t.Run(c.name, func(t *testing.T) { c.test(t, b, db) })
		}
	})
}

func updateRefusesOlderTokens(t *testing.T, b backend, db *sql.DB) {
	d, ctx := tables(t, b, db), t.Context()
	must(t, d.Update(ctx, "report", "first", 33))
	must(t, d.Update(ctx, "report", "first", 33)) // this changes nothing, and MySQL counts no row
	must(t, d.Update(ctx, "report", "first again", 33))
	must(t, d.Update(ctx, "report", "second", 34))
	stale(t, d.Update(ctx, "report", "late", 33), fence.StaleError{Key: "report", Token: 33, Seen: 34})
	if got := body(t, db); got != "second" {
		t.Errorf("the row says %q, want the second holder's text", got)
	}
	if err := d.Update(ctx, "nothing", "", 35); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a row that is not there: %v, want sql.ErrNoRows", err)
	}
	if err := d.Update(ctx, "report", "", 0); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("no token: %v, want ErrNoToken", err)
	}
}

// If no row was counted and the row has the caller's own token, there are two cases: the change was made before, or it
// was not allowed.
func aThirdConditionIsTold(t *testing.T, b backend, db *sql.DB) {
	d, ctx := tables(t, b, db), t.Context()
	must(t, d.Update(ctx, "report", "draft", 33))
	for range 2 { // the second run finds the work done
		must(t, d.Replace(ctx, "report", "draft", "final", 33))
	}
	for token := range uint64(2) { // the same holder, and the next
		if err := d.Replace(ctx, "report", "draft", "other", 33+token); !errors.Is(err, fences.ErrCondition) {
			t.Errorf("token %d: a row that is not as it has to be: %v, want ErrCondition", 33+token, err)
		}
	}
	if got := body(t, db); got != "final" {
		t.Errorf("the row says %q", got)
	}
	stale(t, d.Replace(ctx, "report", "final", "late", 32), fence.StaleError{Key: "report", Token: 32, Seen: 33})
	if err := d.Replace(ctx, "nothing", "", "", 34); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a row that is not there: %v, want sql.ErrNoRows", err)
	}
}

func inTxRefusesOlderTokens(t *testing.T, b backend, db *sql.DB) {
	d, ctx := tables(t, b, db), t.Context()
	f, err := fences.New(b.dialect, "")
	must(t, err)
	seen := func(want uint64) {
		t.Helper()
		if got, err := f.Seen(ctx, db, "lock"); got != want || err != nil {
			t.Errorf("seen: %d, %v, want %d", got, err, want)
		}
	}
	seen(0)
	must(t, d.Rewrite(ctx, "lock", "first", 33))
	must(t, d.Rewrite(ctx, "lock", "second", 34))
	stale(t, d.Rewrite(ctx, "lock", "late", 33), fence.StaleError{Key: "lock", Token: 33, Seen: 34})
	broken := errors.New("broken")
	err = f.InTx(ctx, db, nil, "lock", 99, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE documents SET body = 'half'`)
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the change's own error", err)
	}
	must(t, d.Rewrite(ctx, "lock", "second again", 34)) // 99 was rolled back
	seen(34)
	if got := body(t, db); got != "second again" {
		t.Errorf("the row says %q", got)
	}
	must(t, d.Rewrite(ctx, "lock", "last", redlockMax))
	seen(redlockMax)
}

// redlockMax is the greatest token that a lock can have.
const redlockMax = 1<<53 - 1

func keysAreToldApart(t *testing.T, b backend, db *sql.DB) {
	d, ctx := tables(t, b, db), t.Context()
	for i, key := range []string{
		"a", "A", "a ", "ä", "a\u0308", strings.Repeat("k", fences.MaxKey), strings.Repeat("k", fences.MaxKey-1),
	} {
		if err := d.Rewrite(ctx, key, key, uint64(100-i)); err != nil {
			t.Errorf("%.20q: %v", key, err)
		}
	}
}

// drive has holders write at the same time, in any order, and then an old one again, and returns the faults. It is a
// fault if the database accepts a holder after a newer one, or refuses a holder without a newer one. It is also a fault
// if the row does not end with the newest holder's value.
func drive(t *testing.T, db *sql.DB, change func(token uint64) error) (faults []string) {
	t.Helper()
	const holders = 40
	var mu sync.Mutex
	newest := uint64(0) // of those that have been accepted
	hold := func(token uint64) {
		mu.Lock()
		before := newest
		mu.Unlock()
		err := change(token)
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
	}
	var wg sync.WaitGroup
	for i := range uint64(holders) {
		wg.Go(func() { hold(i*17%holders + 1) })
	}
	wg.Wait()
	hold(1) // it was paused meanwhile
	if got := body(t, db); got != fmt.Sprint(holders) {
		faults = append(faults, fmt.Sprintf("the row says %q, and the newest holder wrote %d", got, holders))
	}
	return faults
}

func holdersNeverOverwrite(t *testing.T, b backend, db *sql.DB) {
	for range 5 {
		d := tables(t, b, db)
		for _, fault := range drive(t, db, func(token uint64) error {
			return d.Update(t.Context(), "report", fmt.Sprint(token), token)
		}) {
			t.Error("Update: ", fault)
		}
		d = tables(t, b, db)
		for _, fault := range drive(t, db, func(token uint64) error {
			return d.Rewrite(t.Context(), "lock", fmt.Sprint(token), token)
		}) {
			t.Error("InTx: ", fault)
		}
	}
}

// The control: without the comparison the same holders do overwrite their successors.
func withoutTheComparison(t *testing.T, b backend, db *sql.DB) {
	tables(t, b, db)
	faults := drive(t, db, func(token uint64) error {
		_, err := db.ExecContext(t.Context(),
			fmt.Sprintf(`UPDATE documents SET body = '%d' WHERE id = 'report'`, token))
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
	db.SetMaxOpenConns(1) // each connection has a separate memory database
	documents, err := sqlfence.Open(ctx, db, fences.SQLite)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := db.ExecContext(ctx, `INSERT INTO documents (id, body) VALUES ('report', '')`); err != nil {
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
	fmt.Println("the next holder:", documents.Update(ctx, "report", "new", lock.Token()))

	err = documents.Update(ctx, "report", "old", paused.Token())
	var old *fence.StaleError
	fmt.Println("the paused one is refused:", errors.As(err, &old))
	// Output:
	// the next holder: <nil>
	// the paused one is refused: true
}
