package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
)

// lookEvery is the interval at which the play checks whether an act has shown its point.
const lookEvery = 10 * time.Millisecond

// play is the script. Each act lasts until it has shown its point and Config.Act has passed. An act that can't show its
// point within its limit fails a check. The play then goes on, because the later acts still mean something.
func (s *Show) play(ctx context.Context) {
	n := len(s.fleet.urls)
	if !s.fleet.ours() {
		s.say("note", "these masters are not this program's to stop: it shows the lock changing hands and a refusal.\n"+
			"Stop one yourself while it runs, and see.\n"+
			"Replacing one is left out: that takes a master which it was not given.")
		s.handoffs(ctx, fmt.Sprintf("%d masters of yours", n))
		s.refusalOfAHeldLock(ctx)
		s.handoffs(ctx, "and on it goes")
		return
	}
	s.handoffs(ctx, fmt.Sprintf("all %d masters answer", n))
	for i := range n / 2 { // as many as may fail: half, rounded up, less one
		s.stop(2 * i)
		if i < n/2-1 {
			s.handoffs(ctx, fmt.Sprintf("%d of %d masters stopped", i+1, n))
		}
	}
	s.handoffs(ctx, fmt.Sprintf("%d of %d stopped: %d suffice", n/2, n, n-n/2))
	s.outage(ctx)
	s.resume(ctx)
	s.replace(ctx, replacement{leave: []int{n - 2}, dead: true})
}

func (s *Show) handoffs(ctx context.Context, title string) {
	if ctx.Err() != nil {
		return
	}
	a := s.begin(title)
	shown := s.until(ctx, func() bool { return s.changesHands(a) })
	now := s.board.soFar(a)
	detail := fmt.Sprintf("%d times, %d workers", now.acquisitions(), len(now.winners))
	if q, refused := s.board.refused(); refused && !shown {
		detail += "; " + q.Error()
	}
	s.judge(ctx, title+": it changes hands", shown, detail)
}

func (s *Show) changesHands(a *actState) bool {
	now := s.board.soFar(a)
	return len(now.winners) >= 2 && len(now.free) > 0
}

// outage stops one master more than the lock can do without. It shows that no worker gets the lock any more, and why.
func (s *Show) outage(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	n := len(s.fleet.urls)
	a := s.begin(fmt.Sprintf("%d of %d stopped: no quorum", redlock.Quorum(n), n))
	s.board.locked(func() { s.board.outage.from = time.Now() })
	s.stop(1)
	// A vote cast before the master stopped may take as long as a request to arrive, and a held lock stays held. So the
	// check begins after that.
	sleep(ctx, options.RequestTimeout)
	settled := time.Now()
	told := false
	shown := s.until(ctx, func() bool {
		if q, refused := s.board.refused(); refused && !told && errors.Is(q, redlock.ErrNoQuorum) {
			told = true
			s.refuse(q)
		}
		return told
	})
	now := s.board.soFar(a)
	s.judge(ctx, "without a quorum no worker gets the lock", shown && !now.lastGrant.After(settled),
		fmt.Sprintf("%d attempts refused", now.refusals))
}

// refuse shows the error that workers get now.
func (s *Show) refuse(q *redlock.QuorumError) {
	s.refusal = q.Error()
	s.say("refusal", "%s", s.refusal)
	if errors.Is(q, redlock.ErrNoQuorum) {
		s.say("note", "%s", tooFew(q))
	}
}

func tooFew(q *redlock.QuorumError) string {
	return fmt.Sprintf("%d of %d are not enough: the others could give the same lock to another worker", q.Quorum-1,
		q.N)
}

// explanation spreads a refusal over lines: the decision, and every master's answer.
func explanation(q *redlock.QuorumError) []string {
	lines := []string{fmt.Sprintf("%v: granted %d of %d, need %d", q.Reason, q.Granted, q.N, q.Quorum)}
	for _, node := range q.Nodes {
		said := node.Vote.String()
		switch {
		case node.Err != nil:
			said = innermost(node.Err).Error()
		case node.Vote == redlock.Pending:
			said = "not waited for, the others had decided it"
		}
		lines = append(lines, fmt.Sprintf("  %s: %s", node.Master, said))
	}
	return append(lines, tooFew(q))
}

