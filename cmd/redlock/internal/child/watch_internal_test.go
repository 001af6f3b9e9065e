//go:build unix && !aix

package child

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOrdersAreReadAsTheyAreWritten(t *testing.T) {
	first := Order{Group: 12, Deadline: 3 * time.Hour, Grace: time.Second, Mark: "REDLOCK_OWNER=a \"b\"\n/12"}
	second := Order{Group: 12, Deadline: 4 * time.Hour}
	for name, c := range map[string]struct {
		in        string
		want      []Order
		dismissed bool
	}{
		"nothing": {},
		"one":     {in: first.line(), want: []Order{first}},
		"two and a dismissal": {
			in: first.line() + second.line() + dismissed, want: []Order{first, second}, dismissed: true,
		},
		"a dismissal only":             {in: dismissed, dismissed: true},
		"nothing after the dismissal":  {in: dismissed + first.line(), dismissed: true},
		"half an order":                {in: first.line() + "12 99", want: []Order{first}},
		"half a dismissal":             {in: first.line() + dismissed[:4], want: []Order{first}},
		"an order cut at its last":     {in: strings.TrimSuffix(first.line(), "\n")},
		"what is no order is left out": {in: "kill them all\n\n12 x 3\n" + second.line(), want: []Order{second}},
	} {
		t.Run(name, func(t *testing.T) {
			orders := make(chan Order, 10)
			if got := readOrders(strings.NewReader(c.in), orders); got != c.dismissed {
				t.Errorf("dismissed: %v, want %v", got, c.dismissed)
			}
			var got []Order
			for o := range orders {
				got = append(got, o)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("orders %v, want %v", got, c.want)
			}
		})
	}
}

// watched is a follow in virtual time on a machine that can be suspended: its clock goes on, and its timers do not.
type watched struct {
	orders    chan Order
	began     time.Time
	suspended atomic.Int64
	done      chan struct{}
	last      Order
	ended     bool
	at        time.Duration
}

func watching(t *testing.T, test func(w *watched)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := &watched{orders: make(chan Order), began: time.Now(), done: make(chan struct{})}
		go func() {
			defer close(w.done)
			w.last, w.ended = follow(w.orders, w.now)
			w.at = w.now()
		}()
		test(w)
	})
}

func (w *watched) now() time.Duration { return time.Since(w.began) + time.Duration(w.suspended.Load()) }

func (w *watched) passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// over fails unless follow has returned this order by now.
func (w *watched) over(t *testing.T, last Order, ended bool, atMost time.Duration) {
	t.Helper()
	<-w.done
	if w.last != last || w.ended != ended || w.at > atMost || !ended && w.at < last.Deadline {
		t.Errorf("it ended at %v with (%v, %v), want at most %v and (%v, %v)", w.at, w.last, w.ended, atMost, last,
			ended)
	}
}

func order(deadline time.Duration) Order {
	return Order{Group: 7, Deadline: deadline, Grace: time.Second}
}

func TestAWatchWithoutAnOrderWaits(t *testing.T) {
	watching(t, func(w *watched) {
		w.passes(time.Hour)
		close(w.orders)
		w.over(t, Order{}, true, time.Hour)
	})
}

func TestAWatchKillsAtTheDeadline(t *testing.T) {
	const deadline = 10*time.Second + lookAgain/3 // between two looks
	watching(t, func(w *watched) {
		w.orders <- order(deadline)
		w.over(t, order(deadline), false, deadline)
	})
}

func TestALaterOrderMovesTheDeadline(t *testing.T) {
	watching(t, func(w *watched) {
		for at := time.Duration(0); at < time.Minute; at += 3 * time.Second {
			w.orders <- order(at + 10*time.Second)
			w.passes(3 * time.Second)
		}
		w.over(t, order(67*time.Second), false, 67*time.Second)
	})
}

func TestAWatchLearnsSoonThatTheMachineWasSuspended(t *testing.T) {
	watching(t, func(w *watched) {
		w.orders <- order(10 * time.Second)
		w.passes(5 * time.Second)
		w.suspended.Store(int64(time.Hour))
		w.over(t, order(10*time.Second), false, time.Hour+5*time.Second+lookAgain+orderTimeout)
	})
	if lookAgain > 100*time.Millisecond {
		t.Errorf("a command may go on for %v after a suspension", lookAgain)
	}
}

// A watch that was stopped, or was on a suspended machine, finds redlock's later orders in the pipe.
func TestAWatchThatWasHeldUpReadsItsOrdersFirst(t *testing.T) {
	watching(t, func(w *watched) {
		w.orders <- order(10 * time.Second)
		w.passes(5 * time.Second)
		w.suspended.Store(int64(time.Minute))
		go func() {
			w.orders <- order(65 * time.Second)
			w.orders <- order(65*time.Second + lookAgain) // late by less than a timer may be
			w.orders <- order(80 * time.Second)
		}()
		w.over(t, order(80*time.Second), false, 80*time.Second)
	})
}

// redlock was killed while the watch was held up. The end of the pipe is no order, and does not mean that the watch may
// let go.
func TestHazard72AWatchThatWasHeldUpRemembersItsOrder(t *testing.T) {
	for range 20 { // the timer and the end of the pipe are both there, and either may be taken
		watching(t, func(w *watched) {
			w.orders <- order(10 * time.Second)
			w.passes(10*time.Second - lookAgain/2)
			w.suspended.Store(int64(time.Minute))
			<-time.After(lookAgain / 2) // the same moment as the watch's next look
			close(w.orders)
			w.over(t, order(10*time.Second), true, 70*time.Second+lookAgain)
		})
	}
}

// group starts a shell script as a new process group, and waits until the script reports that it is ready.
func group(t *testing.T, script string) (pid int, ended <-chan error) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	buf := make([]byte, 6)
	if _, err := out.Read(buf); err != nil {
		t.Error(err)
	}
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { _ = signalGroup(cmd.Process.Pid, syscall.SIGKILL) })
	return cmd.Process.Pid, done
}

func diedOf(t *testing.T, err error) syscall.Signal {
	t.Helper()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatalf("it ended with %v", err)
	}
	return exit.Sys().(syscall.WaitStatus).Signal()
}

func TestEndAsksAndThenKills(t *testing.T) {
	const ends, stubborn = "echo ready; exec sleep 60", "trap '' TERM; echo ready; while :; do sleep 60; done"
	for name, c := range map[string]struct {
		script          string
		stopped         bool
		deadline, grace time.Duration
		want            syscall.Signal
	}{
		"what ends":                 {ends, false, time.Hour, time.Minute, syscall.SIGTERM},
		"what is stopped":           {ends, true, time.Hour, time.Minute, syscall.SIGTERM},
		"after the grace":           {stubborn, false, time.Hour, 50 * time.Millisecond, syscall.SIGKILL},
		"at the deadline":           {stubborn, false, 50 * time.Millisecond, time.Hour, syscall.SIGKILL},
		"when the deadline is over": {stubborn, false, -time.Second, time.Hour, syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			pid, ended := group(t, c.script)
			if c.stopped {
				if err := signalGroup(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			end(Order{Group: pid, Deadline: Now() + c.deadline, Grace: c.grace})
			if sig := diedOf(t, <-ended); sig != c.want {
				t.Errorf("it died of %v, want %v", sig, c.want)
			}
		})
	}
}
