// Package keyspace names what the library keeps on a master beside a lock's own key. The library does not export these
// names, so the command's tests compare what is said here with what is found on real masters.
package keyspace

import "strings"

// Token is the key of the fencing counter of a lock.
func Token(key string) string { return beside("redlock:token:", key) }

// Queue is the key of the arrival queue of a lock: a sorted set, in which scores from 0 are waiters.
func Queue(key string) string { return beside("redlock:queue:", key) }

// beside has the same hash tag as key, so that a Cluster keeps both in one slot.
func beside(prefix, key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 && strings.IndexByte(key[open+1:], '}') > 0 {
		return prefix + key
	}
	return prefix + "{" + key + "}"
}
