package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What can go wrong, for errors.Is. Which one it was decides what a caller can do about it.
var (
	// ErrHeld: somebody else holds the key, or contends for it; masters enough could be reached. Waiting helps.
	ErrHeld = errors.New("redlock: held by another")
	// ErrNoQuorum: too few masters answered in time. The lock may work again when they do.
	ErrNoQuorum = errors.New("redlock: no quorum of masters reachable")
	// ErrMisconfigured: so many masters can't grant the lock that no quorum is possible, and that will not pass: a wrong
	// password, a missing permission, a key of another type, a replica where [Dial] was given a master's address. The error
	// names each. It also matches [ErrNoQuorum].
	ErrMisconfigured = fmt.Errorf("%w, and waiting does not help", ErrNoQuorum)
	// ErrExpired: a quorum granted the lock, but so slowly that its validity was used up.
	ErrExpired = errors.New("redlock: validity used up before the lock was granted")
	// ErrNotHeld: the lock is not held, or not any more: released, lapsed, or lost on a majority of masters.
	ErrNotHeld = errors.New("redlock: not held any more")
	// ErrAlreadyHeld: the context is that of a lock on the same key that can't be entered again; waiting for oneself
	// would never end. See [Reentrant].
	ErrAlreadyHeld = errors.New("redlock: already held by the context's own lock")
	// ErrClosed: the Locker was closed.
	ErrClosed = errors.New("redlock: locker closed")
	// ErrInvalid: an argument or an option makes no sense. Nothing was sent.
	ErrInvalid = errors.New("redlock: invalid argument")
)

// NodeResult is what one master said in one round.
type NodeResult struct {
	// Master is its name.
	Master string
	// Vote is how its answer was counted.
	Vote Vote
	// TTL is how long what is in the way will live, where a refusing master told; negative when for ever.
	TTL time.Duration
	// Holder is who holds what is in the way, where a refusing master told: the holder's [Options].Identity, or "#" and the
	// fingerprint of a value that is not this library's. Owner values themselves are secrets and appear in no error.
	Holder string
	value  uint64 // a hash of the owner value, to tell two locks of one holder apart
	// Key is the key in the way, where several were asked for.
	Key string
	// Err is why an Unknown vote is unknown. It is not part of the error tree of the QuorumError: what one master
	// says never reads as what the majority decided.
	Err error
}

// QuorumError says how a round ended that was not won. It matches one of [ErrHeld], [ErrNoQuorum], [ErrExpired] and
// [ErrNotHeld].
type QuorumError struct {
	// Op is what was tried: "acquire", "extend", "verify" or "release"; "raise" where a [Fenced] acquisition got its key and
	// no token, "inspect" of [Locker.Holder].
	Op string
	// Key is the key, or the keys, separated by commas.
	Key string
	// Granted of N masters said yes, where Quorum was needed.
	Granted, Quorum, N int
	// Nodes has one entry for every master, in the order in which New got them.
	Nodes []NodeResult
	// Reason is the sentinel.
	Reason error
}

// Error is one line that says what to look at: the key, the count, and every master that did not grant.
func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s %q: granted %d of %d, need %d", e.Reason, e.Op, e.Key, e.Granted, e.N, e.Quorum)
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
		return fmt.Sprintf("refused because of %q", r.Key)
	case r.Vote == Refused && r.Key != "":
		return fmt.Sprintf("refused because of %q, free in %v", r.Key, r.TTL)
	case r.Vote == Refused && r.TTL > 0:
		return fmt.Sprintf("refused, free in %v", r.TTL)
	default:
		return r.Vote.String()
	}
}

// Unwrap returns the sentinel, and nothing of the single masters.
func (e *QuorumError) Unwrap() error { return e.Reason }

// ended is why ctx is done: its error and, where it has one of its own, the cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// invalid makes an ErrInvalid that says what was wrong.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// waitError is a wait that ended without the lock: it matches why it ended, and what the last round said.
type waitError struct {
	key   string
	ended error
	last  error
}

func (e *waitError) Error() string {
	return fmt.Sprintf("redlock: gave up waiting for %q: %v; last attempt: %v", e.key, e.ended, e.last)
}

func (e *waitError) Unwrap() []error { return []error{e.ended, e.last} }

// blockingKeys are the keys that refusing masters named, the one first that most of them did.
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
