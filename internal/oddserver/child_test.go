package oddserver_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Cases run in a child process, because the test looks for processes that end by panic or by memory. The child reads
// from its environment which cases to play, and prints which it has begun and ended. When it dies, the cases under
// way are played again, each alone, and then the rest.
const (
	childVariable  = "REDLOCK_ODD_CHILD"  // addresses of the servers
	casesVariable  = "REDLOCK_ODD_CASES"  // numbers of the cases
	memoryVariable = "REDLOCK_ODD_MEMORY" // how many bytes may be resident
	workers        = 16
	maxResident    = 256 << 20
	collectAbove   = 96 << 20
	beginning, end = "odd-begin ", "odd-end "
	hungAfter      = 3 * patience
)

// beChild plays the cases that the parent chose.
func beChild() error {
	debug.SetMemoryLimit(collectAbove) // so that resident memory is not garbage
	stop := make(chan struct{})
	var watch sync.WaitGroup
	allowed, err := strconv.ParseInt(os.Getenv(memoryVariable), 10, 64)
	if err != nil {
		return err
	}
	watch.Go(func() { watchMemory(allowed, stop) })
	w := newWorld(strings.Fields(os.Getenv(childVariable)))
	numbers := make(chan int)
	var playing sync.WaitGroup
	var vast sync.RWMutex // vast cases run one at a time: the machine has other things to do
	all := cases()
	for range workers {
		playing.Go(func() {
			for n := range numbers {
				fmt.Printf("%s%d\n", beginning, n)
				err := takeTurn(n, &vast, func() error {
					if n < 0 {
						return misbehave(n)
					}
					return w.play(all[n])
				}, n >= 0 && all[n].vast)
				fmt.Printf("%s%d %s\n", end, n, oneLine(err))
			}
		})
	}
	for field := range strings.FieldsSeq(os.Getenv(casesVariable)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		numbers <- n
	}
	close(numbers)
	playing.Wait()
	w.close()
	close(stop)
	watch.Wait()
	fmt.Printf("odd-peak %d\n", peakResident())
	return goleak.Find()
}

// takeTurn plays a case, a vast one alone, and ends the process if the case hangs.
func takeTurn(n int, turns *sync.RWMutex, play func() error, alone bool) error {
	if alone {
		turns.Lock()
		defer turns.Unlock()
	} else {
		turns.RLock()
		defer turns.RUnlock()
	}
	defer time.AfterFunc(hungAfter, func() {
		fmt.Fprintf(os.Stderr, "panic: case %d hangs\n", n)
		os.Exit(4)
	}).Stop()
	return play()
}

// Cases that show that the parent finds each kind of fault.
const (
	panics = -1 - iota
	bloats
	leaks
	fails
)

func misbehave(how int) error {
	switch how {
	case panics:
		var none []int
		go func() { none[0] = 1 }()
		select {}
	case bloats:
		var kept [][]byte
		for len(kept) < 4*allowedResident>>20 {
			kept = append(kept, bytes.Repeat([]byte{1}, 1<<20))
			runtime.Gosched() // the watch gets its turn
		}
		return fmt.Errorf("%d MiB, and the parent did not notice", len(kept))
	case leaks:
		go func() { select {} }()
		return nil
	default:
		return errors.New("control")
	}
}

func oneLine(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprintf("%.500v", err), "\n", " ")
}

// watchMemory ends the process before its memory endangers the machine.
func watchMemory(allowed int64, stop <-chan struct{}) {
	tick := time.Tick(10 * time.Millisecond)
	for {
		select {
		case <-stop:
			return
		case <-tick:
			if now := resident(); now > allowed {
				fmt.Fprintf(os.Stderr, "%d MiB resident, and %d are allowed\n", now>>20, allowed>>20)
				os.Exit(3)
			}
		}
	}
}

// resident returns the process's resident memory; 0 if the system does not say.
func resident() int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// peakResident returns the greatest resident memory so far.
func peakResident() int64 {
	raw, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// verdicts has the faults of each case; no entry means none.
type verdicts map[int]string

// noCase is the number for reports about a process after its last case.
const noCase = -100

// inChildren plays cases over the servers at addrs, in as many processes as it takes. It returns the greatest peak
// memory of the processes that survived. Each may have this many bytes resident.
func inChildren(t *testing.T, addrs []string, numbers []int, allowed int64) (found verdicts, peak int64) {
	t.Helper()
	found = make(verdicts)
	for len(numbers) > 0 {
		underWay, left, p, died := oneChild(t, addrs, numbers, allowed, found)
		peak = max(peak, p)
		switch {
		case died == "":
			return found, peak
		case len(underWay) == 0 && len(left) == len(numbers):
			t.Fatalf("a child does nothing: %s", died)
		case len(underWay) == 0: // after the last case: a leak
			found[noCase] = died
		case len(numbers) == 1:
			found[numbers[0]] = "THE PROCESS ENDS: " + died
		default:
			for _, n := range underWay {
				_, _, _, died := oneChild(t, addrs, []int{n}, allowed, found)
				if died != "" {
					found[n] = "THE PROCESS ENDS: " + died
				}
			}
		}
		numbers = left
	}
	return found, peak
}

// oneChild plays cases in one process.
func oneChild(t *testing.T, addrs []string, numbers []int, allowed int64, found verdicts) (underWay, left []int,
	peak int64, died string,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(addrs, " "),
		casesVariable+"="+strings.Join(words, " "),
		memoryVariable+"="+strconv.FormatInt(allowed, 10))
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	err := cmd.Run()
	begun, ended := make(map[int]bool), make(map[int]bool)
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var n int
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, beginning):
			_, _ = fmt.Sscan(line[len(beginning):], &n)
			begun[n] = true
		case strings.HasPrefix(line, end):
			number, what, _ := strings.Cut(line[len(end):], " ")
			n, _ = strconv.Atoi(number)
			ended[n] = true
			if what != "" {
				found[n] = what
			}
		case strings.HasPrefix(line, "odd-peak "):
			_, _ = fmt.Sscan(line[len("odd-peak "):], &peak)
		}
	}
	for _, n := range numbers {
		switch {
		case !begun[n]:
			left = append(left, n)
		case !ended[n]:
			underWay = append(underWay, n)
		}
	}
	if err != nil {
		died = cause(err, problem.String())
	}
	return underWay, left, peak, died
}

// cause describes in a line or two how a process died.
func cause(err error, output string) string {
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return err.Error()
	}
	var telling []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
			strings.Contains(line, "resident, and") || strings.Contains(line, "DATA RACE") ||
			strings.HasPrefix(line, "found unexpected goroutines") || strings.Contains(line, "go-redis/v9") &&
			len(telling) > 0 && len(telling) < 3 {
			telling = append(telling, line)
		}
	}
	if len(telling) == 0 {
		telling = append(telling, fmt.Sprintf("%.1000s", output))
	}
	return err.Error() + ": " + strings.Join(telling, " | ")
}
