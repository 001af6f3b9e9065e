package redlock

import (
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
	// renewShare of the ttl after a renewal the next one begins, which leaves time for two more attempts.
	renewShare = 3
	// maxMasters is the most masters one Locker can have. More than nine buy no safety worth their latency.
	maxMasters = 64
)

// Options configure a Locker. The zero value is what most programs want.
type Options struct {
	// RequestTimeout is how long one master may take to answer before its vote counts as unknown.
	// Default: a twentieth of the ttl, at least 10 ms and at most 1 s.
	RequestTimeout time.Duration
	// DriftFactor is how much faster or slower than this machine's a master's clock may run, as a fraction of one.
	// A lock's validity is ttl × DriftFactor + 2 ms shorter than its ttl. Default: 0.01.
	DriftFactor float64
	// Clock tells the time. Default: the masters', if they are [Timed]; else the machine's, counting suspended time where the system can.
	Clock Clock
	// Jitter returns a random duration of at least 0 and below d; it spreads out retries. Default: math/rand/v2.
	// Another one is for tests that replay. Called from several goroutines.
	Jitter func(d time.Duration) time.Duration
	// RestartGuard keeps a master that restarted, and may have forgotten locks, from voting until it has run for this
	// long; a master that fsyncs every command before it answers, and has not lost its disk, votes at once. Give the
	// longest ttl that anybody uses on these masters; this Locker refuses longer ones, and a guard so short that no ttl
	// is left. It only works on connections of the library's own: [Dial] opens them so, and [New] takes masters that were
	// (single.Options.RestartGuard, see [Guarded]) and refuses others. For as long after the very first start of a master
	// it does not vote either. See [single.GuardError].
	// Default: what the masters have, with Dial none, which is safe only for masters that keep their data.
	RestartGuard time.Duration
	// Generation is the number of this configuration of masters, one more with every step in which masters are exchanged
	// (docs/membership.md). Masters keep the greatest that they have been told. A Locker that is two or more behind has been
	// forgotten when the others were changed: it takes and extends no lock any more, and the error matches [ErrOutdated]. It
	// asks a quorum of masters before its first acquisition and again whenever the last answer is more than ten seconds old; that
	// answer is all that it costs. Default: 0, which asks nothing and is told nothing.
	Generation uint64
	// Identity says whose locks these are, to whoever looks at a master, at [Locker.Holder], at an error or at an event:
	// up to 64 characters of ASCII without spaces, quotes and brackets, in front of the random part of every lock's owner
	// value. It is shown, so it must not be a secret; it travels with every request, so it should be short. Default:
	// host:pid, the host without its domain.
	Identity string
	// Prefix stands on the masters in front of every key that this Locker takes: for programs or tenants that share masters and must not get in
	// each other's way, and for users who may touch no other keys (docs/security.md). Callers have nothing to do with it: keys are theirs in arguments, in
	// [Lock.Key], [Locker.Held], [Handover], events and errors; only what a master itself has said names them as they are there. With the Prefix "a:" the key "b" is the lock that "a:b" is without
	// one, for this and every other implementation. A hash tag in it is that of every key. Up to 1,024 bytes, any but such as begin with
	// [single.ReservedPrefix]; a key can be as long as ever, the Prefix included. Default: none.
	Prefix string
	// Observer is told what the Locker does: for logs, metrics and traces. Events come in the order in which they
	// happened, one at a time, in a goroutine of their own, soon after what they tell of: an Observer may take its time
	// and may call the Locker, except for Close, and delays nothing but later events. Those for which there is no room
	// any more, because it is thousands behind, are counted ([Event].Missed; the last ones by the error of Close). A
	// panic of the Observer costs the one event, and is returned by Close, the first of them. Close waits until
	// everything has been told, unless its context ends before.
	// Default: nil, which costs nothing.
	Observer func(Event)
}

