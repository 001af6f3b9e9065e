package single

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Sighting is the information that a connection gets about the server behind it.
type Sighting struct {
	RunID           string
	Uptime          time.Duration
	Wall            time.Time
	Durable, Marked bool
	Rewrites        bool
	Replica         bool // it is a replica, or was one when it was started
	Asked, Answered time.Duration
}

// Judge is the guard without a server.
type Judge struct{ guard guard }

// NewJudge makes a Judge for a guard of this length.
func NewJudge(age time.Duration) *Judge { return &Judge{guard{guard: age}} }

// Judge returns for how long the sighting's connection must not be used.
func (j *Judge) Judge(s Sighting) time.Duration {
	return j.guard.judge(sighting{
		runID: s.RunID, uptime: s.Uptime, wall: s.Wall, durable: s.Durable, marked: s.Marked, rewrites: s.Rewrites,
		original: !s.Replica, followed: s.Replica,
		asked: s.Asked, answered: s.Answered,
	})
}

// Heard notes that a request which began at this time was answered.
func (j *Judge) Heard(began time.Duration) {
	j.guard.answered(began, []exchange{{answer: wire.Parse([]byte("+OK\r\n"), &wire.ExpectOK)}})
}

// InfoField is infoField.
func InfoField(info, name string) string { return infoField(info, name) }
