package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

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
	value  uint64 // a hash of the owner value, to tell two locks of one holder apart
	kept   bool   // the key in the way has no holder, and is kept for a while
	claims bool   // while this one waits no new readers get in there
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
	lasts  single.Lasting // for how long, as masters complain
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

// ended returns the reason why ctx is done: its error and, if ctx has a separate cause, the cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

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

// blockingKeys returns the keys that refusing masters named, the most frequent key first.
func (e *QuorumError) blockingKeys() []string {
	named := make(map[string]int)
	var keys []string
	for _, node := range e.Nodes {
		if node.Vote == Refused && node.Key != "" {
			if named[node.Key]++; named[node.Key] == 1 {
				keys = append(keys, node.Key)
			}
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(named[b]-named[a], cmp.Compare(a, b)) })
	return keys
}

// holders are the owners that have the key which is in the way, as hashes. claims reports that no new readers get in
// there.
func (e *QuorumError) holders() (owners []uint64, claims bool) {
	var key string
	if blocking := e.blockingKeys(); len(blocking) > 0 {
		key = blocking[0]
	}
	for _, node := range e.Nodes {
		if node.Vote == Refused && node.Key == key && node.value != 0 && !slices.Contains(owners, node.value) {
			owners = append(owners, node.value)
		}
		claims = claims || node.claims
	}
	return owners, claims
}

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
		return l.quorumError(lost, l.decisive(&lost.Facts), errLost)
	case k.spec.Renew && (why == hold.Lapsed || why == hold.InGrace):
		if outdated := l.outdated(l.current.State().Newer); outdated != nil {
			return fmt.Errorf("%w, and it was not renewed: %w", overErrors[why], outdated)
		}
	}
	return overErrors[why]
}

// failure returns the failure of an operation of the lock, for its caller.
func (k *Lock) failure(ctx context.Context, f *hold.Failure) *failure {
	if f == nil {
		return nil
	}
	l, name := k.locker, opName(f.Op, f.Verifies)
	switch f.Fault {
	case hold.Cancelled:
		return failed(fmt.Errorf("redlock: %s %s: %w", name, brief(k.Key()), ended(ctx)))
	case hold.Ended:
		return failed(fmt.Errorf("redlock: %s %s: %w", name, brief(k.Key()), k.hold.Over()))
	case hold.OtherToken:
		return failed(fmt.Errorf("redlock: %s %s: %w: masters have given another token than was asked for "+
			"(single.Request.Exact)", name, brief(k.Key()), ErrMisconfigured))
	case hold.LastToken:
		return failed(fmt.Errorf("redlock: %s %s: the fencing counter has reached the greatest token, %d",
			name, brief(k.Key()), uint64(single.MaxToken)))
	case hold.Unreached:
		return failedVotes(failUnreached, k.unreached(f.Result, l.decisive(&f.Result.Facts)))
	case hold.Refusal, hold.Absent, hold.Late:
		kind := faultKinds[f.Fault]
		return failedVotes(kind, l.quorumError(f.Result, l.decisive(&f.Result.Facts), failureReasons[kind]))
	default:
		return failed(ErrClosed)
	}
}

// faultKinds are the kinds of failures that masters decided.
var faultKinds = [...]failureKind{hold.Refusal: failHeld, hold.Absent: failNotHeld, hold.Late: failLate}

// unreached is the failure of a round that too few masters of a set answered: of that one unless another can't be
// reached at all.
func (k *Lock) unreached(r *hold.Result, set *electorate) *QuorumError {
	if other, lasts, errs := k.spec.complaints.blocking(k.locker.sets, r.Since, r.Sent); other != nil {
		return k.locker.quorumError(r, other, ErrNoQuorum).blame(other, lasts, errs)
	}
	return k.locker.quorumError(r, set, ErrNoQuorum)
}

