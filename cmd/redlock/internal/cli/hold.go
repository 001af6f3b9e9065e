package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
	"github.com/seed-624411e5/redlock/internal/owner"
)

// readAgain is the pause before another read of a terminal that this program, in the background, may not read.
const readAgain = 200 * time.Millisecond

func holdCommand() command {
	return command{
		name:    "hold",
		summary: "take a lock and hold it until standard input ends, or a signal comes",
		help: `
Takes the lock on KEY as redlock run does, prints a line that says so, and holds the lock. Use it for a script that
can't be one command, or for a program in another language. It ends

   - when standard input ends: a pipe, a socket or a terminal (Ctrl-D)
   - at SIGTERM, SIGINT or SIGHUP, without -fd and -pid
   - when the lock is lost, or -grace before others can have it

redlock hold can't stop the work that relies on the lock. That work must stop by itself when this program or its
output ends. redlock run does that for its command.

A script that is killed may leave processes that still work. With -fd N, redlock holds the lock until descriptor N, a
pipe, ends: until every process that inherited the pipe's other end has ended. With -pid PID (Linux), it holds the
lock until no process is left in the session that PID leads, or in its process group. With these flags no signal ends
redlock, because the same signal may have reached the other processes, and they may be cleaning up. SIGUSR1 then
prints how long the lock is valid.

The first line on standard output is "acquired key=KEY token=TOKEN id=ID". A permit adds slot=N; without fencing there
is no token. If the lock is lost, a line "lost key=KEY" follows. With -json both are JSON.

The exit status is 0 if the lock was held until its release, or
    64  bad usage
    69  too few masters can be used
    73  the lock was lost
    75  another holds the lock (-try, -wait)
    76  several want the lock, and none was seen to get it (-try)
    78  -generation is two or more behind
   128 + n  signal n ended it; after SIGTERM the status is 0`,
		setup: func(fs *flag.FlagSet) action {
			h := &keeper{}
			h.masters.define(fs)
			h.define(fs)
			fs.Lookup("grace").Usage = "release a lock that could not be renewed this `time` before others can have " +
				"it, at most half the ttl (default: a sixth of it)"
			fs.Lookup("max-hold").Usage = "release the lock after this `time`, with the status of a lost one " +
				"(default: never)"
			fs.IntVar(&h.fd, "fd", noFD, "hold the lock while any process has the other end of the pipe or socket "+
				"with this `number` open, and ignore signals (default: standard input, until a signal)")
			fs.IntVar(&h.pid, "pid", noPID, "hold the lock for this `process` and the others in its session, or in "+
				"its process group, and ignore signals")
			fs.BoolVar(&h.json, "json", false, "print JSON")
			return h.run
		},
	}
}

// keeper is one `redlock hold`.
type keeper struct {
	taker
	json bool
	fd   int // noFD: standard input
	pid  int // noPID: none
}

// noFD and noPID mean that there is none. A script that computes a wrong number hardly gets this one.
const noFD, noPID = math.MinInt, math.MinInt

func (k *keeper) run(ctx context.Context, t *terminal, _ []string) error {
	if err := k.check("hold"); err != nil {
		return err
	}
	if err := k.until(t); err != nil {
		return err
	}
	return k.with(ctx, t, []redlock.Option{redlock.AutoRenew(), redlock.Grace(k.grace)},
		func(h *held) (released, err error) {
			err = k.print(t, k.json, k.receipt(h))
			if err != nil { // no caller has learned of the lock
				released = h.Release(ctx)
				return released, err
			}
			sig := k.keep(h)
			lost := h.Err()
			released = h.Release(ctx)
			if lost == nil && isNotHeld(released) {
				lost = released
			}
			if lost != nil {
				return released, k.lost(t, lost)
			}
			return released, endedBy(sig)
		})
}

// until finds the events that end the need for the lock.
func (k *keeper) until(t *terminal) (err error) {
	k.ends = "standard input"
	switch {
	case k.pid == noPID && k.fd == noFD:
		k.unwanted = inputEnd(t.in)
	case k.pid != noPID && k.fd != noFD:
		return usage("hold: -pid and -fd exclude each other")
	case k.pid != noPID:
		k.ends = fmt.Sprintf("the session or group of process %d", k.pid)
		if k.pid <= 0 {
			return usage("hold: -pid %d is no process", k.pid)
		}
		if k.unwanted, err = child.KinGone(k.pid); err != nil {
			return usage("hold: -pid %d: %w", k.pid, err)
		}
	default:
		k.ends = fmt.Sprintf("descriptor %d", k.fd)
		if k.fd >= 0 {
			k.unwanted = inputEnd(os.NewFile(uintptr(k.fd), "fd"))
		}
		if k.unwanted == nil {
			return usage("hold: -fd %d is no pipe, socket or terminal that is open here", k.fd)
		}
	}
	return nil
}

