package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/cause"
	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/generation"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// The errors of this package, for errors.Is.
var (
	// ErrHeld: another owner holds the key. Enough masters could be reached. Waiting helps. If a context ended the
	// wait, others may also only contend for the key.
	ErrHeld = errors.New("redlock: held by another")
	// ErrContended: several callers want the key at once, and the masters' votes were split for the whole request
	// timeout. Enough masters could be reached, and none of the owners had a quorum. Trying again helps. Only a call
	// that does not wait for the lock returns it: [Locker.TryAcquire], [Locker.TryDo], and the last attempt of
	// [MaxAttempts]. It does not match ErrHeld.
	ErrContended = errors.New("redlock: contended: the votes stay split")
	// ErrNoQuorum: too few masters answered in time. The lock may work again when they do.
	ErrNoQuorum = errors.New("redlock: no quorum of masters reachable")
	// ErrMisconfigured: no quorum is possible until an operator changes something, because too many masters complain.
	// They complain of a password, a right, a certificate, a key of another type, or a replica's address given to
	// [Dial] or package sharded. The error names each. It also matches [ErrNoQuorum]. A wait goes on for [MendTime]
	// before it ends with this error.
	ErrMisconfigured error = &refinedError{"redlock: no quorum until somebody mends what is wrong", ErrNoQuorum}
	// ErrExpired: a quorum granted the lock, but so slowly that its validity was used up.
	ErrExpired = errors.New("redlock: validity used up before the lock was granted")
	// ErrNotHeld: the lock is not held, or not any more: released, lapsed, or lost on a majority of masters.
	ErrNotHeld = errors.New("redlock: not held any more")
	// ErrAlreadyHeld: the context belongs to a lock on the same key, and that lock can't be entered again. Waiting
	// would never end. See [Reentrant].
	ErrAlreadyHeld = errors.New("redlock: already held by the context's own lock")
	// ErrOutdated: the masters are used with a configuration two or more generations newer than this Locker's; see
	// [Options].Generation. The error names both. This Locker will get no lock any more.
	ErrOutdated = errors.New("redlock: the configuration of masters is out of date")
	// ErrClosed: the Locker was closed, or the clients of so many masters that no quorum is left.
	ErrClosed = errors.New("redlock: locker closed")
	// ErrInvalid: an argument or an option makes no sense. Nothing was sent.
	ErrInvalid = errors.New("redlock: invalid argument")
)

// errClientsClosed: only a new Locker, with other clients, will work.
var errClientsClosed = &refinedError{"redlock: so many clients of masters are closed that no quorum is left", ErrClosed}

// refinedError is a case of another error, with a separate text.
type refinedError struct {
	text string
	of   error
}

func (e *refinedError) Error() string { return e.text }

func (e *refinedError) Unwrap() error { return e.of }

// errLost is the reason in the QuorumError that reports a lost hold.
var errLost = fmt.Errorf("%w: lost on a majority of masters", ErrNotHeld)

// overErrors say why a hold is over.
var overErrors = [...]error{
	hold.Released:   fmt.Errorf("%w: released", ErrNotHeld),
	hold.Passed:     fmt.Errorf("%w: released", ErrNotHeld),
	hold.HandedOver: fmt.Errorf("%w: handed over", ErrNotHeld),
	hold.Abandoned:  fmt.Errorf("%w: its acquisition failed", ErrNotHeld),
	hold.Lapsed:     fmt.Errorf("%w: its validity ended", ErrNotHeld),
	hold.InGrace:    fmt.Errorf("%w: its validity was about to end, and its grace has begun", ErrNotHeld),
	hold.MaxHold:    fmt.Errorf("%w: MaxHold is over", ErrNotHeld),
	hold.Lost:       errLost,
	hold.ShutDown:   fmt.Errorf("%w: %w", ErrNotHeld, ErrClosed),
}

// NodeResult is the answer of one master in one round.
type NodeResult struct {
	// Master is its name.
	Master string
	// Vote is how its answer was counted.
	Vote Vote
	// TTL is the time left of the key in the way, if the refusing master told it; negative if the key has no end.
	TTL time.Duration
	// Holder is the [Options].Identity of the holder in the way, if the refusing master told it. For a value that
	// this library did not make it is "#" and the value's fingerprint. Owner values are secrets and appear in no
	// error.
	Holder string
	// Key is the key in the way, where the round wanted several.
	Key string
	// Err is why an Unknown vote is unknown. The QuorumError does not wrap it, so errors.Is never takes one master's
	// error for the decision of the majority.
	Err error
}

