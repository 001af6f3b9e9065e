package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
	"github.com/seed-624411e5/redlock/semaphore"
)

const (
	// closeTimeout limits how long unconfirmed releases delay the end, if others may wait for the key. Keys that are
	// left expire after their ttl.
	closeTimeout = 2 * time.Second
	// confirmedTimeout is the limit if a quorum has confirmed: a key on one of the other masters keeps no one waiting.
	confirmedTimeout = 200 * time.Millisecond
	// attemptTimeout is the limit after an attempt that has failed, or that a signal has ended.
	attemptTimeout = 500 * time.Millisecond
)

// taker takes a lock as its flags say.
type taker struct {
	lockFlags
	masters  masterFlags
	log      *journal
	record   record
	signals  chan os.Signal
	renewals renewals
	unwanted <-chan struct{} // closed when the lock is no longer wanted; nil: never
	ends     string          // the reason why unwanted was closed
}

// held is a lock or permit that was taken.
type held struct {
	*redlock.Lock
	slot   *int // of a permit; nil: it is none
	since  time.Time
	waited time.Duration
}

// with takes the lock, runs work under it, and closes the Locker and the masters. work releases the lock, and returns
// the release's error and its own.
func (t *taker) with(ctx context.Context, io *terminal, options []redlock.Option,
	work func(h *held) (released, err error),
) error {
	t.renewals.changed = t.renewalChanged
	t.log = &journal{
		notes: newNotes(io.err), keys: t.keys, json: t.logJSON, verbose: t.verbose, quiet: t.quiet,
	}
	defer t.log.notes.flush()
	if path := t.masters.config; path != "" {
		t.log.tell(entry{Event: eventSettings}, "settings are read from %s", path)
	}
	masters, err := t.masters.openLocker(t.renewals.observe)
	if err != nil {
		return t.log.last(err)
	}
	defer masters.close()
	child.WriteErrors() // a closed standard error does not end the supervision
	t.signals = make(chan os.Signal, 16)
	ends := slices.DeleteFunc(child.Forwarded(), func(sig os.Signal) bool {
		return !child.Ends(sig) && sig != child.Report
	})
	signal.Notify(t.signals, ends...)
	defer signal.Stop(t.signals)

	h, err := t.acquire(ctx, io, masters.locker, options)
	if err != nil {
		closeSoon(masters.locker, attemptTimeout)
		return t.log.last(t.conflict(t.masters.silent(err)))
	}
	t.record.acquired(h)
	t.log.tell(entry{Event: eventAcquired, Slot: h.slot, Token: t.token(h), Waited: h.waited.Seconds()},
		"acquired %s%s after %s", t.what(), t.particulars(h), brief(h.waited))
	released, err := work(h)
	if released == errKept { //nolint:errorlint // it is just this one
		closeSoon(masters.locker, confirmedTimeout) // for masters that have not answered yet
		return t.log.last(err)
	}
	done, timeout := entry{Event: eventReleased, Slot: h.slot, Token: t.token(h), Held: time.Since(h.since).Seconds()},
		confirmedTimeout
	text := fmt.Sprintf("released %s after %s", t.what(), brief(time.Since(h.since)))
	switch {
	case isNotHeld(released):
		done.Event, timeout = eventLost, closeTimeout
		text = fmt.Sprintf("%s was lost: %v", t.what(), bare{released})
	case released != nil:
		timeout = closeTimeout
		text += fmt.Sprintf(", and it lapses by its ttl where that is not known: %v", bare{released})
	}
	closeSoon(masters.locker, timeout)
	t.log.tell(done, "%s", text)
	return t.log.last(err)
}

// token returns the lock's token as text; "" if it has none.
func (t *taker) token(h *held) string {
	if !t.hasToken() {
		return ""
	}
	return strconv.FormatUint(h.Token(), 10)
}

// particulars returns, for a sentence, the lock's slot and token, if it has them.
func (t *taker) particulars(h *held) (text string) {
	if h.slot != nil {
		text += fmt.Sprintf(", slot %d", *h.slot)
	}
	if t.hasToken() {
		text += ", token " + t.token(h)
	}
	return text
}

// renewalChanged reports a failed renewal with its reason, and the first successful renewal after it.
func (t *taker) renewalChanged(failed string) {
	if failed != "" {
		t.log.tell(entry{Event: eventRenewalFailed}, "a renewal of %s failed: %s", t.what(), failed)
		return
	}
	t.log.tell(entry{Event: eventRenewed}, "renewals of %s succeed again", t.what())
}

// conflict gives an error for a held lock the status of -E.
func (t *taker) conflict(err error) error {
	if _, is := errors.AsType[*statusError](err); is || t.conflictStatus == statusHeld ||
		!errors.Is(err, redlock.ErrHeld) {
		return err
	}
	if t.quiet { // a user who chooses a status reads the status
		return silently(t.conflictStatus)
	}
	return exit(t.conflictStatus, "%w", err)
}

// acquire waits for the lock. A signal that is meant to end a program ends the wait.
func (t *taker) acquire(ctx context.Context, io *terminal, locker *redlock.Locker, options []redlock.Option) (*held,
	error,
) {
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan os.Signal)
	w := &wait{taker: t, locker: locker, began: time.Now(), asked: make(chan struct{}, 1)}
	go func() { watched <- t.firstEnd(ctx, cancel, w) }()
	h, err := t.attempts(ctx, io, w, options)
	cancel()
	ended := <-watched
	if ended == nil {
		return h, err
	}
	stopped := fmt.Errorf("%v while waiting for %s", ended, t.what())
	if err == nil { // the lock and the signal came at once: do not start the command
		stopped = also(stopped, h.Release(context.WithoutCancel(ctx)))
	}
	return nil, &statusError{status: statusSignal + number(ended), err: stopped, signal: ended}
}

