// Package sqlfence shows package fence/sqlfence at work. A process changes a document in a SQL database only while no
// newer holder has had its lock.
//
// Update compares the token in the statement that changes the one row. Replace does the same and has one more
// condition. Rewrite changes several rows in one transaction, after it has raised the token of the lock's key in a
// separate table. The tests run against SQLite, PostgreSQL and MariaDB.
package sqlfence

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/seed-624411e5/redlock/fence"
	"github.com/seed-624411e5/redlock/fence/sqlfence"
)

// Documents is a table in a database.
type Documents struct {
	db     *sql.DB
	fences *sqlfence.Fences

	update, replace, read, rewrite string // statements
}

// Open makes the tables where there are none.
func Open(ctx context.Context, db *sql.DB, dialect sqlfence.Dialect) (*Documents, error) {
	fences, err := sqlfence.New(dialect, "")
	if err != nil {
		return nil, err
	}
	d := &Documents{
		db: db, fences: fences,
		update:  `UPDATE documents SET body = ?, token = ? WHERE id = ? AND token <= ?`,
		replace: `UPDATE documents SET body = ?, token = ? WHERE id = ? AND token <= ? AND body = ?`,
		read:    `SELECT token, body = ? FROM documents WHERE id = ?`,
		rewrite: `UPDATE documents SET body = ?`,
	}
	if dialect == sqlfence.PostgreSQL {
		d.update = `UPDATE documents SET body = $1, token = $2 WHERE id = $3 AND token <= $4`
		d.replace = `UPDATE documents SET body = $1, token = $2 WHERE id = $3 AND token <= $4 AND body = $5`
		d.read = `SELECT token, body = $1 FROM documents WHERE id = $2`
		d.rewrite = `UPDATE documents SET body = $1`
	}
	const documents = `CREATE TABLE IF NOT EXISTS documents (
	id    VARCHAR(100) PRIMARY KEY,
	body  TEXT NOT NULL,
	token BIGINT NOT NULL DEFAULT 0 -- the greatest fencing token that has written this row
)`
	for _, statement := range []string{documents, fences.Schema()} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Update changes one row under the token of the lock that protects it. The error is a [*fence.StaleError] if another
// holder has written the row since, and matches [sql.ErrNoRows] if there is no such row. On an error nothing was
// changed.
func (d *Documents) Update(ctx context.Context, id, body string, token uint64) error {
	if token == 0 {
		return fence.ErrNoToken
	}
	return d.change(ctx, id, body, token, d.update, body, int64(token), id, int64(token))
}

// Replace is Update for a row with the body from. It also succeeds if the row has body already, so that a repeated call
// finds its own change. The error matches [sqlfence.ErrCondition] if the row has another body. On an error nothing was
// changed.
func (d *Documents) Replace(ctx context.Context, id, from, body string, token uint64) error {
	if token == 0 {
		return fence.ErrNoToken
	}
	return d.change(ctx, id, body, token, d.replace, body, int64(token), id, int64(token), from)
}

// change gives a row this body, by a statement that compares the token.
func (d *Documents) change(ctx context.Context, id, body string, token uint64, statement string, args ...any) error {
	result, err := d.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("update %q: %w", id, err)
	}
	return sqlfence.Row(result, d.db.QueryRowContext(ctx, d.read, body, id), id, token)
}

// Rewrite gives all documents one text, under the token of the lock on key.
func (d *Documents) Rewrite(ctx context.Context, key, body string, token uint64) error {
	return d.fences.InTx(ctx, d.db, nil, key, token, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, d.rewrite, body)
		return err
	})
}
