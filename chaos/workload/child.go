package workload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
)

// childMark in the environment makes [Main] turn the process into a worker.
const childMark = "REDLOCK_CHAOS_WORKER"

const (
	// hello is the first line a child writes, and ready the second, once it has its client.
	hello = "redlock-chaos: here is a client"
	ready = "redlock-chaos: it is ready"
	// helloPatience is how long a child may take for the one, and readyPatience for the other.
	helloPatience = 10 * time.Second
	readyPatience = 30 * time.Second
)

// ErrNoHello is matched by the error of [StartChild] when the started process is no client: the
// program does not call [Main].
var ErrNoHello = errors.New("workload: the process that was started as a client does not say that it is one")

// childConfig is the first line a child reads.
type childConfig struct {
	Subject string              `json:"subject"`
	Client  int                 `json:"client"`
	Masters []endpoint.Endpoint `json:"masters"` // with their passwords, which no other process can read here
	Profile Profile             `json:"profile"`
	Seed    uint64              `json:"seed"`
	// Origin is the reading of Monotonic that is reference time 0.
	Origin int64 `json:"origin"`
	// FirstAttempt is the number below the child's first attempt.
	FirstAttempt uint64 `json:"first_attempt"`
	// Clock is how wrong its clock is at first; nil: it has the machine's.
	Clock *ClockSetting `json:"clock,omitempty"`
}

// Main turns this process into a worker if [StartChild] started it, and then does not return;
// otherwise it does nothing. A program that runs workloads with children calls Main first thing in
// main, a test in TestMain, with all subjects that its children may use.
func Main(subjects ...Subject) {
	if os.Getenv(childMark) == "" {
		return
	}
	if err := runChild(os.Stdin, os.Stdout, subjects); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runChild(in io.Reader, out io.Writer, subjects []Subject) error {
	if _, err := fmt.Fprintln(out, hello); err != nil {
		return fmt.Errorf("workload: child: %w", err)
	}
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("workload: child: %w", err)
	}
	var cfg childConfig
	if err := json.Unmarshal(first, &cfg); err != nil {
		return fmt.Errorf("workload: child: %w", err)
	}
	var subject Subject
	for _, s := range subjects {
		if s.Name() == cfg.Subject {
			subject = s
		}
	}
	if subject == nil {
		return fmt.Errorf("workload: child: no subject %q in this program; pass it to workload.Main", cfg.Subject)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sink := &lineSink{out: out, origin: cfg.Origin, attempt: cfg.FirstAttempt}
	registers := newParentRegisters(sink)
	if subject, err = registers.clocked(subject, cfg.Clock); err != nil {
		return fmt.Errorf("workload: child: %w", err)
	}
	go func() { // the parent closes stdin to end the child
		registers.read(lines)
		cancel()
	}()
	locker, err := Open(ctx, subject, cfg.Masters)
	if err != nil { // its text may be anybody's
		return fmt.Errorf("workload: child: %s", endpoint.Hide(cfg.Masters)(err.Error()))
	}
	if _, err := fmt.Fprintln(out, ready); err != nil {
		return fmt.Errorf("workload: child: %w", err)
	}
	var group sync.WaitGroup
	for i := range max(1, cfg.Profile.Workers) {
		w := Worker{
			Client: cfg.Client, Number: i, Locker: locker, Sink: sink, Profile: cfg.Profile.Of(i),
			Rand: rand.New(rand.NewPCG(cfg.Seed, uint64(i))), Fenced: subject.Supports(history.Fenced) == nil,
			Checked: registers.of(true), Unchecked: registers.of(false),
		}
		group.Go(func() { w.Run(ctx) })
	}
	group.Wait()
	closing, stop := context.WithTimeout(context.Background(), releasePatience)
	defer stop()
	return locker.Close(closing)
}

// lineSink writes each event as a line at once, so that nothing is lost when the process is killed.
type lineSink struct {
	origin int64

	mu      sync.Mutex
	out     io.Writer
	attempt uint64
}

func (s *lineSink) Now() int64 { return Monotonic() - s.origin }

func (s *lineSink) Record(e history.Event) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.At = s.Now()
	s.writeLocked("", e)
	return e.At
}

// writeLocked writes a line.
func (s *lineSink) writeLocked(prefix string, what any) {
	line, err := json.Marshal(what)
	if err == nil {
		_, _ = s.out.Write(append(append([]byte(prefix), line...), '\n')) // a parent that is gone reads nothing
	}
}

func (s *lineSink) NextAttempt() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt++
	return s.attempt
}

// Child is a client in a separate process. Its methods are safe for concurrent use.
type Child struct {
	client   int
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	recorder *history.Recorder
	checked  Resource
	plain    Resource
	said     chan string   // the child's messages before it begins: hello, ready
	setting  sync.Mutex    // only one call sets the clock, since the answers don't say to which they belong
	clock    chan string   // what it says of its clock after that was set
	exited   chan struct{} // closed when the process has ended and everything it wrote is recorded

	mu   sync.Mutex
	open map[uint64]bool // attempts that it makes at the moment, and whether they have become holds
}

