package redlock

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// maxKeySize bounds a key, in bytes. Redis takes 512 MB; a key that long is a mistake.
	maxKeySize = 64 << 10
	// maxKeys bounds the keys of one lock: a master does nothing else while it takes them.
	maxKeys = 1024
)

// Option changes one acquisition.
type Option func(*spec) error

// spec is one acquisition as it was asked for.
type spec struct {
	keys        []string  // sorted, without duplicates
	key         [1]string // what keys begins as
	kind        single.Kind
	owner       string // "": a new one for every attempt
	entered     bool   // the context is that of a lock that this enters again
	within      string // the hold that it is under, of a reader
	label       string // in front of the random part of an owner
	fenced      bool
	ttl         time.Duration
	timeout     time.Duration // of one request
	every       time.Duration // 0: backoff
	maxAttempts int           // 0: no limit
	renew       bool
	maxHold     time.Duration // 0: no limit
	maxRenewals int           // 0: no limit
}

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

// MaxRenewals stops [AutoRenew] after n successful renewals; the lock then lapses at the end of its validity.
func MaxRenewals(n int) Option {
	return func(s *spec) error {
		if n <= 0 {
			return invalid("MaxRenewals is %d, and must be positive", n)
		}
		s.maxRenewals = n
		return nil
	}
}

// MaxAttempts makes Acquire give up after n rounds; the error is that of the last one. Default: it goes on until its
// context is done.
func MaxAttempts(n int) Option {
	return func(s *spec) error {
		if n <= 0 {
			return invalid("MaxAttempts is %d, and must be positive", n)
		}
		s.maxAttempts = n
		return nil
	}
}

// RetryEvery makes Acquire try again at a fixed interval, or sooner when it hears of a release. Default: a jittered
// backoff that grows from 2 ms to 64 ms.
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

// Shared takes the key as one reader of many: it excludes writers ([Exclusive]) and locks of every other kind, and no
// other reader. Each reader's hold ends by itself. A writer that waits lets no more readers in.
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

// reenters reports that the acquisition enters a lock again, or may do so: it knows its owner.
func (s *spec) reenters() bool { return s.owner != "" }

// newSpec checks what was asked for before anything is sent.
func (l *Locker) newSpec(key string, ttl time.Duration, opts []Option) (*spec, error) {
	s := &spec{key: [1]string{key}, ttl: ttl.Truncate(time.Millisecond)}
	s.keys = s.key[:]
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("nil Option")
		}
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if len(s.keys) > 1 {
		slices.Sort(s.keys)
		s.keys = slices.Compact(s.keys)
	}
	var err error
	s.timeout, err = l.checkTTL(s.ttl)
	return s, err
}

// check refuses keys that can't be meant and options that contradict each other.
func (s *spec) check() error {
	for _, key := range s.keys {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	switch {
	case len(s.keys) > maxKeys:
		return invalid("%d keys, and %d is the most", len(s.keys), maxKeys)
	case s.maxRenewals > 0 && !s.renew:
		return invalid("MaxRenewals without AutoRenew")
	case s.fenced && s.kind == single.Shared:
		return invalid("Fenced and Shared: readers do not exclude each other, so no token could order them")
	case s.fenced && s.kind != single.Plain:
		return invalid("Fenced together with Exclusive or Reentrant: fence a plain lock instead")
	case s.fenced && len(s.keys) > 1:
		return invalid("Fenced with several keys: a token belongs to one key")
	case s.kind != single.Plain && len(s.keys) > 1:
		return invalid("several keys together with Shared, Exclusive or Reentrant")
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return invalid("empty key")
	case len(key) > maxKeySize:
		return invalid("key of %d bytes, beginning with %.32q, is longer than %d", len(key), key, maxKeySize)
	}
	return nil
}

// checkTTL refuses a ttl that leaves no validity, and returns its request timeout.
func (l *Locker) checkTTL(ttl time.Duration) (time.Duration, error) {
	allowance := driftAllowance(ttl, l.opts.DriftFactor)
	if ttl <= allowance {
		return 0, invalid("ttl %v leaves no validity: the drift allowance alone is %v", ttl, allowance)
	}
	if guard := l.opts.RestartGuard; guard > 0 && ttl > guard {
		return 0, invalid("ttl %v is longer than Options.RestartGuard %v: a master could vote again before it is over", ttl, guard)
	}
	timeout := l.opts.requestTimeout(ttl)
	if l.opts.RequestTimeout >= ttl {
		return 0, invalid("Options.RequestTimeout %v is not below the ttl %v", timeout, ttl)
	}
	return timeout, nil
}
