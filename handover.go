package redlock

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// A hold goes from one process to another without being free in between. Nothing on the masters tells the two processes apart: they know
// an owner value, and both would have it. What could go wrong, and what keeps it from going wrong:
//
//   - The old process goes on. So what it can give away is made by a method that ends the hold there first (Lock.Handover): from then on it is
//     over for everybody who asks it, is not renewed, and is not released either.
//   - Two processes get the same Handover: a message was sent twice, a file was read twice. So whoever takes it over has to win a number
//     that a master gives away once: the fencing token behind the old one, by a quorum (single.Raise). Of two at most one has a quorum, and the
//     other has nothing; where neither has, the hold ends by its ttl.
//   - The hold has lapsed, somebody else has had the key, and it is there again, by a repair of the old process that took long. Then somebody
//     else has had a greater token from a quorum, and the masters refuse this one.
//   - An extension of the old process arrives late: it finds the key of its owner, and prolongs it, or finds none.
//   - The key is gone, or another's, or fewer than a quorum have it: no quorum raises the counter of a key that is not the owner's.
//   - The answers to the claim are lost. It can't be made again: nobody could tell it from another's. The hold ends by its ttl.
//
// The new token is also what keeps the old process from the resource if its work goes on although the hold is over.
// docs/handover.md has the table.

// Handover is what it takes to go on with a lock in another process: see [Lock.Handover]. Its text is a secret, as an owner value is:
// whoever has it can take the lock over, or release it. So it shows itself as text to encoders only (MarshalText), and to fmt and
// log/slog without the secret. The zero value is no lock's.
type Handover struct{ data handover }

// handover is what the text has. Keys and published values may be any bytes, which JSON has in base64 only.
type handover struct {
	Key   []byte        `json:"key"`
	Owner []byte        `json:"owner"`
	Token uint64        `json:"token"`
	TTL   time.Duration `json:"ttl"` // the longest that a master was asked for
}

const handoverPrefix = "redlock-handover-1:"

// Key returns the lock's key.
func (h Handover) Key() string { return string(h.data.Key) }

// Token returns the fencing token that the lock had. Whoever attaches to it gets the next one.
func (h Handover) Token() uint64 { return h.data.Token }

// String does not show the secret.
func (h Handover) String() string {
	return fmt.Sprintf("handover of %q, token %d", h.data.Key, h.data.Token)
}

// GoString does not show the secret either.
func (h Handover) GoString() string { return h.String() }

// LogValue implements [slog.LogValuer].
func (h Handover) LogValue() slog.Value { return slog.StringValue(h.String()) }

// MarshalText implements [encoding.TextMarshaler]. The text is a secret.
func (h Handover) MarshalText() ([]byte, error) {
	if len(h.data.Owner) == 0 {
		return nil, invalid("a Handover that Lock.Handover has not made")
	}
	text, err := json.Marshal(h.data)
	return append([]byte(handoverPrefix), text...), err
}

// UnmarshalText implements [encoding.TextUnmarshaler]. The error matches [ErrInvalid], and does not quote the text.
func (h *Handover) UnmarshalText(text []byte) error {
	rest, ok := strings.CutPrefix(string(text), handoverPrefix)
	var data handover
	if !ok || json.Unmarshal([]byte(rest), &data) != nil {
		return invalid("the text is no Handover")
	}
	if err := (Handover{data}).check(); err != nil {
		return err
	}
	h.data = data
	return nil
}

func (h Handover) check() error {
	d := &h.data
	switch err := checkKey(string(d.Key)); {
	case len(d.Owner) == 0 && len(d.Key) == 0:
		return invalid("a Handover that Lock.Handover has not made")
	case err != nil:
		return err
	case len(d.Owner) == 0 || len(d.Owner) > maxKeySize || d.Token == 0 || d.Token >= single.MaxToken || d.TTL < 0:
		return invalid("a Handover of %.64q that is incomplete", d.Key)
	}
	return nil
}

var errHandedOver = fmt.Errorf("%w: handed over", ErrNotHeld)

// Handover ends the lock in this process without releasing it, and returns what another process needs to go on with it by
// [Locker.Attach]. The lock must be a [Fenced] one that is held; otherwise the error matches [ErrInvalid] or [ErrNotHeld], and nothing
// has changed. No master is asked.
//
// From then on the lock is over here: Err, Done and the contexts say so, Release returns [ErrNotHeld] and removes nothing. End the work
// before you call it, not after. The key stays on the masters for what is left of its ttl, for nobody if nobody attaches; [Lock.Extend] before
// leaves the whole of it. What is lost with a Handover is time, no more than that.
func (k *Lock) Handover() (Handover, error) {
	if k.isNone() {
		return Handover{}, ErrNotHeld
	}
	if err := k.Err(); err != nil {
		return Handover{}, err
	}
	if !k.spec.fenced {
		return Handover{}, invalid("Handover of a lock that is not Fenced: nothing would keep two processes from taking it over")
	}
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over != nil {
		return Handover{}, k.over
	}
	h := Handover{handover{Key: []byte(k.spec.keys[0]), Owner: []byte(k.owner), Token: k.token, TTL: k.longest}}
	k.leaveLocked(errHandedOver, &after)
	return h, nil
}

