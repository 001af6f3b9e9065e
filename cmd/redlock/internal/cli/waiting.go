package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

const (
	// drawEvery is the interval at which the line on a terminal counts down. For this line it asks the masters every
	// lookEvery who holds the lock.
	drawEvery, lookEvery = time.Second, 5 * time.Second
	// lookSeldom is the same interval for a verbose journal, and tellAgain the interval at which the journal repeats an
	// unchanged obstacle.
	lookSeldom, tellAgain = 10 * time.Second, time.Minute
	// slotForm makes the key of a semaphore's slot, as package semaphore says.
	slotForm = "%s:slot:%d"
)

// wait reports the state of a wait for a lock.
type wait struct {
	taker  *taker
	locker *redlock.Locker
	began  time.Time
	asked  chan struct{} // a report is wanted now

	way    obstacle
	looked time.Time // when it was so
	told   time.Time // when the journal has said something
}

// obstacle is the known reason why a lock can't be acquired.
type obstacle struct {
	holder string        // "" if it is not known
	key    string        // the blocking key of several
	free   time.Duration // when it is free without renewal; negative: never, 0: not known
	why    string        // if set, only this: why masters can't grant it
}

// inTheWay returns the obstacle that an attempt has met.
func inTheWay(err error) obstacle {
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || !errors.Is(err, redlock.ErrHeld) {
		return obstacle{why: bare{err}.Error()}
	}
	var o obstacle
	votes := make(map[string]int)
	for _, node := range q.Nodes {
		if node.Holder == "" {
			continue
		}
		if votes[node.Holder]++; node.Holder == o.holder || votes[node.Holder] > votes[o.holder] {
			o.free = max(o.free, node.TTL)
			if node.Holder != o.holder || node.TTL < 0 {
				o.free = node.TTL
			}
			o.holder, o.key = node.Holder, node.Key
		}
	}
	return o
}

// text describes the obstacle. If permits is not 0, it describes the permit that is free first.
func (o obstacle) text(permits, keys int) string {
	if o.why != "" {
		return o.why
	}
	text := "held"
	switch {
	case permits == 1:
		text = "the only one is held"
	case permits > 1:
		text = fmt.Sprintf("all %d are held", permits)
	case keys > 1 && o.key != "":
		text = quotedKey(o.key) + " is held"
	}
	return text + o.by(permits)
}

// by names the holder, after the word "held".
func (o obstacle) by(permits int) (text string) {
	switch {
	case o.holder == "":
		return " by others"
	case permits > 1:
		text = ", one of them"
	}
	text += " by " + o.holder
	switch {
	case o.free < 0:
		text += ", which keeps it for ever"
	case o.free > 0:
		text += ", free in " + brief(o.free) + " unless it is renewed"
	}
	return text
}

// brief formats a time for people.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// start reports the wait, and goes on reporting until stop is called.
func (w *wait) start(ctx context.Context, io *terminal, err error) (stop func()) {
	w.way, w.looked = inTheWay(err), time.Now()
	width := w.liveWidth(io)
	if width > 0 {
		w.draw(width)
	} else {
		w.taker.log.say(w.entry(), "%s", w.sentence())
		w.told = time.Now()
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.watch(ctx, io, width > 0)
	}()
	return func() {
		cancel()
		<-over
		if width > 0 {
			w.taker.log.notes.clear()
		}
	}
}

// liveWidth returns the width of a line that can be rewritten in place; 0 if there is no such line.
func (w *wait) liveWidth(io *terminal) int {
	width, _, ok := term.Size(io.err)
	if !ok || w.taker.quiet || w.taker.log.json || os.Getenv("TERM") == "dumb" || !child.InForeground() {
		return 0
	}
	return width
}

func (w *wait) watch(ctx context.Context, io *terminal, live bool) {
	log := w.taker.log
	every := lookSeldom
	if live {
		every = drawEvery
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asked:
			w.look(ctx)
			log.write(w.entry(), w.sentence())
			continue
		case <-ticks.C:
		}
		switch {
		case live:
			if time.Since(w.looked) >= lookEvery || w.way.free > 0 && w.left() == 0 {
				w.look(ctx)
			}
			if width := w.liveWidth(io); width > 0 { // a job in the background does not draw
				w.draw(width)
			}
		case log.verbose || log.json:
			before := w.way
			if w.look(ctx); before.holder != w.way.holder || before.why != w.way.why ||
				time.Since(w.told) >= tellAgain {
				log.tell(w.entry(), "%s", w.sentence())
				w.told = time.Now()
			}
		}
	}
}

