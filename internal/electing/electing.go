// Package electing lets package leader ask for the locks that are terms of an election: they are not passed on inside
// the process, since their IDs name their leaders, and their default grace leaves a leader time to stop.
package electing

import "context"

// term is a context for one call. What descends from it, such as the context of an event, is none.
type term struct {
	context.Context
	endures bool
}

// Context returns a context for the acquisition of a term. If it endures, the wait does not end because masters
// complain.
func Context(ctx context.Context, endures bool) context.Context { return term{ctx, endures} }

// Of reports that ctx is such a context.
func Of(ctx context.Context) (is, endures bool) {
	t, is := ctx.(term)
	return is, t.endures
}
