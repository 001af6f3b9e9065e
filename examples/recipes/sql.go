package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // or the driver of your database

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/fence/sqlfence"
)

// shop is the database and its table of tokens. A program opens it once, as it does the Locker.
type shop struct {
	db     *sql.DB
	fences *sqlfence.Fences
}

// ship changes a row of a database that refuses late writers.
func (s *shop) ship(ctx context.Context, locker *redlock.Locker) error {
	return locker.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
		lock, _ := redlock.FromContext(ctx)
		return s.fences.InTx(ctx, s.db, nil, lock.Key(), lock.Token(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'shipped' WHERE id = 42`)
			return err
		})
	}, redlock.Fenced())
}

// ship opens the shop for one order, since it is the whole program here.
func ship(ctx context.Context, locker *redlock.Locker) error {
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	err = s.ship(ctx, locker)
	if err == nil {
		fmt.Println("shipped")
	}
	return errors.Join(err, s.db.Close())
}

// openShop makes the tables; your migrations do that.
func openShop(ctx context.Context) (*shop, error) {
	fences, err := sqlfence.New(sqlfence.SQLite, "") // or PostgreSQL, MySQL
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:shop?mode=memory&cache=shared")
	if err != nil {
		return nil, err
	}
	const orders = `CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT); INSERT INTO orders VALUES (42, 'paid')`
	for _, statement := range []string{fences.Schema(), orders} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &shop{db, fences}, nil
}
