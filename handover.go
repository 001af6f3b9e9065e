package redlock

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// A hold goes from one process to another without being free in between. The masters can't tell the two processes
// apart: they know only an owner value, and both processes would have it. So the new process replaces that value by a
// new one, on a quorum, in one step on each master (single.Transfer). If the key still has the old owner, it gets the
// new owner. This is an acquisition, except that it finds the key held by the old owner instead of free. Its fencing
// token and its bound are found as in any other acquisition. docs/evidence/cases.md says what can go wrong, and why two
// processes never have the lock.

// Handover is all that another process needs to continue a lock: see [Lock.Handover]. [Handover.Secret] is the text
// to send. It is a secret: anyone who has it can take the lock over, or release it. fmt, log/slog and encoders do not
// show it, also inside another struct. The zero value belongs to no lock.
type Handover struct {
	// The field is a function, because printers follow pointers where they can't call methods, as fmt does with %s in
	// unexported fields.
	read func() *handover
}

// handover has the fields of the text. Keys and published values may be any bytes, which JSON can only have in
// base64.
type handover struct {
	Key    []byte `json:"key"`
	Prefix []byte `json:"prefix,omitempty"` // Options.Prefix
	Owner  []byte `json:"owner"`
	Token  uint64 `json:"token"`
	// Masters names the masters on which the lock was taken. Doubt names the masters to which a request that sets the
	// key may be on its way.
	Masters []string `json:"masters"`
	Doubt   []string `json:"doubt,omitempty"`
}

const handoverPrefix = "redlock-handover-3:"

func newHandover(data handover) Handover { return Handover{func() *handover { return &data }} }

// data returns the fields of the Handover; for the zero value it returns the zero value.
func (h Handover) data() *handover {
	if h.read == nil {
		return new(handover)
	}
	return h.read()
}

// Key returns the lock's key.
func (h Handover) Key() string { return string(h.data().Key) }

// Token returns the fencing token that the lock had. Attach gets a greater one.
func (h Handover) Token() uint64 { return h.data().Token }

// String does not show the secret.
func (h Handover) String() string {
	return fmt.Sprintf("handover of %s, token %d", brief(h.Key()), h.Token())
}

// GoString does not show the secret either.
func (h Handover) GoString() string { return h.String() }

// LogValue implements [slog.LogValuer].
func (h Handover) LogValue() slog.Value { return slog.StringValue(h.String()) }

// Secret returns the text that the other process needs, for [Handover.UnmarshalText]: printable ASCII, some hundred
// bytes and the key. It is "" of a Handover that [Lock.Handover] has not made.
func (h Handover) Secret() string {
	if h.read == nil {
		return ""
	}
	text, _ := json.Marshal(h.read()) // of these types it never fails
	return handoverPrefix + string(text)
}

// MarshalText always fails, so that no encoder puts the secret into a log by the way, or a text without it into a
// message: send [Handover.Secret].
func (h Handover) MarshalText() ([]byte, error) {
	return nil, invalid("a Handover is not encoded by the way, because its text is a secret: send what its method " +
		"Secret returns")
}

// UnmarshalText reads what [Handover.Secret] has returned, so a field of this type takes it from JSON. The error
// matches [ErrInvalid], and does not quote the text.
func (h *Handover) UnmarshalText(text []byte) error {
	rest, ok := strings.CutPrefix(string(text), handoverPrefix)
	var data handover
	if !ok || json.Unmarshal([]byte(rest), &data) != nil {
		return invalid("the text is no Handover, or one of another version of this library")
	}
	if err := data.check(); err != nil {
		return err
	}
	*h = newHandover(data)
	return nil
}

func (d *handover) check() error {
	if len(d.Owner) == 0 && len(d.Key) == 0 {
		return invalid("a Handover that Lock.Handover has not made")
	}
	if err := checkKey(string(d.Key)); err != nil {
		return err
	}
	if len(d.Owner) == 0 || len(d.Owner) > maxKeySize || d.Token == 0 || d.Token >= single.MaxToken ||
		len(d.Masters) == 0 {
		return invalid("a Handover of %.64q that is incomplete", d.Key)
	}
	return nil
}

// Handover ends the lock in this process without releasing it. It returns a value with which another process
// continues the lock, by [Locker.Attach]. The lock must be [Fenced] and held; otherwise the error matches
// [ErrInvalid] or [ErrNotHeld], and nothing has changed. Handover waits for no master.
//
// End the work before you call Handover. Afterwards the lock is over here: Err, Done and the contexts say so, and
// Release returns [ErrNotHeld] and removes nothing. The key stays on the masters for the rest of its ttl, even if no
// process attaches. Call [Lock.Extend] before to leave a full ttl. If a Handover is lost, the key lapses with its
// ttl.
func (k *Lock) Handover() (Handover, error) {
	if k.isNone() {
		return Handover{}, ErrNotHeld
	}
	if err := k.Err(); err != nil {
		return Handover{}, err
	}
	if !k.spec.Fenced {
		return Handover{}, invalid("Handover of a lock that is not Fenced: nothing would keep what the old process " +
			"still does from the resource")
	}
	d, ok := k.hold.HandOver()
	if !ok {
		return Handover{}, k.Err()
	}
	return newHandover(handover{
		Key: []byte(k.Key()), Prefix: []byte(k.locker.opts.Prefix), Owner: []byte(k.Owner()), Token: d.Token,
		Masters: k.locker.names, Doubt: k.locker.namesOf(d.Doubt),
	}), nil
}

