package single

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file asks a server the guard's questions.

// The guard asks a server the questions while a connection to it is set up, in one round trip. recheckQuestions are
// the questions with answers that may change while the server runs.
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

// expectRecheck bounds the answers to recheckQuestions.
var expectRecheck = wire.Expect{Kinds: wire.Of(wire.Text, wire.Array, wire.Map), Items: 16, Text: 256 << 10}

// appendQuestions appends the questions in wire format.
func appendQuestions(out []byte, questions [][]string) []byte {
	for _, words := range questions {
		out = wire.AppendCommand(out, words...)
	}
	return out
}

// asker sends commands on a connection and reads the replies.
type asker func(ctx context.Context, commands [][]string) []wire.Reply

// connect makes a connection that may be used: with a guard, its server is known to be old enough. g may be nil.
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

// onConnect returns the function that a go-redis client calls for each new connection: first the user's function,
// then the check.
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
		// If an error from here wraps another error, go-redis returns only the wrapped one. So a GuardError wraps
		// nothing.
		return g.admit(ctx, asked, ask(ctx, questions), ask)
	}
}

// askThrough is an asker that uses go-redis.
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

// admit decides by the answers whether their connection may be used. The questions went out at asked.
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

// mark sets the key that shows, at the next start of a durable server, that the server was not emptied. A server that
// refuses the key is guarded after its next restart, too.
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

// read fills s from the answers. There are three kinds of refusals:
//
//   - A master that refuses INFO or TIME might have restarted, so read returns an error.
//   - A lasting refusal of CONFIG or of the mark only means that the master counts as forgetful.
//   - A refusal that may pass in a moment, because the server is still loading its data, decides nothing. Then read
//     returns an error and notes nothing, because the first judgement of a run is final.
func (g *guard) read(s *sighting, answers []wire.Reply) error {
	for i := range answers {
		reply := &answers[i]
		switch err := reply.Err(); {
		case err == nil:
		case reply.Kind() != wire.Refusal:
			return err // a network error
		case !lasting(reply):
			return unsentError{
				fmt.Errorf("single: master %s does not vote yet: %s: %w", g.name, strings.ToUpper(questions[i][0]),
					err),
			}
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
	s.rewrites = infoField(persistence, "aof_rewrite_in_progress") == "1" ||
		infoField(persistence, "aof_rewrite_scheduled") == "1"
	s.marked, s.markable = g.readMark(mark)
	s.original, s.followed = origin(answers[6].Str())
	return nil
}

// origin reads INFO replication. original: the data is the server's own. followed: the server is or was a replica. A
// server that is or was one has a second replication id, namely its former master's, until it is restarted or has had
// no replicas for an hour (repl-backlog-ttl). Both are false if the server does not say.
func origin(replication string) (original, followed bool) {
	role, second := infoField(replication, "role"), infoField(replication, "master_replid2")
	unset := strings.Trim(second, "0") == ""
	return role == "master" && second != "" && unset, role == "slave" || !unset
}

// maxUptime is more than any server has run for. A greater number is not an uptime.
const maxUptime = 100 * 365 * 24 * time.Hour

// lasting reports whether a refusal will be the same in a moment: the user lacks a right, or the command or the key
// does not exist. Other refusals, like LOADING and BUSY, pass.
func lasting(refusal *wire.Reply) bool {
	text := refusal.Err().Error()
	return slices.ContainsFunc([]string{"NOPERM ", "WRONGTYPE ", "ERR ", "MOVED "}, func(prefix string) bool {
		return strings.HasPrefix(text, prefix)
	})
}

// wallClock parses the answer to TIME.
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

// careful reads the answers to recheckQuestions. It reports whether the server answers only after its data is on
// disk.
func careful(persistence, appendfsync, onRewrite wire.Reply) bool {
	fsync, rewrite := appendfsync.Items(), onRewrite.Items()
	return infoField(persistence.Str(), "aof_enabled") == "1" &&
		len(fsync) == 2 && fsync[1].Str() == "always" && len(rewrite) == 2 && rewrite[1].Str() == "no"
}

// readMark reads the value of the guard's key: empty, the guard time that had passed when the key was set, or some
// other data. Other data is left alone.
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

// recheck reports that it is time to ask the server behind a connection in use whether it is still as careful as
// before. This is needed because changing a setting breaks no connection. g may be nil.
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

// noticed reads the answers to recheckQuestions. If the server is not as careful as before, or does not say, the next
// run is guarded, until a new connection finds this run careful again.
func (g *guard) noticed(answers []wire.Reply) {
	if answers[len(answers)-1].Kind() == wire.Failure || careful(answers[0], answers[1], answers[2]) {
		return // an unreadable answer ends the connection, and the next connection asks everything
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last.durable = false
}

// infoField returns one field of an INFO reply; "" if it is missing.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
