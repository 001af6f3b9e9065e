package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

func acquireCommand() command {
	return command{
		name:    "acquire",
		args:    "-out FILE",
		summary: "take a lock that another step of a CI job releases",
		help: `
Takes the lock on KEY, writes FILE, and exits. The lock stays until redlock release -in FILE releases it, or until
-ttl is over. Use it only where the work can't be one command under redlock run, as in the steps of a CI job.

Nothing renews the lock, and nothing stops the work when the lock ends. So you must give -ttl, and it must cover all
of the work. A job that dies leaves the lock until -ttl is over; if the job runs again, it waits for that long.

FILE contains the secret that releases the lock. Its mode is 0600. An older FILE for the same keys is replaced; until
the lock in it has ended, this command waits. Two jobs must not use one FILE.

The first line on standard output is the same as for redlock hold: "acquired key=KEY token=TOKEN id=ID". With -json it
is JSON.

The exit status is 0 if the lock was taken and FILE was written, or
    64  bad usage
    69  too few masters can be used
    74  FILE could not be written
    75  another holds the lock (-try, -wait)
    76  several want the lock, and none was seen to get it (-try)
    78  -generation is two or more behind
   128 + n  signal n ended the wait`,
		setup: func(fs *flag.FlagSet) action {
			a := &acquirer{}
			a.masters.define(fs)
			a.defineWhat(fs)
			a.ttl = 0
			fs.Lookup("ttl").Usage = "`time` after which the lock ends if no one releases it; always needed"
			fs.StringVar(&a.out, "out", "", "`file` for redlock release -in; always needed")
			fs.BoolVar(&a.json, "json", false, "print JSON")
			return a.run
		},
	}
}

// acquirer is one `redlock acquire`.
type acquirer struct {
	taker
	out  string
	json bool
}

func (a *acquirer) run(ctx context.Context, t *terminal, args []string) error {
	switch {
	case len(args) > 0:
		return unexpected("acquire")
	case a.out == "":
		return usage("acquire: no file: give -out")
	case a.ttl == 0:
		return usage("acquire: no -ttl: nothing renews this lock, so give a time that covers all of the work")
	}
	if err := a.check("acquire"); err != nil {
		return err
	}
	if err := a.replaceable(); err != nil {
		return err
	}
	file, err := replace(a.out)
	if err != nil {
		return err
	}
	defer file.discard()
	return a.with(ctx, t, nil, func(h *held) (released, err error) {
		err = file.finish(0o600, func(out io.Writer) error { return writeJSON(out, a.ticket(h)) })
		if err == nil {
			if err = a.print(t, a.json, a.receipt(h)); err == nil {
				return errKept, nil
			}
			_ = os.Remove(a.out) // another step would find that its lock is over
		}
		released = h.Release(ctx) // no caller has learned of the lock
		return released, err
	})
}

// errKept is the result of a release that must keep the lock.
var errKept = errors.New("not released")

// replaceable refuses to replace a file that is no ticket, and a file that is the only way to release another lock.
func (a *acquirer) replaceable() error {
	old, err := readTicket(a.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usage("acquire: -out: %w", err)
	case a.permits == 0 && !slices.Equal(old.keys(), slices.Sorted(slices.Values(a.keys))):
		return usage("acquire: -out: %s is for the lock on %s; release that one first, or choose another file", a.out,
			enumerated(old.keys()))
	}
	return nil
}

const ticketForm = "redlock-ticket-1"

// onlyHold is package redlock's name for the hold of a reader or writer that has no other.
const onlyHold = "1"

// ticket is the content of a file. Keys may contain any bytes, so JSON has them in base64.
type ticket struct {
	Form  string      `json:"form"`
	Keys  [][]byte    `json:"keys"`
	Kind  single.Kind `json:"kind"`
	Owner string      `json:"owner"` // of printable ASCII
	Until time.Time   `json:"until"` // by the clock of the acquiring machine
}

func (a *acquirer) ticket(h *held) ticket {
	t := ticket{Form: ticketForm, Owner: h.Owner(), Until: h.Until()}
	for _, key := range h.Keys() {
		t.Keys = append(t.Keys, []byte(key))
	}
	switch {
	case a.shared:
		t.Kind = single.Shared
	case a.exclusive:
		t.Kind = single.Exclusive
	}
	return t
}

