package single

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file asks a server what the guard wants to know of it.

// questions are what a server is asked about itself as a connection to it is set up, in one round trip; recheckQuestions
// are those to which the answer may change while it runs.
var (
	questions = [][]string{
		{"info", "server"},
		{"info", "persistence"},
		{"time"},
		{"get", GuardKey},
		{"config", "get", "appendfsync"},
		{"config", "get", "no-appendfsync-on-rewrite"},
		{"info", "replication"},
	}
	recheckQuestions = [][]string{questions[1], questions[4], questions[5]}
)

// expectRecheck is what those can be answered with.
var expectRecheck = wire.Expect{Kinds: wire.Of(wire.Text, wire.Array, wire.Map), Items: 16, Text: 256 << 10}

// appendQuestions appends them as they go over the wire.
func appendQuestions(out []byte, questions [][]string) []byte {
	for _, words := range questions {
		out = wire.AppendCommand(out, words...)
	}
	return out
}

// asker sends commands on a connection and reads the replies.
type asker func(ctx context.Context, commands [][]string) []wire.Reply

// connect makes a connection that may be used: with a guard, one to a server that is known to be old enough. g may be nil.
func (g *guard) connect(ctx context.Context, config *wire.Config) (*wire.Conn, error) {
	if g == nil {
		c, _, err := config.Dial(ctx)
		return c, err
	}
	asked := g.now()
	c, answers, err := config.Dial(ctx, questions...)
	if err != nil {
		return nil, err
	}
	err = g.admit(ctx, asked, answers, func(ctx context.Context, commands [][]string) []wire.Reply {
		return []wire.Reply{c.Ask(ctx, &wire.ExpectAny, commands[0]...)}
	})
	if err == nil && !c.Drained() {
		err = wire.ErrProtocol
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// onConnect returns what a go-redis client has to do with each new connection: what the user wants first, then the check.
func (g *guard) onConnect(users func(context.Context, *redis.Conn) error) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, conn *redis.Conn) error {
		if users != nil {
			if err := users(ctx, conn); err != nil {
				return err
			}
		}
		ask := func(ctx context.Context, commands [][]string) []wire.Reply {
			return askThrough(ctx, conn.Pipeline(), commands)
		}
		asked := g.now()
		// go-redis hands on what an error from here wraps, not the error itself: a GuardError wraps nothing.
		return g.admit(ctx, asked, ask(ctx, questions), ask)
	}
}

// askThrough is an asker over go-redis.
func askThrough(ctx context.Context, pipe redis.Pipeliner, commands [][]string) []wire.Reply {
	cmds := make([]*reading, len(commands))
	for i, words := range commands {
		args := make([]any, len(words))
		for n, word := range words {
			args[n] = word
		}
		cmds[i] = newReading(ctx, args)
	}
	if err := execute(ctx, pipe, cmds); err != nil {
		blame(cmds, err)
	}
	replies := make([]wire.Reply, len(cmds))
	for i, cmd := range cmds {
		replies[i] = cmd.reply()
	}
	return replies
}

// admit decides by the answers to the questions, which were asked at that time, whether their connection may be used.
func (g *guard) admit(ctx context.Context, asked time.Duration, answers []wire.Reply, ask asker) error {
	s := sighting{asked: asked, answered: g.now()}
	if err := g.read(&s, answers); err != nil {
		return err
	}
	if left := g.judge(s); left > 0 {
		return &GuardError{Master: g.name, Guard: g.guard, Remaining: left}
	}
	return g.mark(ctx, s, ask)
}

// mark leaves the key by which the next run of a durable server is told from one that was emptied. A server that refuses
// it is guarded after its next restart, too.
func (g *guard) mark(ctx context.Context, s sighting, ask asker) error {
	if !s.durable || s.marked || !s.markable {
		return nil
	}
	reply := ask(ctx, [][]string{{"set", GuardKey, strconv.FormatInt(g.guard.Milliseconds(), 10)}})[0]
	if reply.Kind() == wire.Failure || reply.Kind() == wire.Unread {
		return reply.Err()
	}
	return nil
}