// QuorumError says how a round ended that was not won. It matches one of [ErrHeld], [ErrNoQuorum], [ErrExpired],
// [ErrNotHeld] and, where the masters' clients were closed, [ErrClosed].
type QuorumError struct {
	// Op is the operation: "acquire", "attach", "extend", "verify", "release", "raise", "inspect" or "announce".
	// "raise" is of a [Fenced] acquisition that got its key and no token, "inspect" of [Locker.Holder]. "announce"
	// means that too few masters say which [Options].Generation they know.
	Op string
	// Key is the key, or the keys, separated by commas.
	Key string
	// Set is "" but with a Locker of two sets of masters ([NewJoint]): then it is "old" or "new", the set that decided.
	Set string
	// Granted of N masters said yes, where Quorum was needed.
	Granted, Quorum, N int
	// Nodes has one entry for every master of the set, in the order of New's argument.
	Nodes []NodeResult
	// Reason is the sentinel.
	Reason error
}

// Error is one line that says what to look at: the key, the count, and every master that did not grant.
func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s %s: granted %d of %d", e.Reason, e.Op, brief(e.Key), e.Granted, e.N)
	if e.Set != "" {
		fmt.Fprintf(&b, " of the %s masters", e.Set)
	}
	fmt.Fprintf(&b, ", need %d", e.Quorum)
	separator := " ("
	for _, node := range e.Nodes {
		if node.Vote == Granted {
			continue
		}
		fmt.Fprintf(&b, "%s%s: %s", separator, node.Master, node.say())
		separator = "; "
	}
	if separator == "; " {
		b.WriteByte(')')
	}
	return b.String()
}

func (r NodeResult) say() string {
	switch {
	case r.Err != nil:
		return strings.ReplaceAll(r.Err.Error(), "\n", " ") // one line, whatever a client joins
	case r.Vote == Refused && r.Key != "" && r.TTL <= 0:
		return "refused because of " + brief(r.Key)
	case r.Vote == Refused && r.Key != "":
		return fmt.Sprintf("refused because of %s, free in %v", brief(r.Key), r.TTL)
	case r.Vote == Refused && r.TTL > 0:
		return fmt.Sprintf("refused, free in %v", r.TTL)
	default:
		return r.Vote.String()
	}
}

// brief returns a key in quotes, and only the beginning of a long one: a key may have 64 KiB, and a lock many keys.
func brief(key string) string {
	if len(key) <= 256 {
		return strconv.Quote(key)
	}
	return fmt.Sprintf("%.200q…(%d bytes)", key, len(key))
}

// Unwrap returns the sentinel, and nothing of the single masters.
func (e *QuorumError) Unwrap() error { return e.Reason }

// invalid makes an ErrInvalid with a reason.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// waitError reports a wait that ended without the lock. It matches the reason for the end and the error of the last
// round.
type waitError struct {
	key   string
	ended error
	last  error
}

func (e *waitError) Error() string {
	return fmt.Sprintf("redlock: gave up waiting for %s: %v; last attempt: %v", brief(e.key), e.ended, e.last)
}

func (e *waitError) Unwrap() []error { return []error{e.ended, e.last} }

var (
	errNoAnswer = errors.New("no answer in time")
	// errContinuityUnknown is why a granted extension did not count.
	errContinuityUnknown = errors.New("the key was set again, and it is not known when")
)

// releaseReasons are the reasons of releases that were not won.
var releaseReasons = [...]error{open: ErrNoQuorum, denied: ErrNotHeld, noQuorum: ErrNoQuorum}

// Reason implements [hold.Handle].
func (k *handle) Reason(why hold.Why, lost *hold.Result) error {
	switch l := k.locker; {
	case why == hold.Lost:
		return l.quorumError(lost, l.decisive(&lost.Facts), errLost, nil)
	case k.spec.Renew && (why == hold.Lapsed || why == hold.InGrace):
		if outdated := l.outdated(); outdated != nil {
			return fmt.Errorf("%w, and it was not renewed: %w", overErrors[why], outdated)
		}
	}
	return overErrors[why]
}

// outdated returns the error of an outdated configuration, and nil while it is not known to be one.
func (l *Locker) outdated() error {
	newer := l.crowd.Generations.State().Newer
	if newer == nil {
		return nil
	}
	return l.outdatedBy(*newer, l.opts.Generation)
}

func (l *Locker) outdatedBy(newer generation.Newer, own uint64) error {
	return fmt.Errorf("%w: generation %d is in use, says %s, and this is generation %d",
		ErrOutdated, newer.Generation, l.names[newer.Master], own)
}

// The errors of waits that others of the process are in the way of.
var (
	errBehindOthers = fmt.Errorf("%w: others of this process are first in the queue", ErrHeld)
	errBehindOutage = fmt.Errorf("%w: others of this process are first in the queue, and reach none", ErrNoQuorum)
	errLetGoFirst   = fmt.Errorf("%w: others are let go first", ErrHeld)
)