// quorumError is a round's result in one set of masters, as an error that a caller can act on.
func (l *Locker) quorumError(r *hold.Result, set *electorate, reason error) *QuorumError {
	return &QuorumError{
		Set:     set.name,
		Op:      opName(r.Op, r.Verifies),
		Key:     l.listed(r.Keys),
		Granted: set.of(r.Votes.Granted),
		Quorum:  set.quorum,
		N:       set.n,
		Nodes:   l.nodes(r, set.members),
		Reason:  reason,
	}
}

// decisive is the set that the round's verdict comes from: of two sets of masters, the first that it is the verdict of.
func (l *Locker) decisive(f *hold.Facts) *electorate {
	for i := range l.sets {
		if l.sets[i:i+1].judge(f.Op, f.Votes) == f.Verdict {
			return &l.sets[i]
		}
	}
	return &l.sets[0]
}

// nodes returns the answer of each of these masters.
func (l *Locker) nodes(r *hold.Result, members uint64) []NodeResult {
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
			node.TTL, node.Holder, node.value = a.Reply.TTL, owner.Show(a.Reply.Holder), ownerHash(a.Reply.Holder)
			node.kept, node.claims = owner.Kept(a.Reply.Holder), a.Reply.Claimed
			if len(r.Keys) > 1 {
				node.Key = l.shown(a.Reply.Key)
			}
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// valueSeed seeds the hashes that compare owner values where the values must not be kept.
var valueSeed = maphash.MakeSeed()

// ownerHash tells an owner from others; 0 means no owner. Masters cut very long owners off.
func ownerHash(owner string) uint64 {
	if owner == "" {
		return 0
	}
	return max(1, maphash.String(valueSeed, owner[:min(len(owner), maxTold)]))
}

// maxTold is the length to which masters shorten an owner value in replies; the scripts know it, too.
const maxTold = 16 << 10

// notAnnounced names a set without a quorum of answers. If every set has a quorum, the answers came too late to hold.
// The order is: a set with too many masters that fail permanently, in replies to requests sent since then; a set that
// can't get a quorum any more; any other.
func (l *Locker) notAnnounced(a *generation.Announcement, since time.Time) *failure {
	answers := a.Answers()
	if set, lasts, errs := l.complaining.announced.blocking(l.sets, since, a.Sent); set != nil {
		return failedVotes(failUnreached, l.notAnnouncedIn(set, &answers, ErrNoQuorum).blame(set, lasts, errs))
	}
	votes := tally{Granted: answers.Answered, Unknown: answers.Failed}
	short := func(i int) bool { return l.sets[i].of(votes.Granted) < l.sets[i].quorum }
	lost := func(i int) bool { return l.sets[i:i+1].acquired(&votes) == noQuorum }
	for _, why := range [...]func(i int) bool{lost, short} {
		for i := range l.sets {
			if why(i) {
				return failedVotes(failUnreached, l.notAnnouncedIn(&l.sets[i], &answers, ErrNoQuorum))
			}
		}
	}
	return failedVotes(failLate, l.notAnnouncedIn(&l.sets[0], &answers, ErrExpired))
}

// notAnnouncedIn is a failure of one set of masters.
func (l *Locker) notAnnouncedIn(set *electorate, answers *generation.Answers, reason error) *QuorumError {
	e := &QuorumError{
		Op: opNames[single.Announce], Key: single.GenerationKey, Set: set.name, Granted: set.of(answers.Answered),
		Quorum: set.quorum, N: set.n, Reason: reason,
	}
	for i, name := range l.names {
		if set.members&(1<<i) == 0 {
			continue
		}
		node := NodeResult{Master: name, Vote: Unknown, Err: errNoAnswer}
		switch bit := uint64(1) << i; {
		case answers.Answered&bit != 0:
			node.Vote, node.Err = Granted, nil
		case answers.Failed&bit != 0:
			node.Err = answers.Errs[i]
		case answers.Settled:
			node.Vote, node.Err = Pending, nil
		}
		e.Nodes = append(e.Nodes, node)
	}
	return e
}
