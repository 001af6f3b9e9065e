// Package names is about lists of names in flags.
package names

import (
	"fmt"
	"slices"
	"strings"
)

// Split splits a flag at commas and drops blanks; an empty text is an empty list.
func Split(text string) []string {
	var out []string
	for s := range strings.SplitSeq(text, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Of returns the names of all.
func Of[T any](all []T, name func(T) string) []string {
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = name(x)
	}
	return out
}

// Find returns the named ones, in the order of all; no names mean all. The error says which kind of thing is not there.
func Find[T any](kind string, all []T, name func(T) string, wanted []string) ([]T, error) {
	known := Of(all, name)
	for _, n := range wanted {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("%s: there is none called %q", kind, n)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, name(x))
	}), nil
}
