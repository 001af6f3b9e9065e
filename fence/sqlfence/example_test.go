package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/fence/sqlfence"
)

// The database refuses a transaction if a newer holder has replaced its holder. The program chooses the driver. Package
// examples/sqlfence tests the same with SQLite, PostgreSQL and MariaDB.
func Example() {
	ctx := context.Background()
	locker, err := redlock.Dial(ctx, []string{"redis://a:6379", "redis://b:6379", "redis://c:6379"}, redlock.Options{})
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("pgx", "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	fences, err := sqlfence.New(sqlfence.PostgreSQL, "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, fences.Schema()); err != nil { // once, by whatever migrates the database
		log.Fatal(err)
	}

	lock, err := locker.Acquire(ctx, "orders:42", 10*time.Second, redlock.Fenced())
	if err != nil {
		log.Fatal(err)
	}
	err = fences.InTx(ctx, db, nil, lock.Key(), lock.Token(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'shipped' WHERE id = 42`)
		return err
	})
	if err := errors.Join(err, lock.Release(ctx)); err != nil {
		log.Fatal(err)
	}
}
