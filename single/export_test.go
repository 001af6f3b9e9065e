package single

import (
	"bufio"
	"io"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Programs returns source and SHA of every script, to compare them with a server's.
func Programs() map[string][2]string {
	programs := make(map[string][2]string)
	for _, made := range scripts {
		s := made()
		programs[s.name] = [2]string{s.source, s.sha}
	}
	return programs
}

// MaxBundle is the greatest number of keys in a bundle.
const MaxBundle = maxBundle

// Names and times of the lock family that tests compare with a server's.
const (
	QueuePrefix   = queuePrefix
	CounterPrefix = counterPrefix
	QueueKeep     = queueKeep
	CounterKeep   = counterKeep
)

// LeastScore is the score of the mark in the scripts' own sorted sets.
const LeastScore = -9007199254740991

// Mark is that member: of queues and of shared keys.
func Mark(key string) string {
	if strings.HasPrefix(key, queuePrefix) {
		return "redlock:queue"
	}
	return "redlock:holds"
}

// TagOf returns a hash tag of a slot.
func TagOf(slot uint16) string { return tagOf(slot) }

// Beside returns a name in the same Cluster slot.
func Beside(prefix, key string) string { return beside(prefix, key) }

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

// Encode returns a request's first command in wire format and in go-redis's form.
func Encode(r *Request) (encoded []byte, boxed []any) {
	e := exchange{call: &Call{Request: r}}
	return e.encode(nil), e.boxed()
}

// ReadReply reads the reply to r's first command, and leaves the bytes after it. err is the connection's error,
// replyErr the caller's.
func ReadReply(from io.Reader, r *Request) (reply Reply, replyErr, err error) {
	in, ok := from.(*bufio.Reader)
	if !ok {
		in = bufio.NewReaderSize(from, 4<<10)
	}
	var want wire.Expect
	expect(&want, []exchange{{call: &Call{Request: r}}})
	answer, err := wire.Read(in, &want)
	if err != nil || answer.Err() != nil {
		return Reply{}, answer.Err(), err
	}
	reply, replyErr = decode(r, &answer)
	return reply, replyErr, nil
}

// ErrProtocol is the error for a reply that no master sends.
var ErrProtocol = wire.ErrProtocol

// Direct reports whether m has its own connections.
func Direct(m *Master) bool {
	_, direct := m.transport.(conns)
	return direct
}

// IdleConnections is how many of those are idle, BusyConnections how many are in use.
func IdleConnections(m *Master) int {
	p := m.transport.(conns)
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// BusyConnections is how many of m's own connections are in use.
func BusyConnections(m *Master) int {
	p := m.transport.(conns)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all - p.dialing - len(p.idle)
}

// EncodedSize returns how many bytes are reserved to encode r, and how many it takes.
func EncodedSize(r *Request) (room, used int) {
	first := r.encodeFirst()
	return cap(first), len(first)
}

// IdleClean reports that no idle connection has unread bytes.
func IdleClean(m *Master) bool {
	p := m.transport.(conns)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		if !c.Clean() {
			return false
		}
	}
	return true
}