// maxFile is the greatest size of a file that is read, and maxReport of a stored result. A device may have no end.
const maxFile, maxReport = 1 << 20, 64 << 20

// readSmall reads a file of at most this many bytes.
func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return content, err
}

// readTicket reads a file. The error does not quote it.
func readTicket(path string) (*ticket, error) {
	content, err := readSmall(path, maxFile)
	if err != nil {
		return nil, err
	}
	var t ticket
	if json.Unmarshal(content, &t) != nil || t.Form != ticketForm || len(t.Keys) == 0 || t.Owner == "" {
		return nil, fmt.Errorf("%s was not written by redlock acquire", path)
	}
	return &t, nil
}

func (t *ticket) keys() (keys []string) {
	for _, key := range t.Keys {
		keys = append(keys, string(key))
	}
	return keys
}

// ask sends an operation for exactly this lock to all masters.
func (t *ticket) ask(ctx context.Context, masters []*single.Master, op single.Op) []sight {
	request := single.Request{Op: op, Kind: t.Kind, Keys: t.keys(), Owner: t.Owner, TTL: time.Millisecond}
	if t.Kind != single.Plain {
		request.Hold = onlyHold
	}
	return askAll(ctx, len(masters), askTimeout, func(ctx context.Context, i int) sight {
		reply, err := masters[i].Ask(ctx, request)
		return sight{reply: reply, err: err}
	})
}

// releaseStep releases the lock that another process has taken.
func (r *releaser) releaseStep(ctx context.Context, t *terminal) error {
	taken, err := readTicket(r.in)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit(statusNo, "%s does not exist: there is nothing to release", r.in)
	case err != nil:
		return usage("release: -in: %w", err)
	}
	masters, err := r.masters.open()
	if err != nil {
		return err
	}
	defer masters.close()
	// Extending the lock by almost nothing does not change it, and a master grants it if it has the lock. So a repeated
	// release finds the lock too.
	seen := taken.ask(ctx, masters.all, single.Extend)
	if err := taken.lost(masters, seen); err != nil {
		tellFailures(t, masters, seen)
		return err
	}
	seen = taken.ask(ctx, masters.all, single.Release)
	tellFailures(t, masters, seen)
	released := masters.won(func(i int) bool { return seen[i].held() })
	if released == nil {
		return exit(statusNoQuorum, "too few masters confirmed the release of %s; run it again", taken.what())
	}
	if err := os.Remove(r.in); err != nil {
		return exit(statusWrite, "%s is released, but its file is left: %w", taken.what(), err)
	}
	_, err = fmt.Fprintf(t.out, "released %s, which was held until now, on %s\n", taken.what(),
		released.of(released.count(func(i int) bool { return seen[i].held() })))
	return err
}

func (t *ticket) what() string { return "the lock on " + enumerated(t.keys()) }

// lost returns an error unless a quorum of a set of masters has the lock. With such a quorum no other holder can have
// it.
func (t *ticket) lost(masters *fleet, seen []sight) error {
	ends := t.Until.Format(time.RFC3339)
	switch {
	case masters.won(func(i int) bool { return seen[i].held() }) != nil:
		return nil
	case masters.won(func(i int) bool { return seen[i].held() || seen[i].err != nil }) != nil:
		return exit(statusNoQuorum, "too few masters answered to tell whether %s is still held; it ends at %s at the "+
			"latest", t.what(), ends)
	case time.Now().After(t.Until):
		return exit(statusLost, "%s ended at %s, with its ttl: the work may have overlapped with another holder's",
			t.what(), ends)
	}
	return exit(statusLost, "%s is not held any more: it was taken away, or these are not the masters that it was "+
		"taken on", t.what())
}

// tellFailures names the masters that have not answered.
func tellFailures(t *terminal, masters *fleet, seen []sight) {
	for i, s := range seen {
		if s.err != nil {
			fmt.Fprintf(t.err, "redlock: %s: %s\n", masters.all[i].Name(), shown(s.err))
		}
	}
}
