package redlock

import (
	"strings"

	"github.com/seed-624411e5/redlock/single"
)

// A Locker with a Prefix has two names for a key: its callers' and, with the prefix in front, that of the masters. An acquisition has the
// masters' names in its spec from the moment it was checked, and so has everything behind it: requests, wait queues, notifications, the
// janitor, retention. Callers' names are made of them where something is shown. So what a new place could forget is to leave the prefix out of a
// message, never to lock another key.

// maxPrefixSize bounds Options.Prefix, in bytes.
const maxPrefixSize = 1 << 10

func checkPrefix(prefix string) error {
	switch {
	case len(prefix) > maxPrefixSize:
		return invalid("Options.Prefix of %d bytes, beginning with %.32q, is longer than %d", len(prefix), prefix, maxPrefixSize)
	case single.Reserved(prefix):
		return invalid("Options.Prefix %.64q begins with %q, which is reserved for what is kept on the masters beside the keys",
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
		return "", invalid("key of %d bytes, beginning with %.32q, is longer than %d with the %d of Options.Prefix", len(key), key, maxKeySize, len(prefix))
	case single.Reserved(full):
		return "", invalid("key %.64q with Options.Prefix %q in front begins with %q, which is reserved for what is kept on the masters beside the keys",
			key, prefix, single.ReservedPrefix)
	default:
		return full, nil
	}
}

// addPrefix gives a checked acquisition the masters' names of its keys.
func (s *spec) addPrefix(l *Locker) (err error) {
	for i, key := range s.keys {
		if s.keys[i], err = l.onMasters(key); err != nil {
			return err
		}
	}
	return nil
}

// withPrefix gives what shown has returned the masters' names again.
func (l *Locker) withPrefix(keys []string) []string {
	for i, key := range keys {
		keys[i] = l.opts.Prefix + key
	}
	return keys
}

// shown is the caller's name of a key on the masters.
func (l *Locker) shown(key string) string { return strings.TrimPrefix(key, l.opts.Prefix) }

// allShown are the callers' names of keys on the masters, in a slice of their own.
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
