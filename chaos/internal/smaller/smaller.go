// Package smaller looks for the smallest data that still fail in some way.
package smaller

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Search looks for a smaller S that still fails, until no single simplification is left or ctx is done. S is data that
// JSON can encode. all lists changes that make an S simpler or leave it unchanged, largest first. Search passes all
// that it tries to fails. The result has failed, or is s.
func Search[S any](ctx context.Context, s *S, all func(*S) []func(), fails func(*S) bool) *S {
	best := clone(s)
	for n, again := 0, false; ctx.Err() == nil; {
		candidate := clone(best)
		changes := all(candidate)
		switch {
		case n < len(changes):
			changes[n]()
			if reflect.DeepEqual(candidate, best) || !fails(candidate) {
				n++
				continue
			}
			best, again = candidate, true // what was next is the n-th of it
		case again:
			n, again = 0, false
		default:
			return best
		}
	}
	return best
}

// clone copies by way of the encoding.
func clone[S any](s *S) *S {
	c := new(S)
	if encoded, err := json.Marshal(s); err != nil || json.Unmarshal(encoded, c) != nil {
		return s // nothing in data can fail to be encoded
	}
	return c
}

// EachWithout adds, for each element, its removal. The next element takes its index, so the same simplification again
// removes a run of elements.
func EachWithout[V any](all []func(), from *[]V) []func() {
	for i := range *from {
		all = append(all, func() { *from = slices.Delete(*from, i, i+1) })
	}
	return all
}

// WithoutClient takes client c out, with its own faults, unless it is the only one.
func WithoutClient[C, F any](clients *[]C, faults *[]F, c int, clientOf func(*F) *int) {
	if len(*clients) == 1 {
		return
	}
	*clients = slices.Delete(*clients, c, c+1)
	*faults = slices.DeleteFunc(*faults, func(f F) bool { return *clientOf(&f) == c })
	for i := range *faults {
		if client := clientOf(&(*faults)[i]); *client > c {
			*client--
		}
	}
}

// Fields adds, for every value in v, a settable struct or slice, to leave it out and to make it rounder, as far as the
// tags allow.
func Fields(all []func(), v reflect.Value) []func() {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			all = Fields(all, v.Index(i))
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			how := f.Tag.Get("shrink")
			if how == "-" {
				continue
			}
			if how == "" && strings.HasSuffix(f.Tag.Get("json"), ",omitempty") {
				all = append(all, field.SetZero)
			}
			all = Fields(all, field)
		}
	default:
		if d, ok := reflect.TypeAssert[*time.Duration](v.Addr()); ok {
			all = append(all, func() { *d = rounder(*d) })
		}
	}
	return all
}

// rounder is a simpler duration, but not 0.
func rounder(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{
		100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond, 100 * time.Microsecond,
	} {
		if r := d.Truncate(unit); r > 0 && r != d {
			return r
		}
	}
	return d
}
