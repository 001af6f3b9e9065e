// Package slogobserver logs the events of a Locker through log/slog.
package slogobserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe"
)

// New returns an observer that writes to logger; nil is slog.Default. Safe for concurrent use. The levels:
//
//   - Error: a held lock is lost, or a master leaves so many releases unconfirmed that keys must expire
//   - Warn: a round without a quorum or with late votes; a master that did not answer; a lock that its caller released
//     after it was lost; the end of such a trouble
//   - Info: a lock was acquired or released, or an acquisition failed for another reason than a holder
//   - Debug: everything else, and each repetition
//
// A trouble that lasts has two lines: one when it begins, and one when nothing has failed for 10 s. The second line has
// the number of failures and the time that they lasted. These are troubles: a master that does not answer, a master
// that leaves too many releases unconfirmed, all failures without a quorum, and all failures for lack of time. Each
// lost lock has a line.
//
// Events have the key, so keys are in the log; owners and passwords are not.
func New(logger *slog.Logger) func(redlock.Event) {
	var mu sync.Mutex
	all := newTroubles()
	return func(e redlock.Event) {
		l := logger
		if l == nil {
			l = slog.Default()
		}
		ctx, now, level := e.Context, time.Now(), levelOf(e)
		if ctx == nil { // not of a Locker
			ctx = context.Background()
		}
		mu.Lock()
		defer mu.Unlock()
		if t := all.of(e); t == nil {
			all.over(e, now, func(message string, attrs []slog.Attr) {
				if attrs != nil && e.Master != "" {
					attrs = append(attrs, slog.String("master", e.Master))
				}
				if attrs != nil {
					l.LogAttrs(context.Background(), slog.LevelWarn, message, attrs...)
				}
			})
		} else if !t.fails(now) {
			level = slog.LevelDebug
		}
		if l.Enabled(ctx, level) {
			l.LogAttrs(ctx, level, "redlock "+e.Kind.String(), attributes(e)...)
		}
	}
}

func levelOf(e redlock.Event) slog.Level {
	result := observe.Result(e.Err)
	switch {
	case e.Kind == redlock.EventLost, e.Kind == redlock.EventPending && e.Err != nil:
		return slog.LevelError
	case result == "no_quorum", result == "expired", e.Kind == redlock.EventVote && e.Vote == redlock.Unknown,
		e.Kind == redlock.EventRelease && e.Held && e.Err != nil:
		return slog.LevelWarn
	case e.Kind == redlock.EventReturned && result != "held" && result != "contended", e.Kind == redlock.EventRelease &&
		e.Held, e.Kind == redlock.EventPass, e.Kind == redlock.EventHandover:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func attributes(e redlock.Event) []slog.Attr {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("key", e.Key))
	if e.Op != "" && e.Op != e.Kind.String() {
		attrs = append(attrs, slog.String("op", e.Op))
	}
	if e.Master != "" {
		attrs = append(attrs, slog.String("master", e.Master))
	}
	switch e.Kind {
	case redlock.EventAcquire, redlock.EventExtend, redlock.EventVerify, redlock.EventRelease:
		attrs = append(attrs, slog.Int("granted", e.Granted), slog.Int("refused", e.Refused),
			slog.Int("unknown", e.Unknown),
			slog.Int("quorum", e.Quorum), slog.Int("masters", e.N), slog.Duration("took", e.Took))
		if e.Set != "" {
			attrs = append(attrs, slog.String("set", e.Set))
		}
	case redlock.EventVote:
		attrs = append(attrs, slog.String("vote", e.Vote.String()), slog.Duration("took", e.Took))
	case redlock.EventReturned:
		attrs = append(attrs, slog.Int("rounds", e.Rounds), slog.Duration("took", e.Took))
	}
	if e.Missed > 0 {
		attrs = append(attrs, slog.Int("missed", e.Missed))
	}
	if e.Held {
		attrs = append(attrs, slog.Duration("held_for", e.HeldFor))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	return attrs
}