// reason returns the last part of a refusal, without the masters' answers.
func reason(err error) string {
	if q, ok := errors.AsType[*redlock.QuorumError](err); ok {
		return q.Reason.Error()
	}
	return fmt.Sprint(err)
}

// innermost returns the error without the texts that each layer added.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// resume restarts the masters and shows that the lock works again.
func (s *Show) resume(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	n := len(s.fleet.urls)
	a := s.begin("the masters are back")
	s.board.locked(func() { s.board.outage.to = time.Now() })
	back := time.Now()
	if err := s.fleet.restart(); err != nil {
		s.check("masters come back", false, err.Error())
		return
	}
	s.board.allUp()
	s.say("master", "all %d masters are back, with their data", n)
	resumed := time.Duration(0)
	shown := s.until(ctx, func() bool {
		if now := s.board.soFar(a); resumed == 0 && len(now.winners) > 0 {
			resumed = now.firstWin.Sub(back)
			s.say("resumed", "the lock was acquired again %v after that", round(resumed))
		}
		return s.changesHands(a)
	})
	s.judge(ctx, "service resumes", shown, fmt.Sprintf("%v after the masters were back", round(resumed)))
}

// refusalOfAHeldLock shows the error of an attempt on a held lock.
func (s *Show) refusalOfAHeldLock(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	s.begin("a held lock is refused")
	key := s.key + heldSuffix
	lock, err := s.workers[0].locker().TryAcquire(ctx, key, ttl)
	if err != nil {
		s.check("a held lock is refused", false, "taking it first: "+err.Error())
		return
	}
	_, err = s.observer.locker().TryAcquire(ctx, key, ttl)
	if q, ok := errors.AsType[*redlock.QuorumError](err); ok {
		s.refuse(q)
	}
	s.check("a held lock is refused", errors.Is(err, redlock.ErrHeld), reason(err))
	if err := lock.Release(ctx); err != nil {
		s.check("its holder releases it", false, err.Error())
	}
}

// until waits until Config.Act has passed and cond has been true, but not beyond the limit.
func (s *Show) until(ctx context.Context, cond func() bool) bool {
	return s.untilWithin(ctx, s.cfg.Act, actLimit, cond)
}

// untilWithin waits until at least this time has passed and cond has been true, but not beyond the limit.
func (s *Show) untilWithin(ctx context.Context, least, limit time.Duration, cond func() bool) bool {
	began := time.Now()
	shown := false
	for ctx.Err() == nil {
		shown = shown || cond()
		switch passed := time.Since(began); {
		case shown && passed >= least:
			return true
		case passed >= least+limit:
			return false
		}
		sleep(ctx, lookEvery)
	}
	return false
}

func (s *Show) begin(title string) *actState {
	a := s.board.act(title)
	s.say("act", "%s", title)
	return a
}

func (s *Show) stop(i int) {
	if err := s.fleet.stop(i); err != nil {
		s.check("a master stops", false, err.Error())
		return
	}
	s.board.setUp(i, false)
	s.say("master", "master %d (%s) stopped", i+1, s.board.addrs[i])
}

func (s *Show) say(kind, format string, args ...any) {
	s.tell(Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (s *Show) check(what string, ok bool, detail string) {
	s.checks = append(s.checks, Check{What: what, OK: ok, Detail: detail})
}

// judge notes a check of an act. After an interruption it notes nothing, since the act was cut short.
func (s *Show) judge(ctx context.Context, what string, ok bool, detail string) {
	if ctx.Err() == nil {
		s.check(what, ok, detail)
	}
}

func (s *Show) progress(ctx context.Context) {
	for {
		sleep(ctx, time.Second)
		if ctx.Err() != nil {
			return
		}
		v := s.Snapshot()
		s.say("progress", "%d acquisitions, %d handoffs, %d overlaps", v.Acquisitions, v.Handoffs, v.Overlaps)
	}
}

func (s *Show) watchMasters(ctx context.Context) {
	for ctx.Err() == nil {
		for i, addr := range s.board.addrs {
			_, err := s.fleet.holds(ctx, i, s.key)
			if ctx.Err() != nil {
				return
			}
			if !s.board.setUp(i, err == nil) {
				continue
			}
			if err != nil {
				s.say("master", "master %d (%s) does not answer: %v", i+1, addr, err)
			} else {
				s.say("master", "master %d (%s) answers again", i+1, addr)
			}
		}
		sleep(ctx, glanceTimeout)
	}
}