// forOthers reports whether the lock is held for processes that may have got the same signal as this one and work on.
func (k *keeper) forOthers() bool { return k.pid != noPID || k.fd != noFD }

// keep returns when the lock is over or no longer wanted. If a signal ended it, keep returns the signal.
func (k *keeper) keep(h *held) os.Signal {
	for {
		select {
		case <-h.Done():
			return nil
		case <-k.unwanted:
			return nil
		case sig := <-k.signals:
			switch {
			case sig != child.Report && k.forOthers():
				k.log.say(entry{Event: eventHeld, Slot: h.slot}, "%v: holding %s until %s has ended", sig, k.what(),
					k.ends)
				continue
			case sig != child.Report:
				return sig
			}
			k.log.write(entry{Event: eventHeld, Slot: h.slot, Token: k.token(h), Held: time.Since(h.since).Seconds()},
				fmt.Sprintf("holding %s for %s, valid for another %s%s", k.what(), brief(time.Since(h.since)),
					brief(h.Remaining()), k.particulars(h)))
		}
	}
}

// lost prints the reason on standard output too, because the reader there must stop.
func (k *keeper) lost(t *terminal, why error) error {
	reason := bare{why}.Error()
	if _, told := errors.AsType[*redlock.QuorumError](why); !told {
		reason += k.renewals.why()
	}
	said := k.print(t, k.json, entry{Event: eventLost, Reason: oneLine(hidePasswords(reason))})
	return exit(statusLost, "%w", also(fmt.Errorf("%s was lost: %s", k.what(), reason), said))
}

// endedBy returns how this program ends after a signal. Scripts usually end it by SIGTERM.
func endedBy(sig os.Signal) error {
	if sig == nil || sig == os.Signal(syscall.SIGTERM) {
		return nil
	}
	return &statusError{status: statusSignal + number(sig), signal: sig}
}

// receipt describes an acquired lock without its secret.
func (t *taker) receipt(h *held) entry {
	return entry{
		Event: eventAcquired, Slot: h.slot, Token: t.token(h), Holder: owner.Show(h.Owner()), ID: h.ID(),
		TTL: t.ttl.Seconds(), Waited: h.waited.Seconds(),
	}
}

func (t *taker) print(io *terminal, asJSON bool, r entry) error {
	if asJSON {
		r.setKeys(t.keys)
		return json.NewEncoder(io.out).Encode(r) // in one piece, because a reader may read line by line
	}
	words := []string{r.Event}
	for _, key := range t.keys {
		words = append(words, "key="+keyWord(key))
	}
	if r.Slot != nil {
		words = append(words, "slot="+strconv.Itoa(*r.Slot))
	}
	if r.Token != "" {
		words = append(words, "token="+r.Token)
	}
	if r.ID != "" {
		words = append(words, "id="+r.ID)
	}
	_, err := fmt.Fprintln(io.out, strings.Join(words, " "))
	return err
}

// plainWord is a key that needs no quotes.
var plainWord = lazily(`^[[:graph:]]+$`)

// keyWord returns a key as one word, quoted as in Go if necessary.
func keyWord(key string) string {
	if plainWord().MatchString(key) && !strings.ContainsAny(key, `"\`) {
		return key
	}
	return strconv.Quote(key)
}

// inputEnd returns a channel that is closed when in ends. For a file, and for the null device, which a script's & and
// service managers use, it returns nil: their end means nothing.
func inputEnd(in *os.File) <-chan struct{} {
	info, err := in.Stat()
	if err != nil {
		return nil
	}
	_, _, isTerminal := term.Size(in)
	if !isTerminal && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return nil
	}
	if isTerminal {
		child.IgnoreTerminalInput() // a read would stop a job in the background, and its renewals
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		for buffer := make([]byte, 4096); ; {
			switch _, err := in.Read(buffer); {
			case err == nil:
			case isTerminal && errors.Is(err, syscall.EIO): // in the background; or hung up, and then a signal follows
				<-time.After(readAgain)
			default:
				return
			}
		}
	}()
	return end
}