// firstEnd calls cancel at the first signal that ends a wait, and returns the signal; nil if ctx ends first.
func (t *taker) firstEnd(ctx context.Context, cancel context.CancelFunc, w *wait) os.Signal {
	for {
		select {
		case sig := <-t.signals:
			if sig == child.Report {
				w.report()
				continue
			}
			cancel()
			return sig
		case <-ctx.Done():
			return nil
		}
	}
}

// attempts makes the first attempt, and then waits unless one attempt is wanted.
func (t *taker) attempts(ctx context.Context, io *terminal, w *wait, options []redlock.Option) (*held, error) {
	h, err := t.take(ctx, w, false, options)
	if err == nil {
		return h, nil
	}
	if never := w.forItself(ctx, err); never != nil {
		return nil, never
	}
	passes := errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrContended) ||
		errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrExpired)
	if t.try || t.wait == 0 || !passes || ctx.Err() != nil {
		return nil, w.inWords(err)
	}
	first := err
	t.record.waits()
	defer w.start(ctx, io, err)()
	if t.wait < forever {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, w.began.Add(t.wait))
		defer stop()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-t.unwanted:
			cancel(errUnwanted)
		case <-ctx.Done():
		}
	}()
	h, err = t.take(ctx, w, true, options)
	if err != nil && context.Cause(ctx) == errUnwanted { //nolint:errorlint // it is just this one
		return nil, exit(statusHeld, "%s ended while waiting for %s", t.ends, t.what())
	}
	return h, w.gaveUp(err, first)
}

// errUnwanted ends a wait of redlock hold.
var errUnwanted = errors.New("nobody wants the lock any more")

// take takes the lock or a permit. Unless it waits, it makes one attempt.
func (t *taker) take(ctx context.Context, w *wait, waits bool, options []redlock.Option) (*held, error) {
	options = append(options, t.options()...)
	if t.permits == 0 {
		take := w.locker.TryAcquire
		if waits {
			take = w.locker.Acquire
		}
		lock, err := take(ctx, t.keys[0], t.ttl, options...)
		return newHeld(lock, nil, w, err)
	}
	s, err := semaphore.New(w.locker, t.keys[0], t.permits)
	if err != nil {
		return nil, err
	}
	take := s.TryAcquire
	if waits {
		take = s.Acquire
	}
	permit, err := take(ctx, t.ttl, options...)
	if err != nil {
		return nil, err
	}
	return newHeld(permit.Lock, &permit.Slot, w, nil)
}

func newHeld(lock *redlock.Lock, slot *int, w *wait, err error) (*held, error) {
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &held{lock, slot, now, now.Sub(w.began)}, nil
}

// gaveUp puts the end of -wait into the command's words. The reader needs the last attempt's error, or the first one's
// if no other attempt ended in time.
func (w *wait) gaveUp(err, first error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if last, ok := errors.AsType[*redlock.QuorumError](err); ok {
		first = last
	}
	return fmt.Errorf("gave up after %v: %w", w.taker.lockFlags.wait, bare{w.inWords(first)})
}

// inWords replaces the error for a held lock by one that names the holder, if a quorum of masters knows it. For a
// permit it describes all slots, because the library's error is about one slot.
func (w *wait) inWords(err error) error {
	t := w.taker
	switch {
	case !errors.Is(err, redlock.ErrHeld):
		return err
	case t.permits == 1:
		holder := inTheWay(err).by(1)
		return &heldError{fmt.Sprintf("the only permit of %s is held%s", quotedKey(t.keys[0]), holder), err}
	case t.permits > 1:
		holder := inTheWay(err).by(t.permits)
		return &heldError{fmt.Sprintf("all %d permits of %s are held%s", t.permits, quotedKey(t.keys[0]), holder), err}
	}
	key := cmp.Or(inTheWay(err).key, t.keys[0])
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	h, unknown := w.locker.Holder(ctx, key)
	if unknown != nil || !h.Held || h.Holds == 1 && h.Identity == "" {
		return err
	}
	o := obstacle{holder: fmt.Sprintf("%d holders", h.Holds), free: h.TTL}
	if h.Holds == 1 {
		o.holder = fmt.Sprintf("%s (ID %s)", h.Identity, h.ID)
	}
	set := ""
	if q, ok := errors.AsType[*redlock.QuorumError](err); ok && q.Set != "" {
		set = ", on a quorum of the " + q.Set + " masters"
	}
	return &heldError{fmt.Sprintf("held by another%s: %s is held%s", set, quotedKey(key), o.by(0)), err}
}

// heldError is a conflict in the command's words, without the details of each master or of the slot that was tried
// last.
type heldError struct {
	text string
	err  error
}

func (e *heldError) Error() string { return e.text }

func (e *heldError) Unwrap() error { return e.err }

// closeSoon gives masters that have not confirmed yet a moment. Keys that are left expire after their ttl.
func closeSoon(l *redlock.Locker, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = l.Close(ctx) // the error names keys that expire later, and there is nothing to do about them
}

func number(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return int(n)
	}
	return 2
}

func isNotHeld(err error) bool { return errors.Is(err, redlock.ErrNotHeld) }
