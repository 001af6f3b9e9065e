package sharded

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// This file keeps a pair of masters from holding half of what it does not hold, when one of its two does not answer. The
// living one would grant each probe of a waiting process, whose release never comes: the pair counts as down, so releases
// end without being sent. With one master of each group down, in different pairs, a majority of either group then keeps the
// key from everybody until its ttl is over. What happens instead:
//
//   - One grants and the other fails, with an error or by its deadline. What was granted is released at once, in the same
//     batch: before the acquisition ends, so also before anything else that its hold asks of the pair.
//   - From then on acquisitions go to the one that failed, and to the other only when that one has answered. So probes leave
//     the living one alone. A restarted one answers, and both are asked again.
//   - The one that failed may still perform the acquisition, as any master may whose answer does not come. The pair has an
//     error, so the hold's release goes to both, and if that is not confirmed, the janitor's.
//   - The release of what was granted fails too. Then the acquisition counts as sent, as before.
//   - A repair may set a key on one of them alone. There is a hold then, whose release removes it.

// failing says which master of a pair failed all it was asked the last time.
type failing struct{ atomic.Int32 }

const (
	neither int32 = iota
	failingBefore
	failingAfter
)

// ask gives a copy of every call to both masters. Acquisitions go to a master that failed the last time alone, and to the
// other when that one has answered.
func (p *pair) ask(ctx context.Context, batch []*single.Call) (before, after []*single.Call) {
	before, after = copies(batch), copies(batch)
	which := p.failing.Load()
	suspect, other, suspected, others := p.before, p.after, before, after
	if which == failingAfter {
		suspect, other, suspected, others = p.after, p.before, after, before
	}
	asked := others
	if which != neither {
		asked = slices.DeleteFunc(slices.Clone(others), func(c *single.Call) bool { return c.Request.Op == single.Acquire })
	}
	var both sync.WaitGroup
	both.Go(func() { doAny(ctx, other, asked) })
	suspect.Do(ctx, suspected)
	both.Wait()
	if which != neither {
		askLater(ctx, other, suspected, others)
	}
	switch {
	case which != neither && allFailed(suspected): // the other may not have been asked
	case allFailed(before):
		p.failing.Store(failingBefore)
	case allFailed(after):
		p.failing.Store(failingAfter)
	default:
		p.failing.Store(neither)
	}
	return before, after
}

// askLater gives a master those acquisitions that the other one, which is suspected of failing, has answered. The rest end
// with its error.
func askLater(ctx context.Context, m redlock.Master, suspected, calls []*single.Call) {
	var answered []*single.Call
	for i, c := range calls {
		switch {
		case c.Request.Op != single.Acquire:
		case suspected[i].Err != nil:
			c.Err = suspected[i].Err
		default:
			answered = append(answered, c)
		}
	}
	doAny(ctx, m, answered)
}

func doAny(ctx context.Context, m redlock.Master, calls []*single.Call) {
	if len(calls) > 0 {
		m.Do(ctx, calls)
	}
}

func allFailed(calls []*single.Call) bool {
	return !slices.ContainsFunc(calls, func(c *single.Call) bool { return c.Err == nil })
}

// leastBudget is what the releases of undo are given at least.
const leastBudget = 10 * time.Millisecond

// undo releases what one master has granted of acquisitions that the other has failed, and says of each whether anything of
// it may be left. It takes no longer than the batch itself was given when it began.
func (p *pair) undo(ctx context.Context, began time.Time, batch, before, after []*single.Call) {
	granted := func(c *single.Call) bool { return c.Err == nil && c.Reply.Outcome == single.Granted }
	var onBefore, onAfter undoing
	for i, c := range batch {
		switch {
		case c.Request.Op != single.Acquire:
		case granted(before[i]) && after[i].Err != nil:
			onBefore.add(c, before[i])
		case granted(after[i]) && before[i].Err != nil:
			onAfter.add(c, after[i])
		}
	}
	if len(onBefore.releases)+len(onAfter.releases) == 0 {
		return
	}
	budget := leastBudget
	if deadline, ok := ctx.Deadline(); ok {
		budget = max(budget, deadline.Sub(began))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { onBefore.do(ctx, p.before) })
	onAfter.do(ctx, p.after)
	both.Wait()
}

// undoing is the releases of what one master has granted.
type undoing struct{ releases, granted []*single.Call }

func (u *undoing) add(c, granted *single.Call) {
	r := c.Request
	release := &single.Request{Op: single.Release, Kind: r.Kind, Keys: r.Keys, Owner: r.Owner, Hold: r.Hold, Within: r.Within, TTL: r.TTL}
	u.releases = append(u.releases, &single.Call{Request: release})
	u.granted = append(u.granted, granted)
}

func (u *undoing) do(ctx context.Context, m redlock.Master) {
	if len(u.releases) == 0 {
		return
	}
	m.Do(ctx, u.releases)
	for i, c := range u.releases {
		if c.Err == nil {
			u.granted[i].Sent = false // and nothing of it is left
		}
	}
}