// ChildOptions are the child's work and its masters.
type ChildOptions struct {
	Subject string
	Client  int
	// Masters are the masters as the child has to dial them.
	Masters []endpoint.Endpoint
	Profile Profile
	Seed    uint64
	// Origin is the reading of Monotonic at which the recorder's clock was 0.
	Origin int64
	// Checked and Unchecked are the registers that it uses, in this process; optional, unless the profile has it use
	// them.
	Checked, Unchecked Resource
	// Clock is how wrong its clock is at first; nil: it has the machine's, which can't be set.
	Clock *ClockSetting
	// Nth tells the children of a run apart, so that their attempts have different numbers.
	Nth int
}

// StartChild starts this program again as a client. The client's events go to recorder. StartChild returns when the
// client is ready. Kill or Stop end the client; on Linux, so does the end of this process.
func StartChild(recorder *history.Recorder, o ChildOptions) (*Child, error) {
	if os.Getenv(childMark) != "" { // or it would start itself again and again
		return nil, fmt.Errorf("%w: this process has itself been started as one, and did not call workload.Main",
			ErrNoHello)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("workload: child: %w", err)
	}
	c := &Child{
		client: o.Client, recorder: recorder, cmd: exec.Command(self), exited: make(chan struct{}),
		said: make(chan string, 2), clock: make(chan string, 1), open: make(map[uint64]bool),
		checked: o.Checked, plain: o.Unchecked,
	}
	c.cmd.Env = append(os.Environ(), childMark+"=1")
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = childAttributes()
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("workload: child: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("workload: child: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("workload: child: %w", err)
	}
	go c.read(out)
	line, err := json.Marshal(childConfig{
		Subject: o.Subject, Client: o.Client, Masters: o.Masters, Profile: o.Profile, Seed: o.Seed, Origin: o.Origin,
		FirstAttempt: uint64(o.Nth+1) << 32, Clock: o.Clock,
	})
	if err == nil {
		_, err = c.stdin.Write(append(line, '\n'))
	}
	if !c.says(hello, helloPatience) { // then err says at most that it ended without reading
		c.Kill()
		return nil, fmt.Errorf("%w: %s has to call workload.Main first thing in main, or in TestMain", ErrNoHello, self)
	}
	if err != nil {
		c.Kill()
		return nil, fmt.Errorf("workload: child: %w", err)
	}
	if !c.says(ready, readyPatience) {
		c.Kill()
		return nil,
			fmt.Errorf("workload: the process of client %d could not open its client of %s; it has written why to "+
				"the standard error, if it knew", o.Client, o.Subject)
	}
	return c, nil
}

// says reports whether the child sends that message in time.
func (c *Child) says(what string, within time.Duration) bool {
	select {
	case said := <-c.said:
		return said == what
	case <-time.After(within):
		return false
	}
}

// read records the child's events until the child ends. Locks that it holds then have no acting
// holder, and its acquisitions stop asking.
func (c *Child) read(out io.Reader) {
	defer close(c.exited)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	isClient := true
	for _, line := range []string{hello, ready} {
		isClient = isClient && scanner.Scan() && scanner.Text() == line
		if isClient {
			c.said <- line
		}
	}
	if !isClient {
		close(c.said)
	}
	for isClient && scanner.Scan() {
		if request, ok := bytes.CutPrefix(scanner.Bytes(), []byte(registerMark)); ok {
			c.serve(request)
			continue
		}
		if says, ok := bytes.CutPrefix(scanner.Bytes(), []byte(clockMark)); ok {
			select {
			case c.clock <- string(says):
			default: // SetClock has not waited for an earlier one
			}
			continue
		}
		var e history.Event
		if json.Unmarshal(scanner.Bytes(), &e) != nil {
			continue // the half line of a killed process
		}
		c.follow(e)
		c.recorder.Append(e)
	}
	_ = c.cmd.Wait() // that it was killed is no news
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.open {
		c.recorder.Record(history.Event{
			Type: history.Stopped, Client: c.client, Attempt: id, Note: "its process ended",
		})
	}
}

func (c *Child) follow(e history.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Type == history.AcquireCall:
		c.open[e.Attempt] = false
	case e.Type == history.AcquireReturn && e.Outcome == history.Acquired:
		c.open[e.Attempt] = true
	case e.Type == history.AcquireReturn, e.Type == history.ReleaseCall, e.Type == history.Stopped:
		delete(c.open, e.Attempt)
	}
}

// Holds reports whether the process has a key, according to its messages so far.
func (c *Child) Holds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, holds := range c.open {
		if holds {
			return true
		}
	}
	return false
}

// Pid is the process's id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Alive reports whether the process has not ended.
func (c *Child) Alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Pause stops the process (SIGSTOP) and records that it can do nothing.
func (c *Child) Pause() error {
	c.recorder.Record(history.Event{Type: history.Paused, Client: c.client})
	if err := StopProcess(c.cmd.Process); err != nil {
		return fmt.Errorf("workload: child: %w", err)
	}
	return nil
}

// Resume continues the process (SIGCONT).
func (c *Child) Resume() error {
	err := ContinueProcess(c.cmd.Process)
	c.recorder.Record(history.Event{Type: history.Resumed, Client: c.client})
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("workload: child: %w", err)
	}
	return nil
}

// Kill ends the process at once, stopped or not, and returns when it is gone.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // an error means that it has ended already
	<-c.exited
	_ = c.stdin.Close()
}

// Stop asks the process to release its locks and to end. It kills a process that has not ended within the time.
func (c *Child) Stop(within time.Duration) {
	_ = c.stdin.Close()
	select {
	case <-c.exited:
	case <-time.After(within):
		c.Kill()
	}
}
