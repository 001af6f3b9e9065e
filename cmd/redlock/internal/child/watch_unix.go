//go:build unix && !aix

package child

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookAgain is how often a watch with a deadline reads the clock. Its timers stand still while the machine is
	// suspended, so without these looks the command would go on for as long after it.
	lookAgain = 100 * time.Millisecond
	// killAgain is the interval between kills of processes that do not end.
	killAgain = time.Second
	// orderTimeout limits the write of an order into a pipe. Only a watch that was stopped long ago leaves the pipe
	// full.
	orderTimeout = 10 * time.Millisecond
)

// Now is the time since a fixed moment. It is the same for all processes, and goes on while this one is stopped.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil { // no such clock: a Linux before 2.6.39
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}

// Watch is the process that ends the command if this program does not.
type Watch struct {
	orders *os.File
	ended  chan struct{}
	worked bool // written before ended is closed
}

// StartWatch starts a watch, which does nothing before its first order. This program's main function must call
// [RunWatch] if its only argument is [WatchCommand].
func StartWatch() (*Watch, error) {
	path, err := self()
	if err != nil {
		return nil, err
	}
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	said, out, err := os.Pipe()
	if err != nil {
		_ = orders.Close()
		return nil, err
	}
	defer out.Close()
	cmd := &exec.Cmd{
		Path: path, Args: []string{os.Args[0], WatchCommand}, Env: []string{"GOMAXPROCS=1"}, Dir: "/", Stdin: in,
		Stdout:      out,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = startOwn(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		_, _ = orders.Close(), said.Close()
		return nil, err
	}
	w := &Watch{orders: orders, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		last, _ := io.ReadAll(said)
		w.worked = len(last) > 0
		_ = said.Close()
		_ = cmd.Wait() // unless [Process.wait] has
	}()
	return w, nil
}

// Ended is closed when the watch has ended.
func (w *Watch) Ended() <-chan struct{} { return w.ended }

// Worked reports, after Ended is closed, whether the watch ended by itself. Then it was not killed, and has killed the
// group by its last order.
func (w *Watch) Worked() bool {
	<-w.ended
	return w.worked
}

// Tell sends the watch an order. It does not wait: if the watch does not read the order, its earlier one stays in
// force.
func (w *Watch) Tell(o Order) { w.write(o.line()) }

// Dismiss ends the watch without harm to the group.
func (w *Watch) Dismiss() {
	w.write(dismissed)
	_ = w.orders.Close() // after this there is nothing left to guard, whatever the result
}

func (w *Watch) write(line string) {
	_ = w.orders.SetWriteDeadline(time.Now().Add(orderTimeout)) // a pipe has deadlines
	_, _ = w.orders.WriteString(line)                           // if the watch is gone, Ended closes
}

// RunWatch is the whole life of a watch. It reads its orders from in, and reports to out that it was not killed.
func RunWatch(in, out *os.File) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE)
	orders := make(chan Order)
	wasDismissed := make(chan bool, 1)
	go func() { wasDismissed <- readOrders(in, orders) }()
	last, ended := follow(orders, Now)
	switch {
	case last == (Order{}): // there has not been a command yet
	case !ended:
		kill(last) // a later order of redlock comes too late
	case !<-wasDismissed:
		end(last)
	}
	_, _ = out.WriteString("done\n") // the reader may be gone
}

// follow returns the last order when its deadline has passed by the clock now, or when the sender of orders is gone.
func follow(orders <-chan Order, now func() time.Duration) (last Order, ended bool) {
	timer := time.NewTimer(lookAgain)
	heldUp := false
	for {
		select {
		case o, ok := <-orders:
			if !ok {
				return last, true
			}
			last = o
		case <-timer.C:
			late := now() - last.Deadline
			switch heldUp = late >= 2*orderTimeout || heldUp && late >= 0; {
			case last == (Order{}), late < 0:
			case !heldUp:
				return last, false
			default: // this process was stopped: a newer order may be in the pipe
				o, ok, some := nextOrder(orders)
				switch {
				case !some:
					return last, false
				case !ok:
					return last, true
				}
				last = o
			}
		}
		timer.Reset(pause(last, now()))
	}
}

// nextOrder returns the next order in the pipe, if there is one. ok is false at the pipe's end.
func nextOrder(orders <-chan Order) (o Order, ok, some bool) {
	select {
	case o, ok = <-orders:
		return o, ok, true
	case <-time.After(orderTimeout):
		return Order{}, false, false
	}
}

// pause returns how long a watch need not read the clock.
func pause(o Order, now time.Duration) time.Duration {
	if o == (Order{}) {
		return lookAgain
	}
	return max(0, min(lookAgain, o.Deadline-now))
}

// end sends SIGTERM to the group and to every other process with its mark. It kills them a grace later, or at the
// deadline.
func end(o Order) {
	o.Deadline = min(o.Deadline, Now()+o.Grace)
	if o.Deadline <= Now() {
		kill(o)
		return
	}
	_ = signalGroup(o.Group, syscall.SIGTERM) // if this fails, the next signal is no question
	_ = signalGroup(o.Group, syscall.SIGCONT)
	_ = askMarked(o.Mark, o.Group, syscall.SIGTERM)
	for {
		again := 20 * time.Millisecond
		if !groupLeft(o.Group) {
			if again = lookAgain; !markedLeft(o.Mark) { // which takes longer to find out
				return
			}
		}
		left := o.Deadline - Now()
		if left <= 0 {
			kill(o)
			return
		}
		<-time.After(min(left, again))
	}
}

// kill kills the group and every other process with its mark. If a kill is refused, it repeats it while there is a
// process to kill: the process may be another user's program that ends or changes its user.
func kill(o Order) {
	for {
		group, others := signalGroup(o.Group, syscall.SIGKILL), killMarked(o.Mark, nil)
		if (group == nil || !groupLeft(o.Group)) && others == nil {
			return
		}
		<-time.After(killAgain)
	}
}
