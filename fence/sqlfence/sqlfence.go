// Package sqlfence makes a SQL database check fencing tokens. The comparison is part of the transaction, or of the
// statement, that makes the change, so no newer holder can get in between. It needs only database/sql; the program
// chooses the driver.
//
// There are two ways. [Fences.InTx] has a table with the greatest token of each lock's key, and protects all changes
// of the transaction. Or a row has a column with the token of its last writer: [Row] interprets the result of such an
// UPDATE.
//
// A token equal to the greatest one seen is accepted: one holder may make several changes. Tokens fit a signed
// BIGINT.
//
// The tests are in the examples module, and run against SQLite, PostgreSQL and MariaDB.
package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/seed-624411e5/redlock/fence"
)

// Dialect is the SQL that a database understands.
type Dialect uint8

// The dialects.
const (
	// SQLite is version 3.35 or later. Its transactions should begin as writers (_txlock=immediate with most drivers)
	// and wait for each other (busy_timeout). Otherwise InTx may return the error that the database is locked.
	SQLite Dialect = iota + 1
	// PostgreSQL is version 9.5 or later, and servers with its SQL. Driver: pgx's stdlib.
	PostgreSQL
	// MySQL is MySQL 5.7 or MariaDB 10.2, or later, with InnoDB.
	MySQL
)

// DefaultTable is the table of a Fences if New gets no other.
const DefaultTable = "redlock_fences"

// MaxKey is the longest key, in bytes. All of these databases can index a key of this length.
const MaxKey = 1024

// ErrInvalid matches errors about arguments. Nothing was sent to the database.
var ErrInvalid = errors.New("sqlfence: invalid argument")

// Fences is a table with the greatest token of each key. It is safe for concurrent use. It needs a connection only
// during calls of its methods.
type Fences struct {
	dialect Dialect
	table   string
	schema  string
	raise   string // to a token, if it is below
	read    string // reads the token; "" if raise returns it
	seen    string
}