// withDefaults checks o and fills in what was left out.
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
		return o, invalid("Options.Identity is %.*q of %d bytes, and can be up to %d characters of ASCII without spaces, quotes and brackets",
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

// AutoRenew keeps the lock: at a third of its ttl it is extended by another ttl, again and again until it is released
// or lost. Give it a bound with [MaxHold] or [MaxRenewals], or a holder that hangs keeps the lock for ever.
func AutoRenew() Option {
	return func(s *spec) error {
		s.renew = true
		return nil
	}
}

// MaxHold ends a hold, renewed or extended however often, this long after its acquisition began. Its Done channel
// closes by then.
func MaxHold(d time.Duration) Option {
	return func(s *spec) error {
		if d <= 0 {
			return invalid("MaxHold is %v, and must be positive", d)
		}
		s.maxHold = d
		return nil
	}
}

// MinHold has the masters keep the key until d after the acquisition began, however early it is released: for a job that is due at the same
// time on several machines whose clocks differ, and takes less time than they do. The lock itself is over with Release, as usual; only nobody
// gets the key before. Release cuts what is left of its ttl down to what is left of d, so the process may end then. A hold that lasted
// for d is released at once, and so is one that was lost.
//
// d is below the lock's validity, so that a holder which dies, or whose Release reaches no master, leaves the key for d as well: it
// stays for the ttl of the acquisition, or of the last renewal. It does not go over to whoever attaches to the lock ([Lock.Handover]). Plain
// locks only, of one key or several.
func MinHold(d time.Duration) Option {
	return func(s *spec) error {
		if d <= 0 {
			return invalid("MinHold is %v, and must be positive", d)
		}
		s.minHold = d
		return nil
	}
}

// MaxRenewals stops [AutoRenew] after n successful renewals; the lock then lapses at the end of its validity. It needs
// AutoRenew, which [Locker.Do] and an [Election] bring along.
func MaxRenewals(n int) Option {
	return func(s *spec) error {
		if n <= 0 {
			return invalid("MaxRenewals is %d, and must be positive", n)
		}
		s.maxRenewals = n
		return nil
	}
}

// Grace is by how much Done and the contexts of a lock that is not extended in time end before its validity does. It is
// for what the holder needs to notice that and to stop, and for timers that are late on a busy machine: nobody else gets
// the lock before validity ends, or Release is called. Default: a fiftieth of the ttl, at most 200 ms; with [Locker.Do]
// and in an [Election] a tenth, at most 2 s; at least 1 ms. It can be up to half the ttl, and must be shorter than [MaxHold].
func Grace(d time.Duration) Option {
	return func(s *spec) error {
		if d <= 0 {
			return invalid("Grace is %v, and must be positive", d)
		}
		s.grace = d
		return nil
	}
}

// forWork is an option of what is cancelled when the lock is over, and takes a while to stop.
func forWork(s *spec) error {
	s.working = true
	return nil
}

// forElection is an option of a term, which has an ID of its own.
func forElection(s *spec) error {
	s.elects = true
	return nil
}

// MaxAttempts makes Acquire give up after n attempts; the error is that of the last one. An attempt is a round or, while
// others of this process are before it in the queue for the key, a pause spent there. The last one asks the masters wherever it stands, and as
// [Locker.TryAcquire] does: it repeats a round whose votes were split, within the request timeout, and its error may match [ErrContended].
// MaxAttempts(1) is that alone, and can't be combined with [RetryEvery] or [MaxOutage]. A round that only
// looks for a release that may have been missed does not count. Default: it goes on until its context is done.
func MaxAttempts(n int) Option {
	return func(s *spec) error {
		if n <= 0 {
			return invalid("MaxAttempts is %d, and must be positive", n)
		}
		s.maxAttempts = n
		return nil
	}
}

// RetryEvery makes Acquire try again at a fixed interval, or sooner when it is notified of a release; where the key is kept after that ([MinHold]), it
// tries when that is over. It tries more often, which does not count as its attempts, in three cases. While somebody of this
// process waits behind it: as often as by default. While it keeps new readers out ([Shared]): about once a second. Where d is longer than that, while a quorum of masters can notify the Locker: 24 to 27 s
// after each attempt, because a master forgets who waits, and would not notify it, a minute after it was last asked. So a release of which no
// notification comes, say because it went to a process that has died, is noticed within half a minute too. Default: a
// jittered backoff that grows from 2 ms to 64 ms and, while a quorum of masters can notify the Locker, 100 to 200 ms.
func RetryEvery(d time.Duration) Option {
	return func(s *spec) error {
		if d <= 0 {
			return invalid("RetryEvery is %v, and must be positive", d)
		}
		s.every = d
		return nil
	}
}

// Fenced gives the lock a fencing token, [Lock.Token]: a number greater than that of every earlier acquisition of the
// key, which a resource can check to keep out a holder that has been overtaken. It costs no additional round trip
// unless the masters' counters differ. Every acquisition of the key should then be fenced.
func Fenced() Option {
	return func(s *spec) error {
		s.fenced = true
		return nil
	}
}

// MaxPublished bounds what [Published] takes, in bytes.
const MaxPublished = 4 << 10

// Published has a lock say something, for as long as it is held, to whoever asks for its [Holder]: an address, for instance. value
// may be any bytes, up to [MaxPublished]; it is no secret and can't be changed. The lock is [Fenced], and its token is told too. Both
// are part of what is set on the masters to take the key, so they are there from its acquisition to its end, and never another's.
//
// They travel with every request for the lock and with every refusal to those who wait for it, so a value should be short. The
// acquisition costs a round more where its wall clock is behind the masters' fencing counters.
func Published(value string) Option {
	return func(s *spec) error {
		if len(value) > MaxPublished {
			return invalid("Published has %d bytes, and %d is the most", len(value), MaxPublished)
		}
		s.fenced, s.publishes, s.value = true, true, value
		return nil
	}
}

// Shared takes the key as one reader of many: it excludes writers ([Exclusive]) and locks of every other kind, and no
// other reader. Each reader's hold ends by itself. A writer that waits lets no more readers in, until it has had the lock or gives up, or
// for 2.5 s after its process has died; so does who waits for a lock of another kind while readers have the key.
func Shared() Option { return kind(single.Shared, "") }

// Exclusive takes a key that others take [Shared] as its only writer.
func Exclusive() Option { return kind(single.Exclusive, "") }

// Reentrant takes the key exclusively for owner, which may take it any number of times: each acquisition is a hold of
// its own with its own end, and the key is free when the last one is over. Owner names who may enter again, for
// instance a job; it must be unguessable by others, for it is all it takes. An Acquire of the key under the Context of
// a Reentrant lock re-enters without being told the owner.
func Reentrant(owner string) Option {
	if owner == "" {
		return func(*spec) error { return invalid("Reentrant with an empty owner") }
	}
	return kind(single.Exclusive, owner)
}

func kind(kind single.Kind, owner string) Option {
	return func(s *spec) error {
		if s.kind != single.Plain && (s.kind != kind || s.owner != owner) {
			return invalid("more than one of Shared, Exclusive and Reentrant")
		}
		s.kind, s.owner = kind, owner
		return nil
	}
}

// AndKeys takes more keys together with the first, all or none: on each master at once, and by majority. On a Redis
// Cluster all keys must share a hash tag. Order and duplicates do not matter.
func AndKeys(keys ...string) Option {
	return func(s *spec) error {
		if len(keys) == 0 {
			return invalid("AndKeys without a key")
		}
		s.keys = append(s.keys, keys...)
		return nil
	}
}

// MaxOutage makes Acquire give up when no quorum of masters could be reached for d; the error matches [ErrNoQuorum]. It is
// counted from the first round of this Locker that reached none, since the last one that did, but not from before the call.
// Waiting for a lock that somebody holds is not bounded by it. Default: an outage is waited out until ctx is done.
func MaxOutage(d time.Duration) Option {
	return func(s *spec) error {
		if d <= 0 {
			return invalid("MaxOutage is %v, and must be positive", d)
		}
		s.maxOutage = d
		return nil
	}
}
