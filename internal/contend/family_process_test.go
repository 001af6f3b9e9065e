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
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// childTask tells a copy of this test binary to wait for the lock until it is killed. Its value are the masters.
const childTask = "REDLOCK_TEST_FAMILY_TASK"

// spawn starts a copy of this test binary that runs the calling test as a waiter. It returns when the copy reports that
// it is at work. kill ends the copy as a crash would.
func spawn(t *testing.T, servers []*redistest.Server) (kill func()) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childTask+"="+strings.Join(URLs(servers), " "))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	Must(t, err)
	Must(t, child.Start())
	kill = func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "wait\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return kill
}

// waitsInAChild is the child's part: it waits until it is killed.
func waitsInAChild(t *testing.T) (child bool) {
	t.Helper()
	masters, found := os.LookupEnv(childTask)
	if !found {
		return false
	}
	locker, err := redlock.Dial(t.Context(), strings.Fields(masters), redlock.Options{})
	Must(t, err)
	fmt.Println("wait")
	_, err = locker.Acquire(t.Context(), Key, 2*time.Second)
	t.Errorf("the child got the lock, %v, though it should be killed while it waits", err)
	select {}
}

// A process that dies stays in the queue. It is notified once, and the next waiter tries by itself.
func TestAKilledWaiterDelaysOthersByABackoffAtMost(t *testing.T) {
	if waitsInAChild(t) {
		return
	}
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	held := Take(t, a, Key, 30*time.Second)
	kill := spawn(t, servers)
	AwaitQueue(t, servers, Key, 1)
	w := Wait(t, t.Context(), b, Key, LongTTL)
	AwaitQueue(t, servers, Key, 2)
	kill()
	comesWithinABackoff(t, held, w)
}