// namesOf are the names of these masters.
func (l *Locker) namesOf(masters uint64) (names []string) {
	for i, name := range l.names {
		if masters&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Attach continues a lock that another process has handed over, for ttl from now. The returned Lock has a new ID and
// a greater fencing token. On a quorum of masters the key was never free in between. Attach takes one round trip, and
// one more if the masters' counters differ. It waits in no queue. opts are options for [Locker.TryAcquire] of a
// fenced lock, such as [AutoRenew]. A [Published] value stays, with the new token, which takes another round trip.
//
// If several processes attach to one Handover, at most one succeeds. On error the caller has no lock, and the keys
// that the attempt got on some masters are released. The attempt may be repeated while a quorum still has the
// handed-over lock. The error matches [ErrNotHeld] if the lock has lapsed or was released, or another process has
// attached; [ErrNoQuorum] if too few masters answered; or [ErrExpired]. With [ErrInvalid] (also for another
// [Options].Prefix), [ErrClosed] and [ErrOutdated] nothing was sent.
//
// A Handover names the masters that have the key by address, so both processes must use the same addresses: a master
// with another address does not count. If those masters are no quorum of this Locker's, or of one of its sets
// ([NewJoint]), the error matches [ErrInvalid]. Then nothing was sent, and a process with the old masters can still
// attach.
//
// Attach can't know whether the old process has stopped its work. A resource that checks tokens refuses the old
// process after the new process's first change.
func (l *Locker) Attach(ctx context.Context, h Handover, ttl time.Duration, opts ...Option) (*Lock, error) {
	if err := h.data().check(); err != nil {
		return nil, err
	}
	s, err := l.ask(ctx, h.Key(), ttl, append([]Option{Fenced()}, opts...))
	if err != nil {
		return nil, err
	}
	if prefix := string(h.data().Prefix); prefix != l.opts.Prefix {
		return nil, invalid("a Handover of %.64q with the Options.Prefix %q, and this Locker's is %q", h.Key(), prefix,
			l.opts.Prefix)
	}
	if set := l.withoutQuorum(h.data().Masters); set != nil {
		return nil, invalid("a Handover of %.64q that is on the masters %.512s: they are no quorum of this Locker's "+
			"%s; hand over to a process with "+
			"the same masters, or to none", h.Key(), strings.Join(h.data().Masters, ", "),
			strings.TrimSpace(set.Name+" masters"))
	}
	if s.Publishes || s.MaxAttempts > 1 || s.Every > 0 || s.MaxOutage > 0 {
		return nil, invalid("Published, MaxAttempts, RetryEvery or MaxOutage with Attach, which is a single attempt")
	}
	l.env.Registry.Begin()
	defer l.env.Registry.Done()
	start := l.clock.Now()
	k, err := l.attach(ctx, s, h.data())
	l.observeReturn(single.Transfer, s, start, 1, err)
	return k, err
}

// withoutQuorum returns a set of the Locker's masters in which the named masters are no quorum: their votes can't win
// the set. It returns nil if there is no such set.
func (l *Locker) withoutQuorum(names []string) *hold.Set {
	var known uint64
	for i, name := range l.names {
		if slices.Contains(names, name) {
			known |= 1 << i
		}
	}
	for i := range l.env.Sets {
		if set := &l.env.Sets[i]; set.Of(known) < set.Quorum {
			return set
		}
	}
	return nil
}

// attach is Attach's attempt.
func (l *Locker) attach(ctx context.Context, s *spec, h *handover) (*Lock, error) {
	if l.isClosing() {
		return nil, ErrClosed
	}
	asOf, f := l.crowd.AwaitCurrent(ctx, l.closing, s.Timeout, &s.Sent)
	if f != nil {
		return nil, l.explain(ctx, s, f)
	}
	began, k := l.clock.Now(), s.newLock("")
	if k == nil {
		return nil, ErrClosed
	}
	a := hold.Ask{AsOf: asOf, From: string(h.Owner), Token: max(h.Token+1, l.env.Tokens.Propose())}
	for i, name := range l.names {
		if slices.Contains(h.Doubt, name) || !slices.Contains(h.Masters, name) {
			a.Doubt |= 1 << i
		}
	}
	if _, value, publishes := owner.Published(string(h.Owner)); publishes {
		// The value contains the token, so a quorum has to accept the token first. Then no other owner gets this
		// token: the next owner of the key has this one or a greater one.
		if err := k.failed(ctx, k.hold.Raise(ctx, a.From, a.Token)); err != nil {
			k.hold.Abandon()
			return nil, err
		}
		a.Token = k.Token()
		k.hold.Rename(owner.NewPublished(l.opts.Identity, a.Token, value))
	}
	return s.result(ctx, &k.hold, l.crowd.Acquire(ctx, &s.Acquisition, &k.hold, began, a))
}
