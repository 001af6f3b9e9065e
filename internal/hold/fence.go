package hold

import (
	"context"

	"github.com/seed-624411e5/redlock/single"
)

// Fencing tokens by majority.
//
// Each master keeps a counter F for the key, which only grows. It accepts a token T for an acquisition by raising F
// from below T to T. A grant accepts max(F+1, p) for the proposal p of the client, and returns it. If a quorum returned
// the same value, that is the token. Otherwise one more round asks for one above all that was returned, and that is the
// token once a quorum has accepted it, on masters where the key is still ours.
//
// So a quorum has accepted each token. Any two quorums share a master, and a master accepts no number twice: tokens
// are unique. After a token T was returned, F ≥ T on a quorum. So the token of a later acquisition, which a quorum
// accepts too, is greater: tokens follow the order of acquisitions, whatever clocks and networks do. Only masters
// that lose their counters break the chain. Then the proposal, the wall clock in microseconds, makes it unlikely that
// tokens fall behind.
//
// What could go wrong, step by step, is in docs/evidence/interleavings.md.

// A lock that may be passed on inside the process (see pass.go) asks for n more tokens in the same step. A master
// that accepts T for this lock raises F to T+n, and gives none of T+1 … T+n to other owners. A quorum that accepted T
// has accepted none of these for other owners before, because it had F < T, and accepts none after. So these tokens
// belong to this hold, and the token of any later acquisition is greater than all n.

// noteRetentionLocked records the key of a fenced acquisition if every master has granted it, because then every
// master has received the command that keeps the counter. It may be called after each vote; the last vote decides.
func (r *round) noteRetentionLocked() {
	if r.request.Op != single.Acquire || r.request.Retained {
		return
	}
	for i := range r.ballots {
		if b := &r.ballots[i]; !b.ended || b.Err != nil || b.Reply.Outcome != single.Granted {
			return
		}
	}
	r.hold.env.Retained.Note(r.request.Keys[0], r.hold.env.Now())
}

// greatestLocked returns the greatest token among the counted grants, and whether a quorum returned just that.
func (r *round) greatestLocked() (token uint64, agreed bool) {
	var same uint64
	for i := range r.ballots {
		b := &r.ballots[i]
		switch {
		case b.vote != Granted:
		case b.Reply.Token > token:
			token, same = b.Reply.Token, 1<<i
		case b.Reply.Token == token:
			same |= 1 << i
		}
	}
	return token, r.hold.env.Majority(same)
}

// spareLocked returns the number of tokens after this one that every granting master has reserved. A master that does
// not support spare tokens says so: it gives them to others.
func (r *round) spareLocked(token uint64) uint64 {
	spare := r.request.Spare
	for i := range r.ballots {
		if b := &r.ballots[i]; b.vote == Granted && b.Reply.Token == token {
			spare = min(spare, b.Reply.Spare)
		}
	}
	return spare
}

// maxRaises bounds how many times the Locker asks for a token above the counters of the masters. Counters get ahead
// again only while others try to acquire the key; see [Lead].
const maxRaises = 4

// fenced is a Hold as one that gets a token.
type fenced Hold

// fence finds the token of a lock after it has won its acquisition r. If the masters' counters differ, it sends one
// more round, and further rounds if counters have grown since. On error nothing has been released yet.
func (f *fenced) fence(ctx context.Context, r *round) *Failure {
	token, agreed := f.agreed(r)
	switch {
	case f.terms.Publishes && (!agreed || token != r.request.Token):
		return &Failure{Fault: OtherToken, Op: r.request.Op}
	case agreed:
		return nil
	}
	spare := r.request.Spare
	return f.raise(ctx, f.owner, token+spare+1, spare, r.refusal()) // a counter may have got to token+spare
}

// raise asks a quorum of masters that have owner's key to accept a token, beginning with this one, and spare more
// tokens after it. If the masters do not have the key, the failure is refusal.
func (f *fenced) raise(ctx context.Context, owner string, token, spare uint64, refusal Fault) *Failure {
	for n := 1; ; n++ {
		if token > single.MaxToken-spare {
			return &Failure{Fault: LastToken, Op: single.Raise}
		}
		h := (*Hold)(f)
		request := h.request(single.Request{Op: single.Raise, Token: token, Spare: spare})
		request.Owner = owner
		raise, failure := h.run(ctx, request)
		if failure != nil {
			return failure
		}
		counter, failure := f.raised(raise, refusal)
		if failure == nil || counter < token || n == maxRaises {
			return failure
		}
		token = counter + Lead(counter, n)
	}
}

// agreed takes the token of a won acquisition if a quorum has returned it. Otherwise it returns the greatest that was.
func (f *fenced) agreed(r *round) (token uint64, agreed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token, agreed = r.greatestLocked(); agreed {
		f.takeTokensLocked(token, r.spareLocked(token))
	}
	return token, agreed
}

// takeTokensLocked records the token, and the spare tokens after it that belong to this hold.
func (f *fenced) takeTokensLocked(token, spare uint64) {
	f.token, f.passing.lastToken = token, token+spare
	f.env.Tokens.Observe(f.passing.lastToken)
}

// raised takes the token that a decided raise asked for, if a quorum has accepted it. Otherwise it returns the greatest
// counter of the masters that refused.
func (f *fenced) raised(raise *round, refusal Fault) (counter uint64, _ *Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range raise.ballots {
		if b := &raise.ballots[i]; b.vote == Refused {
			counter = max(counter, b.Reply.Token)
		}
	}
	if raise.verdict == Won {
		f.takeTokensLocked(raise.request.Token, raise.spareLocked(raise.request.Token))
	}
	if raise.verdict != Denied {
		counter = 0
	}
	return counter, raise.failureLocked(refusal)
}

// Raise asks a quorum of masters that have owner's keys to accept this token or a greater one.
func (h *Hold) Raise(ctx context.Context, owner string, token uint64) *Failure {
	return (*fenced)(h).raise(ctx, owner, token, 0, Absent)
}
