package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
)

// replacement says which masters are replaced.
type replacement struct {
	leave []int
	dead  bool // they stop before
	// skipJoint skips the safe step and gives processes the new list at once. It is for the test of the verdict.
	skipJoint bool
}

// exchange is the act that replaces masters, by the steps of docs/operate/membership.md, while workers take locks.
type exchange struct {
	show          *Show
	how           replacement
	act           *actState
	before, after []string
	first, rest   []*process // in the order of their new lists
}

// replace shows that locks go on and exclude each other while masters are exchanged, and that the new masters count
// afterwards.
func (s *Show) replace(ctx context.Context, how replacement) {
	if ctx.Err() != nil {
		return
	}
	title := fmt.Sprintf("master %d is replaced", how.leave[0]+1)
	if n := len(how.leave); n > 1 {
		title = fmt.Sprintf("%d masters are replaced", n)
	}
	x := &exchange{show: s, how: how, act: s.begin(title)}
	err := x.prepare()
	if err == nil {
		err = x.play(ctx)
	}
	if err != nil {
		s.judge(ctx, title, false, err.Error())
	}
}

// prepare stops the dead masters, starts their replacements, and makes the lists.
func (x *exchange) prepare() error {
	s := x.show
	x.before = slices.Clone(s.fleet.urls)
	for i, url := range x.before {
		if !slices.Contains(x.how.leave, i) {
			x.after = append(x.after, url)
		}
	}
	for _, i := range x.how.leave {
		if x.how.dead {
			s.stop(i)
		}
		if err := s.fleet.add(); err != nil {
			return err
		}
		n := len(s.fleet.urls)
		s.board.add(s.fleet.direct[n-1].Name())
		s.say("master", "master %d (%s), which is new and empty, takes the place of master %d", n, s.board.addrs[n-1],
			i+1)
		x.after = append(x.after, s.fleet.urls[n-1])
	}
	for i, w := range s.workers {
		if i < (len(s.workers)+1)/2 {
			x.first = append(x.first, &w.process)
		} else {
			x.rest = append(x.rest, &w.process)
		}
	}
	return nil
}

func (x *exchange) play(ctx context.Context) error {
	s := x.show
	first, rest, all := len(x.first), len(x.rest), len(s.workers)
	others := append(slices.Clone(x.rest), &s.observer.process)

	x.step("step 1: %d of %d workers have both lists, %d the old", first, all, rest)
	if err := x.give(ctx, bothLists, x.first); err != nil {
		return err
	}
	x.phase(ctx, phase{What: "step 1: old and both take it", Least: s.cfg.Act / 2, With: []list{oldList, bothLists}})
	x.exclude(ctx, "step 1: old and both", x.rest[0], x.first[0])
	if err := x.give(ctx, bothLists, others); err != nil {
		return err
	}

	x.step("step 2: all have both lists; wait for the longest ttl")
	s.awaitLeaving(ctx) // without generations, the wait begins when the last one with the old list has ended
	x.phase(ctx, phase{What: "step 2: both alone for the longest ttl", Least: ttl, With: []list{bothLists}})

	x.step("step 3: %d of %d workers have the new list, %d both", first, all, rest)
	if err := x.give(ctx, newList, x.first); err != nil {
		return err
	}
	x.phase(ctx, phase{What: "step 3: both and new take it", Least: s.cfg.Act / 2, With: []list{bothLists, newList}})
	x.exclude(ctx, "step 3: both and new", x.rest[0], x.first[0])
	if err := x.give(ctx, newList, others); err != nil {
		return err
	}
	s.awaitLeaving(ctx)
	x.newOnesCount(ctx)
	return nil
}

// newOnesCount stops so many masters of both lists that there is no quorum without the new masters.
func (x *exchange) newOnesCount(ctx context.Context) {
	s := x.show
	if ctx.Err() != nil {
		return
	}
	may := s.board.members / 2
	x.step("all have the new list; %d more masters stop", may)
	for i := 0; may > 0 && i < s.board.members; i++ {
		if !slices.Contains(x.how.leave, i) {
			s.stop(i)
			may--
		}
	}
	x.phase(ctx, phase{
		What:  fmt.Sprintf("then %d more stop, and new goes on", s.board.members/2),
		Least: s.cfg.Act / 2, With: []list{newList},
	})
}

func (x *exchange) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	x.show.board.step(text)
	x.show.say("step", "%s", text)
}

// give restarts processes with another list, one after the other. At the same time it closes their old Lockers. That
// may take a ttl, because keys on a dead master can only expire.
func (x *exchange) give(ctx context.Context, with list, to []*process) error {
	for _, p := range to {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		locker, err := x.dial(ctx, with)
		if err != nil {
			return err
		}
		x.show.leave(p.start(locker, with))
	}
	return nil
}

