package sharded

import "strings"

// This file decides where a key belongs. Every process that ever shares keys must compute the same, so nothing here may
// change.

// hashTag is the part of a key that decides about its place: as in a Redis Cluster.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}

// rendezvous returns the index of the group with the highest score for a key. A group with seed 0 takes no part. The
// groups are sorted by name, so equal scores, if they ever happen, have the same winner everywhere.
func rendezvous(key uint64, seeds []uint64) int {
	best, at := uint64(0), -1
	for i, seed := range seeds {
		if seed == 0 {
			continue
		}
		if score := mix(key ^ seed); at < 0 || score > best {
			best, at = score, i
		}
	}
	return at
}

// hash is FNV-1a, mixed, and never 0. Every process that ever shares keys must compute the same, so it must not change.
func hash(s string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return max(1, mix(h))
}

// mix spreads every bit over all others: the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
