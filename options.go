package redlock

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// The limits within which a request timeout is chosen when Options do not give one.
const (
	minRequestTimeout = 10 * time.Millisecond
	maxRequestTimeout = time.Second
	// timeoutShare of the ttl is the request timeout: a round that needs all of it still leaves 95 % of the ttl.
	timeoutShare = 20
	// maxMasters is the most masters one Locker can have. More than nine buy no safety worth their latency.
	maxMasters = 64
)

// Options configure a Locker. The zero value is what most programs want.
type Options struct {
	// RequestTimeout is how long one master may take to answer before its vote counts as unknown.
	// Default: a twentieth of the ttl, at least 10 ms and at most 1 s.
	RequestTimeout time.Duration
	// DriftFactor is the greatest difference between the rates of this machine's clock and a master's, as a fraction
	// of one. A lock's validity is ttl × DriftFactor + 2 ms shorter than its ttl. Default: 0.01.
	DriftFactor float64
	// Clock tells the time. Default: the clock of the masters if they are [Timed], otherwise the machine's clock.
	// Where the system allows it, the machine's clock also counts time during a suspension.
	Clock Clock
	// Jitter returns a random duration of at least 0 and below d; it spreads out retries. Default: math/rand/v2. Set
	// it in tests that replay. Several goroutines call it at once.
	Jitter func(d time.Duration) time.Duration
	// RestartGuard is for masters that may forget locks in a restart: such a master does not vote until it has run
	// for this long, not even after its first start. A master that fsyncs every command and has kept its disk votes
	// at once.
	//
	// Set it to the longest ttl in use on these masters. The Locker refuses longer ttls, and New refuses a guard that
	// leaves no ttl. [Dial] opens its connections with the guard. [New] refuses a guard if the masters have none
	// ([Guarded], [single.Options]). See also [single.GuardError].
	//
	// Default: the guard of the masters. With Dial that is none, which is safe only for masters that keep their data.
	RestartGuard time.Duration
	// Generation is the number of this configuration of masters. Every step of an exchange of masters
	// ([NewJoint]) adds one. The masters keep the greatest number that they were sent. A Locker that is two or more
	// behind takes and extends no lock; the error matches [ErrOutdated].
	//
	// The Locker asks a quorum of masters before its first acquisition, and again when the last answer is more than
	// ten seconds old. Default: 0, which asks and announces nothing.
	Generation uint64
	// Identity names the holder of this Locker's locks to people: on the masters, in [Locker.Holder], in errors and
	// in events. It is the start of every lock's owner value; a random part follows. It is up to 64 characters of
	// ASCII without spaces, quotes and brackets. It is no secret, and every request carries it, so keep it short.
	// Default: host:pid, the host without its domain.
	Identity string
	// Prefix is put in front of every key on the masters, for programs or tenants that share masters and for users
	// with rights to some keys only. Arguments, [Lock.Key], [Locker.Held], [Handover], events and errors have the key
	// without the Prefix; only a message from a master shows both. With the Prefix "a:" the key "b" is the same lock as
	// the key "a:b" without a Prefix, also for other implementations. A hash tag in the Prefix applies to every key.
	//
	// A Prefix is up to 1,024 bytes, and does not begin with [single.ReservedPrefix]. The limit on a key's length
	// includes it. Default: none.
	Prefix string
	// Observer receives the Locker's events, for logs, metrics and traces. A single goroutine calls it with one event
	// at a time, in the order of the events. A slow Observer delays later events only. It may call the Locker, except
	// for Close.
	//
	// When the Observer is thousands of events behind, further ones are dropped and counted: [Event].Missed has the
	// count, and the error of Close has the last ones. A panic of the Observer loses that event; Close returns the
	// first such panic. Close waits for the last event unless its context ends before. Default: nil, which costs
	// nothing.
	Observer func(Event)
}

// LogValue implements [slog.LogValuer]. Options have functions, which slog's JSON does not print.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", o)) }

