package redlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/lockcontext"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// maxKeySize bounds a key, in bytes. Redis takes 512 MB; a key that long is a mistake.
	maxKeySize = 64 << 10
	// maxKeys bounds the keys of one lock: a master does nothing else while it takes them.
	maxKeys = 1024
)

// spec has the arguments and options of one acquisition.
type spec struct {
	contend.Acquisition
	locker *Locker
	key    [1]string // what Keys begins as

	enduring bool // its wait does not end because masters complain
	working  bool // the default grace leaves work time to stop
	waited   bool // the observer was told that it waits

	values context.Context // of the call, for the Observer; nil without one
}

// KeysOf returns the keys that an acquisition of key with these options takes: first key, then the keys of [AndKeys]
// in the order given. The error matches [ErrInvalid].
func KeysOf(key string, opts ...Option) ([]string, error) {
	s := new(spec)
	s.Keys = []string{key}
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.Keys, nil
}

// apply applies the options to the spec.
func (s *spec) apply(opts []Option) error {
	for _, opt := range opts {
		if opt == nil {
			return invalid("nil Option")
		}
		if err := opt(s); err != nil {
			return err
		}
	}
	return nil
}

// newSpec checks the arguments of an acquisition before anything is sent.
func (l *Locker) newSpec(key string, ttl time.Duration, opts []Option) (*spec, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	s := &spec{locker: l, key: [1]string{key}}
	s.Keys = s.key[:]
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	if len(s.Keys) > 1 {
		slices.Sort(s.Keys)
		s.Keys = slices.Compact(s.Keys)
	}
	err := s.check()
	if err == nil {
		err = s.addPrefix(l)
	}
	if err != nil {
		return nil, err
	}
	if s.TTL, s.Timeout, err = l.checkTTL(ttl); err != nil {
		return nil, err
	}
	if s.MendTime = s.MaxOutage; s.MendTime == 0 && !s.enduring {
		s.MendTime = MendTime
	}
	allowance := l.env.Allowance(s.TTL)
	if s.MinHold > s.TTL-allowance {
		return nil, invalid("MinHold %v is longer than the validity, %v: a holder that dies would not leave the key "+
			"for so long", s.MinHold, s.TTL-allowance)
	}
	if err := s.setGrace(allowance); err != nil {
		return nil, err
	}
	return s, nil
}

// check refuses keys that can't be meant and options that contradict each other.
func (s *spec) check() error {
	for _, key := range s.Keys {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	switch {
	case len(s.Keys) > maxKeys:
		return invalid("%d keys, and %d is the most", len(s.Keys), maxKeys)
	case s.MaxRenewals > 0 && !s.Renew:
		return invalid("MaxRenewals without AutoRenew")
	case s.MaxAttempts == 1 && s.Every > 0:
		return invalid("RetryEvery together with MaxAttempts(1): there is no second attempt")
	case s.MaxAttempts == 1 && s.MaxOutage > 0:
		return invalid("MaxOutage together with MaxAttempts(1): a single attempt waits for no outage to end")
	case s.MinHold > 0 && s.Kind != single.Plain:
		return invalid("MinHold together with Shared, Exclusive or Reentrant")
	case s.MinHold > 0 && s.MaxHold > 0 && s.MinHold > s.MaxHold:
		return invalid("MinHold %v is longer than MaxHold %v", s.MinHold, s.MaxHold)
	case s.Fenced && s.Kind == single.Shared:
		return invalid("Fenced and Shared: readers do not exclude each other, so no token could order them")
	case s.Fenced && s.Kind != single.Plain:
		return invalid("Fenced together with Exclusive or Reentrant: fence a plain lock instead")
	case s.Fenced && len(s.Keys) > 1:
		return invalid("Fenced with several keys: a token belongs to one key")
	case s.Kind != single.Plain && len(s.Keys) > 1:
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
	case single.Reserved(key):
		return invalid("key %.64q begins with %q, which is reserved for what is kept on the masters beside the keys",
			key, single.ReservedPrefix)
	}
	return nil
}

// checkTTL returns a ttl as masters count it, and its request timeout. It refuses a ttl that leaves no validity.
func (l *Locker) checkTTL(asked time.Duration) (ttl, timeout time.Duration, _ error) {
	ttl = asked.Truncate(time.Millisecond)
	if ttl <= 0 {
		return 0, 0, invalid("ttl is %v, and must be at least a millisecond", asked)
	}
	allowance := l.env.Allowance(ttl)
	if ttl <= allowance {
		return 0, 0, invalid("ttl %v leaves no validity: the drift allowance alone is %v", ttl, allowance)
	}
	if guard := l.opts.RestartGuard; guard > 0 && ttl > guard {
		return 0, 0, invalid("ttl %v is longer than the masters' restart guard, %v: one that has forgotten the lock "+
			"could vote again before it is over", ttl, guard)
	}
	timeout = l.opts.requestTimeout(ttl)
	if l.opts.RequestTimeout >= ttl {
		return 0, 0, invalid("Options.RequestTimeout %v is not below the ttl %v", timeout, ttl)
	}
	return ttl, timeout, nil
}

// checkGuardedTTL refuses a restart guard that is shorter than the ttl of any lock.
func (l *Locker) checkGuardedTTL() error {
	if l.opts.RestartGuard == 0 {
		return nil
	}
	if _, err := l.newSpec("any", l.opts.RestartGuard, nil); err != nil {
		return fmt.Errorf("%w (no lock can have a longer ttl than the masters' restart guard, %v)", err,
			l.opts.RestartGuard)
	}
	return nil
}

// The default grace: a share of the ttl, or of MaxHold if that is shorter, within bounds.
const (
	graceShare   = 50
	minGrace     = time.Millisecond
	maxGrace     = 200 * time.Millisecond
	workShare    = 10
	maxWorkGrace = 2 * time.Second
)

// setGrace checks the grace from the options, or chooses a grace. A grace as long as the validity would make a lock
// that is over before its caller has it, and masters would grant such a lock again and again.
func (s *spec) setGrace(allowance time.Duration) error {
	span := s.TTL
	if s.MaxHold > 0 {
		span = min(span, s.MaxHold)
	}
	switch {
	case s.Grace > s.TTL/2:
		return invalid("Grace is %v, and can be up to half the ttl, %v", s.Grace, s.TTL/2)
	case s.Grace > 0:
	case s.working:
		s.Grace = max(minGrace, min(span/workShare, maxWorkGrace))
	default:
		s.Grace = max(minGrace, min(span/graceShare, maxGrace))
	}
	switch {
	case s.MaxHold > 0 && s.Grace >= s.MaxHold:
		return invalid("Grace %v is not below MaxHold %v", s.Grace, s.MaxHold)
	case s.Grace >= s.TTL-allowance:
		return invalid("ttl %v leaves no validity: the drift allowance is %v, and Grace %v", s.TTL, allowance, s.Grace)
	}
	return nil
}

// enter looks for the key among the locks to which ctx belongs. An acquisition without an explicit kind enters a
// Reentrant or Exclusive lock again, as its owner. A reader enters together with an outer reader. Any other
// acquisition would wait for itself.
func (s *spec) enter(ctx context.Context, l *Locker) error {
	for c := lockcontext.Of(ctx); c != nil; c = lockcontext.Of(c.Context) {
		outer := lockOf(c.Hold)
		if outer.locker != l || !intersect(outer.spec.Keys, s.Keys) || outer.Err() != nil {
			continue
		}
		kinds := [2]single.Kind{outer.spec.Kind, s.Kind}
		switch {
		case kinds == [2]single.Kind{single.Shared, single.Shared}:
			s.Owner, s.Within, s.Enters = outer.Owner(), outer.hold.ID(), true // waiting writers do not keep it out
			return nil
		case outer.spec.Kind == single.Exclusive && s.enterable(outer.Owner()):
			s.Kind, s.Owner, s.Enters = single.Exclusive, outer.Owner(), true
			return nil
		default:
			return fmt.Errorf("%w: %s", ErrAlreadyHeld, brief(l.shown(s.Keys[0])))
		}
	}
	return nil
}

// enterable reports that the acquisition may become one more hold of owner.
func (s *spec) enterable(owner string) bool {
	return s.Kind != single.Shared && !s.Fenced && s.MinHold == 0 && len(s.Keys) == 1 &&
		(s.Owner == "" || s.Owner == owner)
}

func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(key string) bool { return slices.Contains(b, key) })
}