// explain returns the error for the caller of an operation under ctx that has failed; nil for no failure. s is the
// acquisition, or nil for an announcement.
func (l *Locker) explain(ctx context.Context, s *spec, f *contend.Failure) error {
	if f == nil {
		return nil
	}
	switch f.Kind {
	case contend.Stopped:
		return cause.Of(ctx)
	case contend.Asking:
		return fmt.Errorf("redlock: asking masters for their generation: %w", l.explain(ctx, s, f.End))
	case contend.Outdated:
		return l.outdated()
	case contend.PassedLate:
		return fmt.Errorf("redlock: acquire %s: %w: this process stood still while it was passed on",
			brief(l.shown(s.Keys[0])), ErrExpired)
	case contend.Behind:
		return errBehindOthers
	case contend.BehindOutage:
		return errBehindOutage
	case contend.Yielding:
		return errLetGoFirst
	case contend.OutageOver:
		return fmt.Errorf("%w for %v, the MaxOutage", ErrNoQuorum, s.MaxOutage)
	case contend.GaveUp:
		return &waitError{l.shown(s.Keys[0]), l.explain(ctx, s, f.End), l.explain(ctx, s, f.Last)}
	default:
		return l.explainRound(ctx, s, f)
	}
}

// explainRound returns the error of a hold's operation, or of an announcement.
func (l *Locker) explainRound(ctx context.Context, s *spec, f *contend.Failure) error {
	if f.Result != nil {
		return l.notWon(f)
	}
	var err error
	switch f.Fault {
	case hold.Cancelled:
		err = cause.Of(ctx)
	case hold.Ended:
		err = overErrors[hold.ShutDown]
	case hold.OtherToken:
		err = fmt.Errorf("%w: masters have given another token than was asked for (single.Request.Exact)",
			ErrMisconfigured)
	case hold.LastToken:
		err = fmt.Errorf("the fencing counter has reached the greatest token, %d", uint64(single.MaxToken))
	default:
		return ErrClosed
	}
	return fmt.Errorf("redlock: %s %s: %w", opName(f.Op, f.Verifies), brief(l.shown(s.Keys[0])), err)
}

// faultReasons are the errors of rounds that were not won.
var faultReasons = [...]error{
	hold.Refusal: ErrHeld, hold.Absent: ErrNotHeld, hold.Unreached: ErrNoQuorum, hold.Late: ErrExpired,
}

// notWon returns the error of a round that was not won, with the complaints that leave its set no quorum.
func (l *Locker) notWon(f *contend.Failure) *QuorumError {
	set := &l.env.Sets[f.Set]
	e := l.quorumError(f.Result, set, faultReasons[f.Fault], f.Complaints)
	switch {
	case f.Contended:
		e.Reason = ErrContended
	case f.Lasts == single.Closed:
		e.Reason = errClientsClosed
	case f.Lasts >= single.Mendable:
		e.Reason = ErrMisconfigured
	}
	return e
}

// quorumError is a round's result in one set of masters, as an error that a caller can act on.
func (l *Locker) quorumError(
	r *hold.Result, set *hold.Set, reason error, complaints map[int]error,
) *QuorumError {
	key := single.GenerationKey
	if r.Op != single.Announce { // whose key has no prefix
		key = l.listed(r.Keys)
	}
	return &QuorumError{
		Set:     set.Name,
		Op:      opName(r.Op, r.Verifies),
		Key:     key,
		Granted: set.Of(r.Votes.Granted),
		Quorum:  set.Quorum,
		N:       set.Masters(),
		Nodes:   l.nodes(r, set.Members, complaints),
		Reason:  reason,
	}
}

// decisive is the set that the round's verdict comes from.
func (l *Locker) decisive(f *hold.Facts) *hold.Set { return &l.env.Sets[l.env.Decisive(f)] }

// nodes returns the answer of each of these masters. A complaint takes the place of an answer.
func (l *Locker) nodes(r *hold.Result, members uint64, complaints map[int]error) []NodeResult {
	nodes := make([]NodeResult, 0, len(r.Answers))
	for i := range r.Answers {
		if members&(1<<i) == 0 {
			continue
		}
		a := &r.Answers[i]
		node := NodeResult{Master: l.names[i], Vote: Vote(a.Vote)}
		switch {
		case a.Vote == hold.Unknown && a.Ended && a.Err != nil:
			node.Err = a.Err
		case a.Vote == hold.Unknown && a.Ended && a.Unknown:
			node.Err = errContinuityUnknown
		case a.Vote == hold.Unknown:
			node.Err = errNoAnswer
		case a.Vote != hold.Pending && a.Ended:
			node.TTL, node.Holder = a.Reply.TTL, owner.Show(a.Reply.Holder)
			if len(r.Keys) > 1 {
				node.Key = l.shown(a.Reply.Key)
			}
		}
		if err := complaints[i]; err != nil {
			node.Vote, node.Err = Unknown, err
		}
		nodes = append(nodes, node)
	}
	return nodes
}
