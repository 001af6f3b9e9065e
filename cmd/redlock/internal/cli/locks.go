package cli

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/semaphore"
)

const (
	// forever is the default of -wait.
	forever = time.Duration(math.MaxInt64)
	// graceShare: the default grace is this fraction of the ttl, or of -max-hold.
	graceShare = 6
	// namesAtMost is the greatest number of keys that a message names.
	namesAtMost = 4
)

// lockFlags select the lock, and how the command waits for it and keeps it.
type lockFlags struct {
	keys              []string
	permits           int // of a semaphore; 0: a lock
	shared, exclusive bool
	fenced            toggle
	ttl, wait         time.Duration
	grace             time.Duration
	minHold, maxHold  time.Duration
	try, quiet        bool
	conflictStatus    int // exit status if the lock is held by another
	verbose           bool
	logJSON           bool
}

func (f *lockFlags) define(fs *flag.FlagSet) {
	f.defineWhat(fs)
	durationVar(fs, &f.grace, "grace", 0, "`time` from SIGTERM to SIGKILL when the lock is being lost, at most half "+
		"the ttl (default: a sixth of it, or of -max-hold)")
	durationVar(fs, &f.maxHold, "max-hold", 0, "take the lock away from a command after this `time`: it gets SIGTERM "+
		"-grace earlier (default: never)")
	durationVar(fs, &f.minHold, "min-hold", 0, "keep the key from others for this `time`, even if the lock is "+
		"released earlier; at most nine tenths of -ttl (default 0s)")
}

// defineWhat defines the flags of every command that takes a lock. The other flags are for commands that keep it.
func (f *lockFlags) defineWhat(fs *flag.FlagSet) {
	const keyText = "`key` of the lock; give it several times to lock all of these keys together, or none"
	fs.Func("key", keyText, func(value string) error { // which may contain any byte, even a comma
		if value == "" {
			return errors.New("the key is empty")
		}
		if !slices.Contains(f.keys, value) {
			f.keys = append(f.keys, value)
		}
		return nil
	})
	numberVar(fs, &f.permits, "n", 0, semaphore.MaxPermits, "be one of at most this `number` of holders at a time; "+
		"every user of KEY must give the same number (0, the default: a lock)")
	fs.BoolVar(&f.shared, "shared", false, "be one of many readers; only -exclusive and plain locks keep readers out")
	fs.BoolVar(&f.exclusive, "exclusive", false, "be the only writer, without -shared readers; while it waits, no "+
		"new readers get in")
	durationVar(fs, &f.ttl, "ttl", 30*time.Second, "`time` after which the lock of a dead holder is free (default 30s)")
	durationVar(fs, &f.wait, "wait", forever, "wait for at most this `time`; 0s: make one attempt (default: wait "+
		"until the lock is free)")
	fs.BoolVar(&f.try, "try", false, "make one attempt, whatever -wait says")
	f.fenced.on = true
	f.fenced.define(fs, "fenced", "take a fencing token; -fenced=false for a user without rights to the counters "+
		"(default true, where there can be one)")
	f.conflictStatus = statusHeld
	for _, name := range []string{"conflict-exit-code", "E"} {
		numberVar(fs, &f.conflictStatus, name, 0, 255, "exit `status` if another holds the lock (-try, -wait) "+
			"(default 75)")
	}
	fs.BoolVar(&f.quiet, "quiet", false, "do not report the wait on standard error")
	fs.BoolVar(&f.verbose, "v", false, "report the lock's events on standard error: acquired, failed renewals, lost, "+
		"released")
	const logText = "`form` of the messages on standard error: text, or json, one line for each event of -v (default " +
		"text)"
	fs.Func("log", logText, func(value string) error {
		if value != "text" && value != "json" {
			return errors.New("want text or json")
		}
		f.logJSON = value == "json"
		return nil
	})
}

// check refuses combinations without a meaning, and chooses the grace. command is the name of the command that has
// these flags.
func (f *lockFlags) check(command string) error {
	if err := f.checkWhat(command); err != nil {
		return err
	}
	return f.checkTimes(command)
}

