// Package program lets the harness test a lock library in any language. The harness starts a
// program for each client and uses a small protocol: lines of JSON on the program's standard input
// and output. The page evidence/chaos in the repository's docs describes the protocol.
package program

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/shim"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

const (
	// openPatience is how long a program may take to start and to open its client, and closePatience to end.
	openPatience  = 30 * time.Second
	closePatience = 10 * time.Second
	// retryLeast and retryMost are the pauses between attempts of a program that does not wait by itself.
	retryLeast = 5 * time.Millisecond
	retryMost  = 50 * time.Millisecond
	// complaintSize bounds how much of a program's standard error is kept.
	complaintSize = 2 << 10
)

// ErrGone is matched when a program has ended, or has broken the protocol.
var ErrGone = errors.New("program: it has ended")

// Subject returns a subject that runs the program args[0] with these arguments as a process for
// each client. tokens says that its locks have fencing tokens.
func Subject(args []string, tokens bool) workload.Subject {
	return subject{args: args, tokens: tokens}
}

// subject implements workload.Subject.
type subject struct {
	args   []string
	tokens bool
	clocks *clocks // nil: processes have the machine's
}

func (s subject) Name() string {
	return "exec:" + filepath.Base(s.args[0]) + strings.Join(append([]string{""}, s.args[1:]...), " ")
}

func (s subject) Supports(kind history.Kind) error {
	if kind == history.Plain || kind == history.Fenced && s.tokens {
		return nil
	}
	return fmt.Errorf("%w: programs have plain and fenced locks, and this needs %s ones", workload.ErrUnsupported, kind)
}

// RenewsHolds implements workload.Renewer. A program that does not is a workload.Limited.
func (s subject) RenewsHolds() {}

// client implements workload.Locker by one process.
type client struct {
	cmd        *exec.Cmd
	clock      *shim.Clock // nil: the machine's
	in         io.WriteCloser
	features   reply
	complaints *tail
	ended      chan struct{} // closed when the process has ended
	broken     error         // why, before ended is closed

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*question
	holds   map[string]*hold

	writing sync.Mutex
}

// Lacks implements workload.Limited.
func (c *client) Lacks(p workload.Profile) error {
	if p.Renews() && !c.features.Renews {
		return fmt.Errorf(`workload %s: %w: the program does not say "renews":true in its answer to open`, p.Name,
			workload.ErrUnsupported)
	}
	return nil
}

// Suspend implements workload.Suspendable.
func (c *client) Suspend() error { return workload.StopProcess(c.cmd.Process) }

// Resume implements workload.Suspendable.
func (c *client) Resume() error { return workload.ContinueProcess(c.cmd.Process) }

// Pid implements workload.Process.
func (c *client) Pid() int { return c.cmd.Process.Pid }

func (s subject) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, endpoint.AllPlain(addrs))
}

// OpenSecured implements workload.Secured. The program gets the credentials on its standard input,
// which no other process reads.
func (s subject) OpenSecured(ctx context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	if slices.ContainsFunc(masters, func(e endpoint.Endpoint) bool { return e.Resolver != "" }) {
		return nil, fmt.Errorf("%w: a program is given addresses, not names", workload.ErrUnsupported)
	}
	c := &client{
		cmd: exec.Command(s.args[0], s.args[1:]...), waiting: make(map[uint64]*question), holds: make(map[string]*hold),
		ended: make(chan struct{}), complaints: &tail{},
	}
	c.cmd.Stderr = c.complaints
	c.cmd.WaitDelay = time.Second
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	if err = s.clocks.give(c); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		c.closeClock()
		return nil, fmt.Errorf("program: %w", err)
	}
	go c.read(out)
	bounded, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	r, _, err := c.ask(bounded, opening(masters))
	if err == nil {
		err = s.clocks.used(c)
	}
	if err == nil && s.tokens && !r.Tokens {
		err = errors.New("program: it was to have fencing tokens, and says in its answer to open that it has none")
	}
	if err == nil && !r.Secured && slices.ContainsFunc(masters, func(e endpoint.Endpoint) bool {
		return !e.IsPlain()
	}) {
		err = fmt.Errorf(`%w: the masters want credentials or TLS, and its answer to open does not say "secured":true`,
			workload.ErrUnsupported)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Name(), err), c.end(0))
	}
	c.features = r
	return c, nil
}

// question is a request that has not been answered.
type question struct {
	op     string
	asked  time.Time // before the program can have read it
	answer chan reply
	hold   *hold // what came of it, before it is answered
}