// read takes from the answers what the server is. A master that does not say can't be told from one that restarted, so a
// refusal of INFO or TIME is an error; one of CONFIG or of the mark for good only means that the master counts as forgetful.
// One that may be answered in a moment, because the server is still loading its data, says neither: the connection is
// refused and nothing taken note of, because how a run is judged at first is how it counts.
func (g *guard) read(s *sighting, answers []wire.Reply) error {
	for i := range answers {
		reply := &answers[i]
		switch err := reply.Err(); {
		case err == nil:
		case reply.Kind() != wire.Refusal:
			return err // the network's
		case !lasting(reply):
			return unsentError{fmt.Errorf("single: master %s does not vote yet: %s: %w", g.name, strings.ToUpper(questions[i][0]), err)}
		case i < 3:
			return g.unclear(fmt.Sprintf("%s: %v", strings.ToUpper(questions[i][0]), err))
		}
	}
	server, clock, mark := answers[0].Str(), answers[2].Items(), &answers[3]
	s.runID = infoField(server, "run_id")
	seconds, err := strconv.ParseInt(infoField(server, "uptime_in_seconds"), 10, 64)
	if err != nil || s.runID == "" || seconds > int64(maxUptime/time.Second) {
		return g.unclear("its INFO has no run_id or no uptime_in_seconds")
	}
	s.uptime = time.Duration(seconds) * time.Second
	if s.wall, err = wallClock(clock); err != nil {
		return g.unclear(err.Error())
	}
	s.durable = careful(answers[1], answers[4], answers[5])
	persistence := answers[1].Str()
	s.rewrites = infoField(persistence, "aof_rewrite_in_progress") == "1" || infoField(persistence, "aof_rewrite_scheduled") == "1"
	s.marked, s.markable = g.readMark(mark)
	s.original, s.followed = origin(answers[6].Str())
	return nil
}

// origin reads INFO replication: the data is the server's own, or it follows another server or did. One that does or did has a second
// replication id, that of the server whose place it took, until it is started again, or for an hour without replicas
// (repl-backlog-ttl). Neither is true of a server that does not say.
func origin(replication string) (original, followed bool) {
	role, second := infoField(replication, "role"), infoField(replication, "master_replid2")
	unset := strings.Trim(second, "0") == ""
	return role == "master" && second != "" && unset, role == "slave" || !unset
}

// maxUptime is more than any server has run for; what is above it is no uptime.
const maxUptime = 100 * 365 * 24 * time.Hour

// lasting reports that a refusal will be the same in a moment: the user lacks a right, the command or the key is not there
// for it. Others, like LOADING and BUSY, pass.
func lasting(refusal *wire.Reply) bool {
	text := refusal.Err().Error()
	for _, prefix := range []string{"NOPERM ", "WRONGTYPE ", "ERR ", "MOVED "} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// wallClock reads the answer to TIME.
func wallClock(fields []wire.Reply) (time.Time, error) {
	if len(fields) == 2 {
		seconds, err := strconv.ParseInt(fields[0].Str(), 10, 64)
		micros, microsErr := strconv.ParseInt(fields[1].Str(), 10, 64)
		if err == nil && microsErr == nil && seconds >= 0 && seconds < 1<<40 && micros >= 0 && micros < 1e6 {
			return time.Unix(seconds, micros*1000), nil
		}
	}
	return time.Time{}, errors.New("its TIME is not seconds and microseconds")
}

// careful reads the answers to recheckQuestions: the server answers nothing before it is on its disk.
func careful(persistence, appendfsync, onRewrite wire.Reply) bool {
	fsync, rewrite := appendfsync.Items(), onRewrite.Items()
	return infoField(persistence.Str(), "aof_enabled") == "1" &&
		len(fsync) == 2 && fsync[1].Str() == "always" && len(rewrite) == 2 && rewrite[1].Str() == "no"
}

// readMark says what the key holds: nothing, the guard time that had passed when it was set, or something of somebody
// else's, which is left alone.
func (g *guard) readMark(reply *wire.Reply) (marked, markable bool) {
	if reply.Kind() == wire.Null {
		return false, true
	}
	passed, err := strconv.ParseInt(reply.Str(), 10, 64)
	return err == nil && passed >= g.guard.Milliseconds(), err == nil
}

func (g *guard) unclear(why string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hushLocked(g.now(), g.guard, why)
	return &GuardError{Master: g.name, Guard: g.guard, Remaining: g.guard, Unclear: why}
}

// recheck reports that it is time to ask the server behind a connection in use whether it is still as careful as it was: a
// setting that is changed breaks no connection. g may be nil.
func (g *guard) recheck() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.last.durable || now < g.recheckAt {
		return false
	}
	g.recheckAt = now + recheckEvery
	return true
}

// noticed takes the answers to recheckQuestions. What is not as it was, or not known, leaves the next run guarded, until a
// new connection has found this one careful again.
func (g *guard) noticed(answers []wire.Reply) {
	if answers[len(answers)-1].Kind() == wire.Failure || careful(answers[0], answers[1], answers[2]) {
		return // what can't be read ends the connection, and the next one is asked everything
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last.durable = false
}

// infoField reads one field of an INFO reply; "" when it isn't there.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