// checkWhat refuses kinds of locks that exclude each other.
func (f *lockFlags) checkWhat(command string) error {
	kind := map[bool]string{false: "-exclusive", true: "-shared"}[f.shared]
	several := len(f.keys) > 1
	switch {
	case len(f.keys) == 0:
		return usage("%s: no key: give -key, REDLOCK_KEY or a configuration file (under another redlock only -key, "+
			"because REDLOCK_KEY is that redlock's key)", command)
	case f.shared && f.exclusive:
		return usage("%s: -shared and -exclusive exclude each other", command)
	case f.permits > 0 && (f.shared || f.exclusive):
		return usage("%s: -n and %s exclude each other: a permit has one holder", command, kind)
	case f.permits > 0 && several:
		return usage("%s: -n with several keys: a semaphore has one", command)
	case several && (f.shared || f.exclusive):
		return usage("%s: several keys together with %s: only a plain lock can have them", command, kind)
	case several && strings.Contains(strings.Join(f.keys, ""), "\n"):
		return usage("%s: one of several keys has a line break in it, and line breaks separate keys in REDLOCK_KEY",
			command)
	case f.fenced.given && f.fenced.on && (f.shared || f.exclusive):
		return usage("%s: -fenced and %s exclude each other: tokens order the holders of a plain lock", command, kind)
	case f.fenced.given && f.fenced.on && several:
		return usage("%s: -fenced with several keys: a token belongs to one key", command)
	}
	if f.quiet && (f.verbose || f.logJSON) {
		return usage("%s: -quiet excludes -v and -log json", command)
	}
	if _, err := redlock.KeysOf(f.keys[0], f.options()...); err != nil {
		return usage("%s: %w", command, bare{err})
	}
	return nil
}

// checkTimes refuses times without a meaning, and chooses the grace.
func (f *lockFlags) checkTimes(command string) error {
	switch {
	case f.ttl < time.Millisecond:
		return usage("%s: -ttl is %v, and must be at least a millisecond", command, f.ttl)
	case f.wait < 0:
		return usage("%s: -wait is %v, and can't be negative", command, f.wait)
	case f.grace < 0:
		return usage("%s: -grace is %v, and can't be negative", command, f.grace)
	case f.minHold < 0:
		return usage("%s: -min-hold is %v, and can't be negative", command, f.minHold)
	case f.minHold > f.ttl/10*9:
		return usage("%s: -min-hold %v is more than nine tenths of -ttl %v: a holder that dies would not leave the "+
			"key for so long", command, f.minHold, f.ttl)
	case f.maxHold < 0:
		return usage("%s: -max-hold is %v, and can't be negative", command, f.maxHold)
	}
	if f.grace == 0 {
		f.grace = f.ttl / graceShare
		if f.maxHold > 0 {
			f.grace = min(f.grace, f.maxHold/graceShare)
		}
	}
	switch {
	case f.grace > f.ttl/2:
		return usage("%s: -grace %v is more than half of -ttl %v: renewals would have no time to be repeated", command,
			f.grace, f.ttl)
	case f.maxHold > 0 && f.maxHold <= f.grace:
		return usage("%s: -max-hold %v is no longer than -grace %v, which is taken off it: the lock would be over as "+
			"soon as it began", command, f.maxHold, f.grace)
	}
	return nil
}

// hasToken reports whether this kind of lock has a fencing token.
func (f *lockFlags) hasToken() bool {
	return f.fenced.on && !f.shared && !f.exclusive && len(f.keys) == 1
}

func (f *lockFlags) options() []redlock.Option {
	var options []redlock.Option
	if len(f.keys) > 1 {
		options = append(options, redlock.AndKeys(f.keys[1:]...))
	}
	if f.shared {
		options = append(options, redlock.Shared())
	}
	if f.exclusive {
		options = append(options, redlock.Exclusive())
	}
	if f.hasToken() {
		options = append(options, redlock.Fenced())
	}
	if f.minHold > 0 {
		options = append(options, redlock.MinHold(f.minHold))
	}
	if f.maxHold > 0 {
		options = append(options, redlock.MaxHold(f.maxHold))
	}
	return options
}

// what returns the lock's name for messages.
func (f *lockFlags) what() string {
	switch {
	case f.permits > 0:
		return fmt.Sprintf("the permit of %s", quotedKey(f.keys[0]))
	case f.shared:
		return fmt.Sprintf("the shared lock on %s", quotedKey(f.keys[0]))
	case f.exclusive:
		return fmt.Sprintf("the exclusive lock on %s", quotedKey(f.keys[0]))
	}
	return "the lock on " + enumerated(f.keys)
}

// enumerated names these keys, or the first of many, for a message.
func enumerated(keys []string) string {
	var quoted []string
	for _, key := range keys[:min(len(keys), namesAtMost)] {
		quoted = append(quoted, quotedKey(key))
	}
	if rest := len(keys) - namesAtMost; rest > 0 {
		quoted = append(quoted, fmt.Sprintf("%d other keys", rest))
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
}