// read processes the program's output until it ends.
func (c *client) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			c.broken = fmt.Errorf("it wrote %.80q, which is no line of the protocol: %w", lines.Text(), err)
			_ = c.cmd.Process.Kill() // an error means that it has ended
			break
		}
		c.take(r)
	}
	if err := lines.Err(); err != nil && c.broken == nil {
		c.broken = fmt.Errorf("can't read its output: %w", err)
		_ = c.cmd.Process.Kill()
	}
	// The program's own children may keep its output open; Wait closes this end of the pipe.
	if err := c.cmd.Wait(); err != nil && c.broken == nil {
		c.broken = err
	}
	c.mu.Lock()
	holds := c.holds
	c.holds = nil
	c.mu.Unlock()
	for _, h := range holds {
		h.lose()
	}
	close(c.ended)
}

func (c *client) take(r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Event != "" {
		switch h := c.holds[r.Hold]; {
		case h == nil:
		case r.Event == "lost":
			h.lose()
		case r.Event == "renewed":
			h.move(h.asked.Add(milliseconds(r.Valid)))
		}
		return
	}
	q := c.waiting[r.ID]
	if q == nil {
		return
	}
	delete(c.waiting, r.ID)
	if q.op == "acquire" && r.Error == "" { // news of it may be in the next line
		q.hold = c.granted(r, q.asked)
		c.holds[r.Hold] = q.hold
	}
	q.answer <- r
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// ask sends a request and waits for its answer.
func (c *client) ask(ctx context.Context, r request) (answer reply, q *question, err error) {
	q = &question{op: r.Op, answer: make(chan reply, 1), asked: time.Now()}
	c.mu.Lock()
	c.last++
	r.ID = c.last
	c.waiting[r.ID] = q
	c.mu.Unlock()
	if err := c.send(r); err != nil {
		select {
		case <-c.ended:
			return answer, q, c.gone() // which knows why
		case <-time.After(time.Second):
			return answer, q, err
		}
	}
	select {
	case answer = <-q.answer:
		err = answer.err()
		return answer, q, err
	case <-c.ended:
		return answer, q, c.gone()
	case <-ctx.Done():
	}
	// The caller has stopped waiting. The program will report the result.
	if r.Op == "acquire" {
		_ = c.send(request{ID: 0, Op: "cancel", Of: r.ID}) // if it can't be sent the process is gone
		select {
		case answer = <-q.answer:
			err = answer.err()
			return answer, q, err
		case <-c.ended:
			return answer, q, c.gone()
		case <-time.After(closePatience):
			return answer, q, fmt.Errorf("program: %s is not answered %v after it was canceled", r.Op, closePatience)
		}
	}
	return answer, q, ctx.Err()
}

func (c *client) send(r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

func (c *client) gone() error {
	return fmt.Errorf("%w: %v; its standard error ends with: %s", ErrGone, c.broken, c.complaints)
}

func (c *client) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	want := request{
		Op: "acquire", Key: r.Key, TTL: float64(r.TTL) / float64(time.Millisecond), Once: r.Once || !c.features.Waits,
		Renew: r.Renew, Fenced: r.Kind == history.Fenced,
	}
	for pause := retryLeast; ; pause = min(2*pause, retryMost) {
		_, q, err := c.ask(ctx, want)
		if err == nil {
			return q.hold, nil
		}
		if r.Once || c.features.Waits || errors.Is(err, ErrGone) || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(pause/2 + time.Duration(time.Now().UnixNano())%(pause/2)):
		}
	}
}

// granted makes a hold of an answer.
func (c *client) granted(r reply, asked time.Time) *hold {
	h := &hold{c: c, id: r.Hold, owner: r.Owner, token: r.Token, asked: asked, until: asked.Add(milliseconds(r.Valid))}
	if c.features.Lost {
		h.done = make(chan struct{})
	}
	return h
}

func (c *client) Close(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, closePatience)
	defer cancel()
	_, _, err := c.ask(bounded, request{Op: "close"})
	return errors.Join(err, c.end(closePatience))
}

// end closes the program's input and waits until it has ended; it is killed after that time.
func (c *client) end(within time.Duration) error {
	_ = c.in.Close()
	defer c.closeClock()
	select {
	case <-c.ended:
		return nil
	case <-time.After(within):
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
	if within == 0 {
		return nil
	}
	return fmt.Errorf("program: it did not end %v after close", within)
}

// tail keeps the end of the text written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-complaintSize):]
	return len(b), nil
}

// String returns the kept text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