// leaveLocked ends a hold whose key on the masters is not this handle's to release.
func (k *Lock) leaveLocked(reason error, after *effects) {
	k.left = true
	k.overLocked(reason, after)
	k.locker.forget(k)
}

// Attach goes on with a lock that another process has handed over, for ttl from now, and returns it with a fencing token of its own,
// greater than the one it had. The key was never free in between, as far as a quorum of masters that has it can tell. It takes two
// round trips and does not wait for anything. opts are those of [Locker.TryAcquire] for a fenced lock, such as [AutoRenew]; the value of a lock that was
// [Published] stays, with the token that it had.
//
// Of several processes that attach to one Handover at most one succeeds. On error none of its own has the lock, and it can't be tried
// again: what is left of it lapses by its ttl. The error matches [ErrNotHeld] if the lock has lapsed, or was released, or if
// somebody else has attached to it; [ErrNoQuorum] if too few masters answered; [ErrExpired]; [ErrInvalid], [ErrClosed] and [ErrOutdated], with
// which nothing was sent.
//
// Whoever else asks for the key meanwhile may raise its counter, although it is refused: a fenced acquisition that is sent in one round trip does.
// Then the token is gone, Attach fails with ErrNotHeld, and the key lapses. So hand over where nobody else waits for the lock, or where losing the
// rest of its ttl does no harm.
//
// What Attach can't know is whether the old process has stopped what it did under the lock. The new token does: the resource that
// checks it refuses the old process from the new one's first change on.
func (l *Locker) Attach(ctx context.Context, h Handover, ttl time.Duration, opts ...Option) (*Lock, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	s, err := l.ask(ctx, h.Key(), ttl, append([]Option{Fenced()}, opts...))
	if err != nil {
		return nil, err
	}
	if s.publishes || s.maxAttempts > 1 || s.every > 0 || s.maxOutage > 0 {
		return nil, invalid("Published, MaxAttempts, RetryEvery or MaxOutage with Attach, which is a single attempt")
	}
	l.busy.Add(1)
	defer l.notBusy()
	if l.isClosing() {
		return nil, ErrClosed
	}
	asOf, err := l.awaitCurrent(ctx, s.timeout, &s.sent, l.closing)
	if err != nil {
		return nil, err
	}
	s.owner = string(h.data.Owner)
	k, err := l.newLock(s)
	if err != nil {
		return nil, err
	}
	k.longest, k.asOf = max(h.data.TTL, s.ttl), asOf
	for i := range k.states { // what the old process sent may be on its way to any of them, also a repair
		k.states[i].maySet, k.states[i].outcomeUnknown, k.states[i].continuityUnknown = true, true, true
	}
	if err := k.claim(ctx, h.data.Token+1); err != nil {
		k.leave()
		return nil, fmt.Errorf("redlock: attach %q: %w", k.Key(), err)
	}
	if err := k.takeOver(ctx); err != nil {
		k.finish(errAbandoned, nil) // it is this one's alone
		return nil, fmt.Errorf("redlock: attach %q: %w", k.Key(), err)
	}
	return k, nil
}

// leave gives a handle up that has not got its key.
func (k *Lock) leave() {
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over == nil { // the Locker was not shut down
		k.leaveLocked(errAbandoned, &after)
	}
}

// claim takes the token, which a master gives away once, for a key that it still has of this owner.
func (k *Lock) claim(ctx context.Context, token uint64) error {
	r, err := k.run(ctx, k.request(single.Request{Op: single.Raise, Token: token}))
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch r.verdict {
	case won:
		k.token = token
		return nil
	case denied:
		return r.failureLocked(ErrNotHeld)
	default:
		return r.unreachedLocked(r.decisive())
	}
}

// takeOver extends a hold that has been claimed, which gives it its bound: only masters that have the key count.
func (k *Lock) takeOver(ctx context.Context) error {
	w := k.locker.newRoundWait()
	r, err := k.beginTakeOver(w)
	if err != nil {
		return err
	}
	if err := w.wait(ctx, k.spec.timeout, r); err != nil {
		return err
	}
	k.locker.recycle(w)
	k.mu.Lock()
	defer k.mu.Unlock()
	until := r.validUntil()
	if k.spec.maxHold > 0 {
		k.atMost = later(r.start, k.spec.maxHold)
		until = min(until, k.atMost)
	}
	switch {
	case k.over != nil: // the Locker was shut down
		return ErrClosed
	case r.verdict == denied:
		return r.failureLocked(ErrNotHeld)
	case r.verdict != won:
		return r.unreachedLocked(r.decisive())
	case until <= k.locker.clock.Now()+k.spec.grace:
		return r.failureLocked(ErrExpired)
	}
	k.since = r.start
	k.bindLocked(r, until)
	return nil
}

// beginTakeOver sends the extension.
func (k *Lock) beginTakeOver(observer decisionObserver) (*round, error) {
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over != nil {
		return nil, k.over
	}
	r := k.newExtensionLocked(k.spec.ttl, k.asOf, observer)
	k.issueLocked(r, &after)
	return r, nil
}
