// Package surplus lets the project's other packages give back a lock that nobody has used: what its holder's work needs does not hold for it.
package surplus

import "context"

type key struct{}

// Release returns a context for the release of a lock that was acquired and not used: its key is not kept for a MinHold.
func Release(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports that ctx is such a context.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
