package cli

import (
	"encoding/json"
	"fmt"
	"time"
)

// journal reports events of a lock on standard error, each as a sentence or a line of JSON. It never blocks its
// callers, see [notes]. It is safe for concurrent use.
type journal struct {
	notes   *notes
	keys    []string
	json    bool
	verbose bool
	quiet   bool
}

// entry is an event in JSON: a line of a journal, or of the output of redlock hold.
type entry struct {
	Time     time.Time `json:"time,omitzero"`
	Event    string    `json:"event"`
	keyNames           // the first key of several
	Keys     []string  `json:"keys,omitempty"` // of several
	Slot     *int      `json:"slot,omitempty"`
	Token    string    `json:"token,omitempty"`  // as text: JSON's numbers are too small
	Holder   string    `json:"holder,omitempty"` // holds the lock
	ID       string    `json:"id,omitempty"`
	TTL      float64   `json:"ttl_seconds,omitempty"` // unless the holder renews it; -1: never free
	Waited   float64   `json:"waited_seconds,omitempty"`
	Held     float64   `json:"held_seconds,omitempty"`
	Status   int       `json:"status,omitempty"` // of the exit
	Reason   string    `json:"reason,omitempty"` // why it was lost
	Message  string    `json:"message,omitempty"`
}

func (e *entry) setKeys(keys []string) {
	if e.keyNames = namesOf(keys[0]); len(keys) > 1 {
		e.Keys = keys
	}
}

const (
	eventSettings      = "settings" // which file has them
	eventWaiting       = "waiting"
	eventAcquired      = "acquired"
	eventRenewalFailed = "renewal_failed"
	eventRenewed       = "renewed" // the first success after a failure
	eventLosing        = "losing"  // the command gets the signal to end
	eventLost          = "lost"
	eventLeft          = "left" // a command that has ended left processes, and redlock waits for their end
	eventKilling       = "killing"
	eventRunsOn        = "runs_on"   // the command still runs, though it was killed
	eventInterrupt     = "interrupt" // one Ctrl-C more
	eventWatch         = "watch"     // the end of the process that watches over this one
	eventHeld          = "held"      // the answer to SIGUSR1
	eventReleased      = "released"
	eventTextfile      = "textfile" // it can't be written
	eventError         = "error"    // the last line
)

// say prints a message that people want even without -v.
func (j *journal) say(e entry, format string, args ...any) {
	if !j.quiet {
		j.write(e, fmt.Sprintf(format, args...))
	}
}

// newLine ends an unfinished line on the terminal.
func (j *journal) newLine() {
	if !j.quiet && !j.json {
		j.notes.put("\n")
	}
}

// tell prints a message if -v or -log json asks for it.
func (j *journal) tell(e entry, format string, args ...any) {
	if j.verbose || j.json {
		j.write(e, fmt.Sprintf(format, args...))
	}
}

func (j *journal) write(e entry, text string) {
	if !j.json {
		j.notes.printf("redlock: %s", text)
		return
	}
	e.Time, e.Message = time.Now(), oneLine(hidePasswords(text))
	e.setKeys(j.keys)
	line, _ := json.Marshal(e) // of these fields none can fail
	j.notes.put(string(line) + "\n")
}

// last reports err in JSON, in place of the last line on standard error. It returns the part of err that remains: its
// status.
func (j *journal) last(err error) error {
	if err == nil || !j.json {
		return err
	}
	s := asStatus(err)
	if s.err == nil {
		return s
	}
	j.write(entry{Event: eventError, Status: s.status}, bare{s.err}.Error())
	return &statusError{status: s.status, signal: s.signal, group: s.group}
}