func (x *exchange) dial(ctx context.Context, with list) (*redlock.Locker, error) {
	ctx = context.WithoutCancel(ctx) // a Locker outlives Ctrl-C, so that it can release its locks
	if with == bothLists && !x.how.skipJoint {
		return redlock.DialJoint(ctx, x.before, x.after, options)
	}
	return redlock.Dial(ctx, x.after, options)
}

// leave closes, in the background, a Locker that its process no longer uses.
func (s *Show) leave(locker *redlock.Locker) {
	s.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		s.board.expectNone(locker.Close(ctx))
	})
}

// awaitLeaving waits until all of those are closed.
func (s *Show) awaitLeaving(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		s.leaving.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// phase is a part of the exchange with its results.
type phase struct {
	What  string
	Least time.Duration // the least duration
	With  []list        // workers must take locks with each of these lists

	Took   map[list]int // how many were taken with each
	Lasted time.Duration
}

// exchangeLimit is how much longer than its least duration a phase may take on a busy machine.
const exchangeLimit = 20 * time.Second

// leastTaken is how often each list must be used. One lock may have been granted before the phase and be counted in it.
const leastTaken = 2

func (x *exchange) phase(ctx context.Context, p phase) {
	s := x.show
	began, before := time.Now(), s.board.soFar(x.act).lists
	took := func() map[list]int {
		now := s.board.soFar(x.act).lists
		for l, n := range before {
			now[l] -= n
		}
		return now
	}
	s.untilWithin(ctx, p.Least, exchangeLimit, func() bool {
		now := took()
		return !slices.ContainsFunc(p.With, func(l list) bool { return now[l] < leastTaken })
	})
	p.Took, p.Lasted = took(), time.Since(began)
	c := p.check()
	s.judge(ctx, c.What, c.OK, c.Detail)
}

// check judges the phase: every list in use gave locks, no other list did, and the phase lasted long enough.
func (p phase) check() Check {
	ok := p.Lasted >= p.Least
	var took []string
	for _, l := range []list{oldList, bothLists, newList} {
		n, wanted := p.Took[l], slices.Contains(p.With, l)
		if wanted || n > 0 {
			took = append(took, fmt.Sprintf("%s %d", l, n))
		}
		ok = ok && (n >= leastTaken || !wanted) && (n == 0 || wanted)
	}
	return Check{
		What: "replacing, " + p.What, OK: ok,
		Detail: fmt.Sprintf("%s times, %.1f s", strings.Join(took, ", "), p.Lasted.Seconds()),
	}
}

// exclude has each of two processes try for a lock that the other one holds.
func (x *exchange) exclude(ctx context.Context, between string, a, b *process) {
	c := exclusion(between, x.show.tried(ctx, a, b), x.show.tried(ctx, b, a))
	x.show.judge(ctx, c.What, c.OK, c.Detail)
}

// tried returns the error of a process that tries for a lock that another process holds. nil means that it got the
// lock, so two processes had it. Masters that do not answer in time prove neither, so tried asks again within the
// limit.
func (s *Show) tried(ctx context.Context, holds, wants *process) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	for {
		answer := s.tryHeld(ctx, holds, wants)
		if answer == nil || errors.Is(answer, redlock.ErrHeld) || ctx.Err() != nil {
			return answer
		}
		sleep(ctx, lookEvery)
	}
}

func (s *Show) tryHeld(ctx context.Context, holds, wants *process) error {
	key := s.key + heldSuffix
	lock, err := holds.locker().Acquire(ctx, key, ttl)
	if err != nil {
		return fmt.Errorf("taking it first: %v", err) // which is no refusal of the other's
	}
	defer func() { s.board.expectNone(lock.Release(ctx)) }()
	second, err := wants.locker().TryAcquire(ctx, key, ttl)
	if err != nil {
		return err
	}
	defer func() { s.board.expectNone(second.Release(ctx)) }()
	if over := lock.Err(); over != nil {
		return fmt.Errorf("the first one's was over: %w", over)
	}
	return nil
}

// exclusion judges the answers to attempts on a held lock.
func exclusion(between string, answers ...error) Check {
	c := Check{What: "replacing, " + between + " exclude each other", OK: true, Detail: "refused while held"}
	for _, err := range answers {
		if errors.Is(err, redlock.ErrHeld) {
			continue
		}
		c.OK, c.Detail = false, "two held it at once"
		if err != nil {
			c.Detail = reason(err)
		}
	}
	return c
}
