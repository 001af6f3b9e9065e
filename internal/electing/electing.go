// Package electing lets package leader ask for the locks that are terms of an election: they are not passed on inside
// the process, since their IDs name their leaders, and their default grace leaves a leader time to stop.
package electing

import "context"

type key struct{}

// Context returns a context for the acquisition of a term. If it endures, the wait does not end because masters
// complain.
func Context(ctx context.Context, endures bool) context.Context {
	return context.WithValue(ctx, key{}, endures)
}

// Of reports that ctx is such a context.
func Of(ctx context.Context) (is, endures bool) {
	endures, is = ctx.Value(key{}).(bool)
	return is, endures
}
