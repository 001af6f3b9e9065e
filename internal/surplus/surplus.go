// Package surplus lets the project's other packages release a lock that was never used: rules for locks in use do not
// apply to it.
package surplus

import "context"

type key struct{}

// Release returns a context for the release of a lock that was acquired and never used. The release does not keep the
// key for a MinHold.
func Release(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports that ctx is such a context.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
