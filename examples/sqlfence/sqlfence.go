// Package sqlfence shows package fence/sqlfence at work: documents in a SQL database which nobody changes whose lock has passed on.
//
// Update compares in the statement that changes the one row; Rewrite changes several rows in one transaction, after it has raised the token
// of the lock's key in a table of its own. Its tests run against SQLite, PostgreSQL and MariaDB.
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

	update, read, rewrite string // statements
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
		read:    `SELECT token FROM documents WHERE id = ?`,
		rewrite: `UPDATE documents SET body = ?`,
	}
	if dialect == sqlfence.PostgreSQL {
		d.update = `UPDATE documents SET body = $1, token = $2 WHERE id = $3 AND token <= $4`
		d.read = `SELECT token FROM documents WHERE id = $1`
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

// Update changes one row under the token of the lock that protects it. The error is a [*fence.StaleError] when another holder has
// written the row since, and matches [sql.ErrNoRows] when there is no such row; nothing was changed then.
func (d *Documents) Update(ctx context.Context, id, body string, token uint64) error {
	if token == 0 {
		return fence.ErrNoToken
	}
	result, err := d.db.ExecContext(ctx, d.update, body, int64(token), id, int64(token))
	if err != nil {
		return fmt.Errorf("update %q: %w", id, err)
	}
	return sqlfence.Row(result, d.db.QueryRowContext(ctx, d.read, id), id, token)
}

// Rewrite gives all documents one text, under the token of the lock on key.
func (d *Documents) Rewrite(ctx context.Context, key, body string, token uint64) error {
	return d.fences.InTx(ctx, d.db, nil, key, token, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, d.rewrite, body)
		return err
	})
}
