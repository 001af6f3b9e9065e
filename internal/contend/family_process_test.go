package contend_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// childTask tells a copy of this test binary what to do until it is killed: "hold" or "wait", and the masters.
const childTask = "REDLOCK_TEST_FAMILY_TASK"

// childTTL is the remaining life of a child's lock after the child's death.
const childTTL = 2 * time.Second

// spawn starts a copy of this test binary that runs the calling test with a task. It returns when the copy reports
// that it is at work. kill ends the copy as a crash would.
func spawn(t *testing.T, task string, servers []*redistest.Server) (kill func()) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childTask+"="+task+" "+strings.Join(urls(servers), " "))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	kill = func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != task+"\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return kill
}

// work is the child's part: it performs the task until the child is killed.
func work(t *testing.T) (child bool) {
	t.Helper()
	task, found := os.LookupEnv(childTask)
	if !found {
		return false
	}
	words := strings.Fields(task)
	locker, err := redlock.Dial(t.Context(), words[1:], redlock.Options{})
	must(t, err)
	if words[0] == "hold" {
		_, err = locker.Acquire(t.Context(), key, childTTL, redlock.AutoRenew())
		must(t, err)
		fmt.Println("hold")
	} else {
		fmt.Println("wait")
		_, err = locker.Acquire(t.Context(), key, childTTL)
		t.Errorf("the child got the lock, %v, though it should be killed while it waits", err)
	}
	select {}
}

func TestAKilledHolderFreesTheLockAfterItsTTL(t *testing.T) {
	t.Parallel()
	if work(t) {
		return
	}
	servers := redistest.StartN(t, 3)
	kill := spawn(t, "hold", servers)
	l := dial(t, servers, redlock.Options{})
	is(t, try(t, l, key), redlock.ErrHeld)
	w := wait(t, t.Context(), l, key, longTTL)
	awaitQueue(t, servers, key, 1)
	alive := time.After(2 * childTTL) // it is renewed while it lives
	select {
	case <-w.Ended:
		t.Fatal("the lock was free while its holder lived")
	case <-alive:
	}
	kill()
	died := time.Now()
	give(t, w.Get(t))
	if took := w.At.Sub(died); took > childTTL+backoff {
		t.Errorf("the lock was free %v after its holder's death, want %v at most", took, childTTL)
	}
}

func TestAKilledWaiterDelaysOthersByABackoffAtMost(t *testing.T) {
	if work(t) {
		return
	}
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	held := take(t, a, key, 30*time.Second)
	kill := spawn(t, "wait", servers)
	awaitQueue(t, servers, key, 1)
	w := wait(t, t.Context(), b, key, longTTL)
	awaitQueue(t, servers, key, 2)
	kill()
	began := time.Now()
	give(t, held)
	give(t, w.Get(t))
	if took := w.At.Sub(began); took > backoff {
		t.Errorf("the next waiter came %v after the release", took)
	}
}