// withDefaults checks o and fills in the defaults.
func (o Options) withDefaults() (Options, error) {
	if o.RequestTimeout < 0 {
		return o, invalid("Options.RequestTimeout is negative: %v", o.RequestTimeout)
	}
	if o.DriftFactor < 0 || o.DriftFactor >= 1 || math.IsNaN(o.DriftFactor) {
		return o, invalid("Options.DriftFactor is %v, and must be at least 0 and below 1", o.DriftFactor)
	}
	if o.RestartGuard < 0 {
		return o, invalid("Options.RestartGuard is negative: %v", o.RestartGuard)
	}
	if o.Generation > single.MaxToken {
		return o, invalid("Options.Generation is %d, and %d is the greatest", o.Generation, uint64(single.MaxToken))
	}
	if o.Identity == "" {
		o.Identity = owner.Default()
	}
	if !owner.Valid(o.Identity) {
		return o, invalid("Options.Identity is %.*q of %d bytes, and can be up to %d characters of ASCII without "+
			"spaces, quotes and brackets",
			owner.MaxIdentity, o.Identity, len(o.Identity), owner.MaxIdentity)
	}
	if err := checkPrefix(o.Prefix); err != nil {
		return o, err
	}
	if o.DriftFactor == 0 {
		o.DriftFactor = DefaultDriftFactor
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Jitter == nil {
		o.Jitter = rand.N[time.Duration]
	}
	return o, nil
}

// requestTimeout is how long one request for a lock with this ttl may take.
func (o Options) requestTimeout(ttl time.Duration) time.Duration {
	if o.RequestTimeout > 0 {
		return o.RequestTimeout
	}
	return min(max(ttl/timeoutShare, minRequestTimeout), maxRequestTimeout)
}

// Option changes one acquisition.
type Option func(*spec) error

// positive is an option that sets a field of the spec to value, which must be positive.
func positive[T int | time.Duration](name string, value T, field func(*spec) *T) Option {
	return func(s *spec) error {
		if value <= 0 {
			return invalid("%s is %v, and must be positive", name, value)
		}
		*field(s) = value
		return nil
	}
}

// AutoRenew renews the lock until it is released or lost: after each third of its ttl it is extended by another ttl.
// Set [MaxHold] or [MaxRenewals] too, or a holder that hangs keeps the lock for ever.
func AutoRenew() Option {
	return func(s *spec) error {
		s.Renew = true
		return nil
	}
}

// MaxHold ends a hold d after its acquisition began, even if it is renewed or extended. Done is closed by then. A d
// below the least ttl is [ErrInvalid].
func MaxHold(d time.Duration) Option {
	return positive("MaxHold", d, func(s *spec) *time.Duration { return &s.MaxHold })
}

// MinHold keeps the key on the masters until d after the acquisition began, even if the lock is released before. It
// is for a job that several machines start at the same time: it runs once although their clocks differ by more than
// it takes.
//
// Release ends the lock as usual and shortens the key's ttl to the rest of d, so the process may exit then. A lock
// that was held for d, or was lost, is released at once.
//
// d must be below the lock's validity, or the acquisition fails with [ErrInvalid]. So d also holds when the holder
// dies, or when its Release reaches no master: then the key stays for the ttl of the acquisition or of the last
// renewal. A [Lock.Handover] ends the option. MinHold is for plain locks, of one key or several.
func MinHold(d time.Duration) Option {
	return positive("MinHold", d, func(s *spec) *time.Duration { return &s.MinHold })
}

// MaxRenewals stops [AutoRenew] after n successful renewals; the lock then lapses at the end of its validity. It
// needs AutoRenew. [Locker.Do] and an [Election] always renew.
func MaxRenewals(n int) Option {
	return positive("MaxRenewals", n, func(s *spec) *int { return &s.MaxRenewals })
}

// Grace is the time between the close of Done and the end of validity, for a lock that is not extended in time. The
// lock's contexts end with Done. The holder stops its work in the grace, and a late timer on a busy machine uses some
// of it. Others get the lock only after validity ends or Release is called.
//
// Default: a fiftieth of the ttl, at most 200 ms. With [Locker.Do] and in an [Election]: a tenth, at most 2 s. Always
// at least 1 ms. A grace is at most half the ttl, and shorter than [MaxHold];
// another value is [ErrInvalid].
func Grace(d time.Duration) Option {
	return positive("Grace", d, func(s *spec) *time.Duration { return &s.Grace })
}

// forWork is an option for a lock with work that is cancelled at the end of the lock, and takes a while to stop.
func forWork(s *spec) error {
	s.working = true
	return nil
}

// forTerm is an option for the term of a leader, which has a separate ID. If it endures, the candidate goes on for as
// long as its process lives.
func forTerm(endures bool) Option {
	return func(s *spec) error {
		s.working, s.Elects, s.enduring = true, true, endures
		return nil
	}
}

// MaxAttempts ends Acquire after n attempts with the error of the last one. An attempt is a round, or a pause in the
// queue behind others of this process. The last attempt always asks the masters, as [Locker.TryAcquire] does: it
// repeats a round with split votes within the request timeout, and its error may match [ErrContended]. MaxAttempts(1)
// is only that attempt, and can't be combined with [RetryEvery] or [MaxOutage]. A round that only looks for a missed
// release does not count. Default: Acquire tries until its context is done.
func MaxAttempts(n int) Option {
	return positive("MaxAttempts", n, func(s *spec) *int { return &s.MaxAttempts })
}

// RetryEvery makes Acquire try again every d, and as soon as it is notified of a release. If the key is kept after
// its release ([MinHold]), Acquire tries when that time is over.
//
// It tries more often in three cases, which do not count as its attempts:
//
//   - Another goroutine of this process waits behind it: as often as by default.
//   - It keeps new readers out ([Shared]): about once a second.
//   - A quorum of masters can notify the Locker: every 24 to 27 s if d is longer. A master forgets a waiter a
//     minute after its last request. So a missed release, say because its notification went to a process that died,
//     is noticed within half a minute.
//
// Default: a jittered backoff that grows from 2 ms to 64 ms; 100 to 200 ms while a quorum of masters can notify the
// Locker.
func RetryEvery(d time.Duration) Option {
	return positive("RetryEvery", d, func(s *spec) *time.Duration { return &s.Every })
}

// Fenced gives the lock a fencing token ([Lock.Token]), greater than the token of every earlier acquisition of the
// key. A resource that checks tokens refuses a holder that was overtaken. A token costs no additional round trip
// unless the masters' counters differ. Every acquisition of the key should then be fenced.
func Fenced() Option {
	return func(s *spec) error {
		s.Fenced = true
		return nil
	}
}

// MaxPublished is the greatest size of a value for [Published], in bytes.
const MaxPublished = 4 << 10

// Published shows value to everyone who asks for the [Holder] of the key, while the lock is held: an address, for
// instance. A value is up to [MaxPublished] bytes of any kind, no secret, and fixed. The lock is [Fenced], and its
// token is shown too. Both are part of the value that takes the key on the masters, so they appear and end with the
// lock.
//
// Every request for the lock, and every refusal to a waiter, carries the value: keep it short. The acquisition takes
// one more round when its wall clock is behind the masters' fencing counters.
func Published(value string) Option {
	return func(s *spec) error {
		if len(value) > MaxPublished {
			return invalid("Published has %d bytes, and %d is the most", len(value), MaxPublished)
		}
		s.Fenced, s.Publishes, s.Value = true, true, value
		return nil
	}
}

// Shared takes the key as one reader of many. It excludes writers ([Exclusive]) and locks of every other kind, but no
// other reader. Each reader's hold ends independently. A waiting writer keeps new readers out until it has had the
// lock or stops waiting, or for 2.5 s after its process dies. A waiter for another kind of lock does the same while
// readers have the key.
func Shared() Option { return kind(single.Shared, "") }

// Exclusive takes a key that others take [Shared] as its only writer.
func Exclusive() Option { return kind(single.Exclusive, "") }

// Reentrant takes the key exclusively for owner, which may take it any number of times. Each acquisition is a
// separate hold, and the key is free when the last hold is over. Owner names who may enter again, for instance a job.
// It must be unguessable: anyone who knows it can enter. An Acquire of the key under the Context of a Reentrant lock
// uses that lock's owner.
func Reentrant(owner string) Option {
	if owner == "" {
		return func(*spec) error { return invalid("Reentrant with an empty owner") }
	}
	return kind(single.Exclusive, owner)
}

func kind(kind single.Kind, owner string) Option {
	return func(s *spec) error {
		if s.Kind != single.Plain && (s.Kind != kind || s.Owner != owner) {
			return invalid("more than one of Shared, Exclusive and Reentrant")
		}
		s.Kind, s.Owner = kind, owner
		return nil
	}
}

// AndKeys takes more keys together with the first, all or none: on each master in one step, and by majority. On a
// Redis Cluster all keys must share a hash tag. Order and duplicates do not matter.
func AndKeys(keys ...string) Option {
	return func(s *spec) error {
		if len(keys) == 0 {
			return invalid("AndKeys without a key")
		}
		s.Keys = append(s.Keys, keys...)
		return nil
	}
}

// MendTime is how long Acquire goes on while so many masters complain that no quorum is left. Masters complain of a
// wrong password, a missing right, a certificate, a replica's address or a key of another type. Then the wait ends with
// [ErrMisconfigured]. [MaxOutage] replaces MendTime.
const MendTime = 10 * time.Second

// MaxOutage ends Acquire when it could reach no quorum of masters for d; the error matches [ErrNoQuorum]. An outage
// begins with the first round of this Locker without a quorum after the last round with one, and not before the call.
// MaxOutage does not bound the wait for a lock that is held. It replaces [MendTime] as well. Default: Acquire waits out
// an outage until ctx is done, and complaints of masters for MendTime.
func MaxOutage(d time.Duration) Option {
	return positive("MaxOutage", d, func(s *spec) *time.Duration { return &s.MaxOutage })
}