// report makes the wait report its obstacle soon.
func (w *wait) report() {
	select {
	case w.asked <- struct{}{}:
	default: // it is about to
	}
}

// left returns the time until the lock is free.
func (w *wait) left() time.Duration {
	if w.way.free <= 0 {
		return w.way.free
	}
	return max(0, w.way.free-time.Since(w.looked))
}

func (w *wait) sentence() string {
	now := w.way
	if now.free = w.left(); w.way.free > 0 && now.free == 0 {
		now.free = time.Millisecond // until the masters are asked again
	}
	text := "waiting for " + w.taker.what()
	if waited := time.Since(w.began); waited >= drawEvery {
		text = "waiting " + waited.Truncate(time.Second).String() + " for " + w.taker.what()
	}
	return text + ": " + now.text(w.taker.permits, len(w.taker.keys))
}

func (w *wait) entry() entry {
	return entry{
		Event: eventWaiting, Holder: w.way.holder, TTL: seconds(w.left()), Waited: time.Since(w.began).Seconds(),
	}
}

func (w *wait) draw(width int) {
	line := []rune("redlock: " + oneLine(hidePasswords(w.sentence())))
	if len(line) >= width { // a line that wraps could not be rewritten
		line = append(line[:max(0, width-4)], []rune("...")...)
	}
	w.taker.log.notes.status(string(line))
}

// look asks masters for the obstacle. If they do not answer, the old one stays.
func (w *wait) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	keys := w.taker.keys
	if n := w.taker.permits; n > 0 {
		keys = make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf(slotForm, w.taker.keys[0], i)
		}
	}
	errs := make([]error, len(keys))
	found := askAll(ctx, len(keys), askTimeout, func(ctx context.Context, i int) (h redlock.Holder) {
		h, errs[i] = w.locker.Holder(ctx, keys[i])
		return h
	})
	if ctx.Err() != nil {
		return
	}
	w.looked = time.Now()
	if err := cmp.Or(errs...); err != nil {
		w.way = obstacle{why: bare{err}.Error()}
		return
	}
	w.way = w.choose(keys, found)
}

// choose returns the obstacle that decides when the lock is free: for permits the first free permit, for several keys
// the last free key.
func (w *wait) choose(keys []string, found []redlock.Holder) (o obstacle) {
	for i, h := range found {
		later := o.holder == "" || sooner(o.free, h.TTL)
		if w.taker.permits > 0 {
			later = o.holder == "" || sooner(h.TTL, o.free)
		}
		if h.Held && later {
			o = obstacle{holder: cmp.Or(h.Identity, "several"), key: keys[i], free: h.TTL}
			if h.Holds > 1 {
				o.holder = fmt.Sprintf("%d holders", h.Holds)
			}
		}
	}
	return o
}

// sooner reports whether a ttl of a ends before a ttl of b. A negative ttl has no end.
func sooner(a, b time.Duration) bool { return a >= 0 && (b < 0 || a < b) }

// aboveVariable holds the IDs of all locks that a command runs under, separated by blanks. They are no secret.
const aboveVariable = "REDLOCK_ABOVE"

// above are the IDs of the locks that this program runs under.
func above() []string { return strings.Fields(os.Getenv(aboveVariable)) }

// forItself returns an error if a wait for the lock would never end, because the lock's holder waits for this program.
// It returns nil if it can't tell.
func (w *wait) forItself(ctx context.Context, err error) error {
	ids := above()
	if len(ids) == 0 || !errors.Is(err, redlock.ErrHeld) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	isAbove := func(key string) bool {
		h, err := w.locker.Holder(ctx, key)
		return err == nil && h.Held && h.Holds == 1 && slices.Contains(ids, h.ID)
	}
	t := w.taker
	if t.permits > 0 {
		for slot := range t.permits {
			if !isAbove(fmt.Sprintf(slotForm, t.keys[0], slot)) {
				return nil
			}
		}
		return runsUnder("every permit of", t.keys[0], err)
	}
	if i := slices.IndexFunc(t.keys, isAbove); i >= 0 {
		return runsUnder("a lock on", t.keys[i], err)
	}
	return nil
}

func runsUnder(what, key string, err error) error {
	text := fmt.Sprintf("this command runs under %s %s, and would wait for itself", what, quotedKey(key))
	return &heldError{text, err}
}
