// Package sqlfence shows how a SQL database checks fencing tokens: the comparison is part of the statement, or of the
// transaction, that makes the change, so nothing can get in between.
//
// The statements are standard enough for SQLite, PostgreSQL (with $1 for ?) and MySQL (with INSERT IGNORE for ON
// CONFLICT DO NOTHING). Tokens fit a signed BIGINT.
//
// A row that is deleted takes its token with it: mark it as deleted instead, for as long as an old holder could still
// come back, or use [InTx], whose tokens have a table of their own.
package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/seed-624411e5/redlock/fence"
)

// Schema creates what this package uses. Run it once, with whatever migrates your database.
const Schema = `
CREATE TABLE IF NOT EXISTS documents (
	id    VARCHAR(100) PRIMARY KEY,
	body  TEXT NOT NULL,
	token BIGINT NOT NULL DEFAULT 0 -- the greatest fencing token that has written this row
);
CREATE TABLE IF NOT EXISTS fences (
	name  VARCHAR(100) PRIMARY KEY, -- the lock's key
	token BIGINT NOT NULL           -- the greatest fencing token seen of it
);`

// Update changes one row under the token of the lock that protects it. The error is a [*fence.StaleError] when another
// holder has written the row since, and matches [sql.ErrNoRows] when there is no such row; nothing was changed then.
func Update(ctx context.Context, db *sql.DB, id, body string, token uint64) error {
	if token == 0 {
		return fence.ErrNoToken
	}
	result, err := db.ExecContext(ctx,
		`UPDATE documents SET body = ?, token = ? WHERE id = ? AND token <= ?`, body, int64(token), id, int64(token))
	if err != nil {
		return fmt.Errorf("update %q: %w", id, err)
	}
	// MySQL counts only rows that differ unless told otherwise (clientFoundRows=true).
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return explain(db.QueryRowContext(ctx, `SELECT token FROM documents WHERE id = ?`, id), id, token)
}

// InTx makes any number of changes, to any tables, as one transaction under the token of the lock on key. It raises the
// key's row in fences first, and the database keeps that row locked until the transaction ends: a newer holder waits,
// an older one gets a [*fence.StaleError] and changes nothing. That holds from READ COMMITTED on. A change that fails
// rolls everything back, the token included.
func InTx(ctx context.Context, db *sql.DB, key string, token uint64, change func(tx *sql.Tx) error) (err error) {
	if token == 0 {
		return fence.ErrNoToken
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if rolled := tx.Rollback(); !errors.Is(rolled, sql.ErrTxDone) {
			err = errors.Join(err, rolled)
		}
	}()
	if _, err := tx.ExecContext(ctx, `INSERT INTO fences (name, token) VALUES (?, 0) ON CONFLICT DO NOTHING`, key); err != nil {
		return fmt.Errorf("fence %q: %w", key, err)
	}
	result, err := tx.ExecContext(ctx, `UPDATE fences SET token = ? WHERE name = ? AND token <= ?`, int64(token), key, int64(token))
	if err != nil {
		return fmt.Errorf("fence %q: %w", key, err)
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n == 0:
		return explain(tx.QueryRowContext(ctx, `SELECT token FROM fences WHERE name = ?`, key), key, token)
	}
	if err := change(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// explain says why a row was not changed: somebody else's token is in it, or it is not there.
func explain(row *sql.Row, key string, token uint64) error {
	var seen int64
	if err := row.Scan(&seen); err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return &fence.StaleError{Key: key, Token: token, Seen: uint64(seen)}
}
