//go:build unix && !aix

package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type platform struct {
	pid      int
	begin    *os.File
	terminal *terminal // nil if there is none
	mark     string

	mu     sync.Mutex
	halted marked // processes outside the group that Suspend has stopped
}

// maxScriptLine is the length of a script's first line that Linux reads.
const maxScriptLine = 256

// Start prepares the command as the leader of a new process group: a process that waits for [Process.Begin] and becomes
// the command then. So watch knows the group before the command does anything. A goroutine waits for the command and
// for all processes that it leaves. From now on no other code may wait for children of this program.
//
// On Linux the kernel sends the command a SIGTERM when this program dies. The kernel looks at the thread that forked,
// so the goroutine keeps its thread to itself.
func Start(cfg Config) (*Process, error) {
	path, err := exec.LookPath(cfg.Argv[0])
	switch {
	case errors.Is(err, exec.ErrDot):
		if !strings.Contains(path, "/") {
			path = "./" + path
		}
		return nil,
			fmt.Errorf("PATH leads to %q only by a relative part, such as \".\", which is not relied on; if you mean "+
				"it, say %s", cfg.Argv[0], path)
	case err != nil:
		return nil, err
	}
	own, err := self()
	if err != nil {
		return nil, err
	}
	if err := adopt(); err != nil {
		return nil, err
	}
	hears, begin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer hears.Close()
	inherited, err := unix.FcntlInt(hears.Fd(), unix.F_DUPFD, 3) // a number that this program's parent does not use
	if err != nil {
		return nil, errors.Join(err, begin.Close())
	}
	defer func() { _ = unix.Close(inherited) }()
	cmd := &exec.Cmd{
		Path: own, Args: append([]string{os.Args[0], ExecCommand, strconv.Itoa(inherited), path}, cfg.Argv...),
		Env:   cfg.Env,
		Stdin: cfg.Stdin, Stdout: cfg.Stdout, Stderr: cfg.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	tieToParent(cmd.SysProcAttr)
	p := &Process{
		platform: platform{begin: begin, terminal: openTerminal(), mark: cfg.Mark},
		done:     make(chan struct{}), gone: make(chan struct{}), stopped: make(chan os.Signal, 16),
	}
	if err := p.start(cmd); err != nil {
		p.terminal.close()
		return nil, errors.Join(err, begin.Close())
	}
	if p.terminal != nil {
		ignoreTerminalOutput()
		if isTerminal(cfg.Stdin) && isTerminal(cfg.Stdout) {
			p.GiveTerminal()
		}
	}
	return p, nil
}

func (p *Process) start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.wait()
			_ = cmd.Process.Release() // wait has reaped it
		}
	}()
	return <-started
}

// Begin lets the command begin. It does not begin after the deadline, which it checks itself by [Now].
func (p *Process) Begin(deadline time.Duration) error {
	_, err := fmt.Fprintln(p.begin, int64(deadline))
	return errors.Join(err, p.begin.Close())
}

// errTooLate is the reason why a command does not begin: its parent is gone, or its lock is.
var errTooLate = errors.New("the command does not begin: its lock is over")

// RunExec is the life of a command before it begins. If the command can't begin, it returns an exit status and the
// reason. Its arguments are the descriptor for the order to begin, the program, and the program's arguments.
func RunExec(args []string) (status int, err error) {
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return cantRun, errTooLate
	}
	hears, args := os.NewFile(uintptr(number), "begin"), args[1:]
	var deadline time.Duration
	if _, err := fmt.Fscanln(hears, &deadline); err != nil || Now() >= deadline {
		return cantRun, errTooLate
	}
	_ = hears.Close()
	meantForCommand()
	err = syscall.Exec(args[0], args[1:], os.Environ())
	if errors.Is(err, syscall.ENOENT) {
		if _, gone := os.Stat(args[0]); gone == nil {
			return cantRun, fmt.Errorf("can't run %s: %s does not exist", args[0], interpreter(args[0]))
		}
	}
	return cantRun, &os.PathError{Op: "exec", Path: args[0], Err: err}
}

// meantForCommand sets the variables of a service manager to this process if they name its parent. A program uses the
// inherited sockets only if the variables name its own process.
func meantForCommand() {
	for _, name := range []string{"LISTEN_PID", "WATCHDOG_PID"} {
		if os.Getenv(name) == strconv.Itoa(os.Getppid()) {
			_ = os.Setenv(name, strconv.Itoa(os.Getpid())) // the name and the value are valid
		}
	}
}

// interpreter names the program that the kernel needs to run a script; "" if it needs none.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "what it is run by"
	}
	defer f.Close()
	begin := make([]byte, maxScriptLine)
	n, _ := io.ReadFull(f, begin) // the error of a shorter file does not matter
	if line, ok := strings.CutPrefix(string(begin[:n]), "#!"); ok {
		line, _, _ = strings.Cut(line, "\n")
		name, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
		return fmt.Sprintf("its interpreter, %q,", name)
	}
	return "the loader that it is made for"
}

// Signal sends sig to every process of the command's group. With [Continue] it also continues the processes outside the
// group that Suspend has stopped. When the command has ended, the signal goes to all processes that it has left; if
// there are none, Signal does nothing. An error means that the signal reached no process. The signal may also miss a
// process of another user without an error.
func (p *Process) Signal(sig os.Signal) error {
	var err error
	if sig == Continue {
		err = p.resumeHalted() // first: a shell with job control stops waiting when it finds its job stopped
	}
	if p.hasEnded() {
		return errors.Join(err, p.signalLeft(sig))
	}
	return errors.Join(err, signalGroup(p.pid, sig))
}

// Kill kills the whole group at once, even if it is stopped, and every other process that the command has started.
func (p *Process) Kill() error {
	return errors.Join(signalGroup(p.Group(), syscall.SIGKILL), killMarked(p.mark, descendsOrHas(p)))
}

// Terminate sends SIGTERM to the whole group, and to every other process with the command's mark. It also sends
// SIGCONT, so that stopped processes get the signal.
func (p *Process) Terminate() error {
	if p.hasEnded() {
		return errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT))
	}
	return errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT), p.SignalOutside(syscall.SIGTERM))
}

// SignalOutside sends sig, and SIGCONT, to processes with the command's mark that have left its group.
func (p *Process) SignalOutside(sig os.Signal) error { return askMarked(p.mark, p.pid, sig) }

// halt stops the group and every other process with the command's mark.
func (p *Process) halt() error {
	err := p.Signal(syscall.SIGSTOP)
	halted := stopMarked(p.mark, p.Group())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = halted
	return err
}

func (p *Process) resumeHalted() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	halted := p.halted
	p.halted = marked{}
	return halted.signal(syscall.SIGCONT)
}

// signalGroup does nothing without a group: kill(2) with 0 would signal this program's group.
func signalGroup(group int, sig os.Signal) error {
	if group <= 0 {
		return nil
	}
	number, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	err := syscall.Kill(-group, number)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// groupLeft reports whether the group has any process left. An ended process counts until its parent has reaped it.
func groupLeft(group int) bool {
	return group > 0 && !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}

// isIn reports whether the group has this process.
func isIn(group, pid int) bool {
	in, err := unix.Getpgid(pid)
	return err == nil && in == group
}

func (p *Process) tellStop(sig os.Signal) {
	select {
	case p.stopped <- sig:
	default: // so many stops at once mean no more than a few
	}
}

func statusOf(ws syscall.WaitStatus) Status {
	if ws.Signaled() {
		return Status{Signal: int(ws.Signal())}
	}
	return Status{Code: ws.ExitStatus()}
}