var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// New returns a Fences over a table. The table's name may begin with a schema; "" is [DefaultTable]. New sends nothing.
// The error matches [ErrInvalid].
func New(dialect Dialect, table string) (*Fences, error) {
	if table == "" {
		table = DefaultTable
	}
	if !names.MatchString(table) {
		return nil,
			fmt.Errorf("%w: %.80q is no name of a table: letters, digits and underscores, and one dot behind a "+
				"schema's", ErrInvalid, table)
	}
	forms := map[Dialect][4]string{
		SQLite: {
			`CREATE TABLE IF NOT EXISTS {} (name TEXT PRIMARY KEY, token BIGINT NOT NULL)`,
			`INSERT INTO {} (name, token) VALUES (?, ?) ON CONFLICT (name)
				DO UPDATE SET token = max(token, excluded.token) RETURNING token`,
			``,
			`SELECT token FROM {} WHERE name = ?`,
		},
		PostgreSQL: {
			`CREATE TABLE IF NOT EXISTS {} (name TEXT PRIMARY KEY, token BIGINT NOT NULL)`,
			`INSERT INTO {} AS f (name, token) VALUES ($1, $2) ON CONFLICT (name)
				DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token) RETURNING token`,
			``,
			`SELECT token FROM {} WHERE name = $1`,
		},
		// An INSERT IGNORE followed by an UPDATE would make two transactions wait for each other, because the first
		// statement takes a shared lock on an existing row. Read the row with its lock, because a snapshot may be
		// older.
		MySQL: {
			`CREATE TABLE IF NOT EXISTS {} (name VARBINARY(1024) PRIMARY KEY, token BIGINT NOT NULL)
				ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
			`INSERT INTO {} (name, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))`,
			`SELECT token FROM {} WHERE name = ? FOR UPDATE`,
			`SELECT token FROM {} WHERE name = ?`,
		},
	}
	form, found := forms[dialect]
	if !found {
		return nil, fmt.Errorf("%w: unknown dialect %d", ErrInvalid, dialect)
	}
	for i := range form {
		form[i] = strings.ReplaceAll(form[i], "{}", table)
	}
	return &Fences{dialect: dialect, table: table, schema: form[0], raise: form[1], read: form[2], seen: form[3]}, nil
}

// Schema returns the statement that creates the table if it does not exist. Never remove rows: a removed row loses its
// key's token.
func (f *Fences) Schema() string { return f.schema }

// InTx makes any number of changes, to any tables, as one transaction under the token of the lock on key. Its first
// statement raises the key's row, which the database keeps locked until the transaction ends: a newer holder waits,
// an older one gets a [*fence.StaleError] and changes nothing. change must not commit or roll back.
//
// opts may be nil, for the database's default. Every isolation level from READ COMMITTED upwards works. From
// REPEATABLE READ upwards some databases end one of two concurrent transactions with their own error; call InTx again
// with the same token.
//
// If change fails, InTx rolls everything back, the token too, and returns the error. If the commit fails, you don't
// know whether it took effect. Other errors: [fence.ErrNoToken], [ErrInvalid], the driver's.
func (f *Fences) InTx(ctx context.Context, db *sql.DB, opts *sql.TxOptions, key string, token uint64,
	change func(tx *sql.Tx) error,
) (err error) {
	if db == nil || change == nil {
		return fmt.Errorf("%w: nil database or nil function", ErrInvalid)
	}
	if err := check(key, token); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("sqlfence: begin: %w", err)
	}
	defer func() { // also when change panics
		if rolled := tx.Rollback(); !errors.Is(rolled, sql.ErrTxDone) {
			err = errors.Join(err, rolled)
		}
	}()
	if err := f.Raise(ctx, tx, key, token); err != nil {
		return err
	}
	if err := change(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Raise is InTx's first statement, for a transaction that the caller manages. Call it before the transaction reads or
// changes data. If it fails, roll the transaction back. The error is a [*fence.StaleError] if a newer holder has raised
// the token.
func (f *Fences) Raise(ctx context.Context, tx *sql.Tx, key string, token uint64) error {
	if tx == nil {
		return fmt.Errorf("%w: nil transaction", ErrInvalid)
	}
	if err := check(key, token); err != nil {
		return err
	}
	var seen int64
	var err error
	if f.read == "" {
		err = tx.QueryRowContext(ctx, f.raise, key, int64(token)).Scan(&seen)
	} else if _, err = tx.ExecContext(ctx, f.raise, key, int64(token)); err == nil {
		err = tx.QueryRowContext(ctx, f.read, key).Scan(&seen)
	}
	switch {
	case err != nil:
		return fmt.Errorf("sqlfence: fence %q: %w", key, err)
	case uint64(seen) > token:
		return &fence.StaleError{Key: key, Token: token, Seen: uint64(seen)}
	}
	return nil
}

// Seen returns the greatest committed token of key; 0 if there is none.
func (f *Fences) Seen(ctx context.Context, db *sql.DB, key string) (uint64, error) {
	if db == nil {
		return 0, fmt.Errorf("%w: nil database", ErrInvalid)
	}
	if err := check(key, 1); err != nil {
		return 0, err
	}
	var seen int64
	err := db.QueryRowContext(ctx, f.seen, key).Scan(&seen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("sqlfence: fence %q: %w", key, err)
	}
	return uint64(seen), nil
}

func check(key string, token uint64) error {
	switch {
	case token == 0:
		return fmt.Errorf("%w (key %.64q)", fence.ErrNoToken, key)
	case token > 1<<63-1:
		return fmt.Errorf("%w: token %d does not fit a BIGINT", ErrInvalid, token)
	case key == "" || len(key) > MaxKey:
		return fmt.Errorf("%w: a key of %d bytes, and it must have 1 to %d", ErrInvalid, len(key), MaxKey)
	}
	return nil
}

// ErrCondition says that the row was not changed although it exists and no newer holder has written it. A condition of
// the UPDATE, other than the row's name and token, was false.
var ErrCondition = errors.New("sqlfence: a condition of the statement has kept the row from being changed")

// Row reports the result of a change to one row that has a column for the token of its last change:
//
//	result, err := db.ExecContext(ctx, `UPDATE orders SET state = 'shipped', token = ?
//		WHERE id = ? AND token <= ? AND state = 'packed'`, token, id, token)
//	if err != nil {
//		return err
//	}
//	row := db.QueryRowContext(ctx, `SELECT token, state = 'shipped' FROM orders WHERE id = ?`, id)
//	return sqlfence.Row(result, row, id, token)
//
// It returns nil if the row was changed, now or before. The error is a [*fence.StaleError] if another holder has
// written the row since. It matches [sql.ErrNoRows] if there is no such row, and [ErrCondition] if another condition
// has prevented the change.
//
// Row always reads now, which has two columns: the row's token, and whether the row is as the change leaves it. The
// second column distinguishes two cases. A repeated call finds its own earlier change: true. A third condition did not
// allow the change: false or NULL. Without a third condition in the UPDATE it may be TRUE. (MySQL counts only rows that
// change, so a count of 0 does not mean that there is no row.)
//
// A deleted row takes its token with it. Mark the row as deleted instead, for as long as an old holder could come back,
// or use [Fences.InTx].
func Row(result sql.Result, now *sql.Row, name string, token uint64) error {
	if result == nil || now == nil {
		return fmt.Errorf("%w: nil result or nil row", ErrInvalid)
	}
	var seen int64
	var done sql.NullBool
	read := now.Scan(&seen, &done) // Scan gives the connection back
	if token == 0 {
		return fmt.Errorf("%w (%.64q)", fence.ErrNoToken, name)
	}
	n, err := result.RowsAffected()
	switch {
	case err != nil:
		return fmt.Errorf("sqlfence: %q: %w", name, err)
	case n > 0:
		return nil
	case read != nil:
		return fmt.Errorf("sqlfence: %q: %w", name, read)
	case uint64(seen) > token:
		return &fence.StaleError{Key: name, Token: token, Seen: uint64(seen)}
	case uint64(seen) < token || !done.Bool:
		return fmt.Errorf("%w (%q, whose token is %d and not above %d)", ErrCondition, name, seen, token)
	}
	return nil
}