// A Locker with a Prefix has two names for a key: the callers' name, and the masters' name with the prefix in front.
// The spec of a checked acquisition has the masters' names, and so does all code behind it: requests, wait queues,
// notifications, the janitor, retention. Wherever something is shown, the callers' names are derived from the
// masters' names. So new code could forget to remove the prefix from a message, but it could never lock another key.

// maxPrefixSize bounds Options.Prefix, in bytes.
const maxPrefixSize = 1 << 10

func checkPrefix(prefix string) error {
	switch {
	case len(prefix) > maxPrefixSize:
		return invalid("Options.Prefix of %d bytes, beginning with %.32q, is longer than %d", len(prefix), prefix,
			maxPrefixSize)
	case single.Reserved(prefix):
		return invalid("Options.Prefix %.64q begins with %q, which is reserved for what is kept on the masters "+
			"beside the keys",
			prefix, single.ReservedPrefix)
	}
	return nil
}

// onMasters is the name that a caller's key has on the masters.
func (l *Locker) onMasters(key string) (string, error) {
	prefix := l.opts.Prefix
	if prefix == "" {
		return key, nil
	}
	switch full := prefix + key; {
	case len(full) > maxKeySize:
		return "", invalid("key of %d bytes, beginning with %.32q, is longer than %d with the %d of Options.Prefix",
			len(key), key, maxKeySize, len(prefix))
	case single.Reserved(full):
		return "", invalid("key %.64q with Options.Prefix %q in front begins with %q, which is reserved for what is "+
			"kept on the masters beside the keys",
			key, prefix, single.ReservedPrefix)
	default:
		return full, nil
	}
}

// addPrefix gives a checked acquisition the masters' names of its keys.
func (s *spec) addPrefix(l *Locker) (err error) {
	for i, key := range s.Keys {
		if s.Keys[i], err = l.onMasters(key); err != nil {
			return err
		}
	}
	return nil
}

// shown is the caller's name of a key on the masters.
func (l *Locker) shown(key string) string { return strings.TrimPrefix(key, l.opts.Prefix) }

// allShown returns the callers' names of the masters' keys, in a new slice.
func (l *Locker) allShown(keys []string) []string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = l.shown(key)
	}
	return all
}

// listed are the callers' names of keys on the masters, as events and errors have them.
func (l *Locker) listed(keys []string) string {
	if len(keys) == 1 {
		return l.shown(keys[0])
	}
	return strings.Join(l.allShown(keys), ",")
}
