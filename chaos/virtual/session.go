package virtual

import (
	"bufio"
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// session is the master's end of a connection. It has no goroutine: what arrives is performed at once. The events of a
// run touch it one at a time.
type session struct {
	conn     *conn
	peer     *server.Peer
	in       []byte
	out      bytes.Buffer // what the peer writes
	channels []string     // that it has subscribed to
	ended    bool         // the client has closed it
	latest   int64        // when the last bytes that were sent arrive

	// guarded by the world's mutex
	broken bool  // by a reset
	lost   int64 // with broken: bytes that arrive later are lost
}

func newSession(c *conn) *session {
	s := &session{conn: c}
	s.peer = server.NewPeer(bufio.NewWriterSize(&s.out, 512)) // each run makes many
	return s
}

// breakLocked breaks this end. Bytes that arrive later are lost. If also is set, so are bytes that a frozen master
// has not read yet. The mutex is the world's.
func (s *session) breakLocked(also bool) {
	if s.broken {
		return
	}
	if s.broken, s.lost = true, s.conn.link.w.now(); also {
		s.lost = -1
	}
	s.leaveLocked()
}

// arrive performs the commands in these bytes, and answers them. Without bytes it ends the connection. A frozen master
// reads bytes later than they arrived.
func (s *session) arrive(b []byte, arrived int64) {
	w, m := s.conn.link.w, s.conn.link.master
	w.mu.Lock()
	lost := s.broken && arrived > s.lost
	w.mu.Unlock()
	if lost || s.ended {
		return
	}
	if len(b) == 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.ended = true
		s.leaveLocked()
		delete(s.conn.link.conns, s.conn)
		return
	}
	if len(s.in) == 0 {
		s.in = b // which nobody else has
	} else {
		s.in = append(s.in, b...)
	}
	m.serve(s)
	if s.peer.Closed() {
		s.ended = true
		s.send(nil)
	}
}

// send sends bytes to the client, or the end of the connection if there are none.
func (s *session) send(b []byte) {
	w := s.conn.link.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.broken {
		return
	}
	read, _ := w.arrivalLocked(s.conn.link, toClient, w.now()+s.conn.link.delayLocked())
	s.latest = w.atLocked(max(s.latest+1, read), func() { s.conn.arrive(b) })
}

// flush sends the replies of the peer.
func (s *session) flush() {
	s.peer.Flush()
	if s.out.Len() > 0 {
		s.send(bytes.Clone(s.out.Bytes()))
		s.out.Reset()
	}
}

// next takes the next whole command, an array of strings, or an inline one. It is nil if more bytes must come.
func (s *session) next() (args []string) {
	line, rest, whole := bytes.Cut(s.in, []byte("\r\n"))
	if !whole {
		return nil
	}
	if len(line) == 0 || line[0] != '*' {
		s.in = rest
		if args = strings.Fields(string(line)); len(args) == 0 {
			args = []string{""}
		}
		return args
	}
	n, _ := strconv.Atoi(string(line[1:]))
	args = slices.Grow(args, min(max(n, 0), 64))
	for range n {
		line, rest, whole = bytes.Cut(rest, []byte("\r\n"))
		if !whole || len(line) == 0 {
			return nil
		}
		length, err := strconv.Atoi(string(line[1:]))
		if err != nil || length < 0 || len(rest) < length+2 {
			return nil
		}
		args, rest = append(args, string(rest[:length])), rest[length+2:]
	}
	s.in = rest
	return args
}

// subscribe answers the commands about channels. miniredis has a goroutine for each subscriber.
func (m *master) subscribe(c *server.Peer, command string, args []string) bool {
	s := m.by[c]
	switch {
	case command == "SUBSCRIBE" && s != nil:
		for _, name := range args {
			if !slices.Contains(s.channels, name) {
				s.channels = append(s.channels, name)
			}
			m.channels[name] = append(m.without(name, s), s)
			told(c, "subscribe", name, len(s.channels))
		}
	case command == "UNSUBSCRIBE" && s != nil:
		if len(args) == 0 {
			args = slices.Clone(s.channels)
		}
		for _, name := range args {
			m.channels[name] = m.without(name, s)
			s.channels = slices.DeleteFunc(s.channels, func(has string) bool { return has == name })
			told(c, "unsubscribe", name, len(s.channels))
		}
	case command == "PUBLISH" && len(args) == 2:
		for _, to := range m.channels[args[0]] {
			to.peer.Block(func(w *server.Writer) {
				w.WritePushLen(3)
				w.WriteBulk("message")
				w.WriteBulk(args[0])
				w.WriteBulk(args[1])
			})
			m.told = append(m.told, to)
		}
		c.WriteInt(len(m.channels[args[0]]))
	case command == "PUBSUB" && len(args) > 1 && strings.EqualFold(args[0], "NUMSUB"):
		c.WriteLen(2 * (len(args) - 1))
		for _, name := range args[1:] {
			c.WriteBulk(name)
			c.WriteInt(len(m.channels[name]))
		}
	default:
		return false
	}
	return true
}

func told(c *server.Peer, what, name string, n int) {
	c.Block(func(w *server.Writer) {
		w.WritePushLen(3)
		w.WriteBulk(what)
		w.WriteBulk(name)
		w.WriteInt(n)
	})
}

// without returns the subscribers of a channel but this one.
func (m *master) without(channel string, s *session) []*session {
	return slices.DeleteFunc(slices.Clone(m.channels[channel]), func(has *session) bool { return has == s })
}

// leaveLocked ends the session's subscriptions. The mutex is the world's.
func (s *session) leaveLocked() {
	m := s.conn.link.master
	for _, name := range s.channels {
		m.channels[name] = m.without(name, s)
	}
	s.channels = nil
	delete(m.by, s.peer)
}
