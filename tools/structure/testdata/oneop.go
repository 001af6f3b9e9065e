// Command oneop runs one operation of the library over real masters and writes the coverage counters of that operation alone.
// Command structure builds it with -cover and counts the functions that ran.
//
//	oneop acquire|release|extend|wait COVERAGE_DIR MASTER_URL...
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/coverage"
	"time"

	"github.com/seed-624411e5/redlock"
)

const (
	key = "structure"
	ttl = 30 * time.Second
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "oneop:", err)
		os.Exit(1)
	}
}

func run(operation, dir string, masters []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	locker, err := redlock.Dial(ctx, masters, redlock.Options{})
	if err != nil {
		return err
	}
	defer locker.Close(ctx)
	acquire := func() (*redlock.Lock, error) { return locker.Acquire(ctx, key, ttl) }
	lock, err := acquire() // opens the connections
	if err != nil {
		return err
	}
	if operation != "hold" {
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	switch operation {
	case "hold": // until standard input says otherwise
		fmt.Println("held")
		io.ReadFull(os.Stdin, make([]byte, 1))
		return lock.Release(ctx)
	case "acquire":
		err := counted(dir, func() error { lock, err = acquire(); return err })
		return errors.Join(err, lock.Release(ctx))
	case "wait":
		return errors.Join(wait(dir, masters, &lock, acquire), lock.Release(ctx))
	}
	if lock, err = acquire(); err != nil {
		return err
	}
	if operation == "extend" {
		return errors.Join(counted(dir, func() error { return lock.Extend(ctx, ttl) }), lock.Release(ctx))
	}
	return counted(dir, func() error { return lock.Release(ctx) })
}

// wait acquires a key that another process holds, and releases as soon as this one has begun to wait.
func wait(dir string, masters []string, lock **redlock.Lock, acquire func() (*redlock.Lock, error)) error {
	holder := exec.Command(os.Args[0], append([]string{"hold", ""}, masters...)...)
	holder.Stderr = os.Stderr
	in, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return err
	}
	err = counted(dir, func() error {
		release := time.AfterFunc(500*time.Millisecond, func() { in.Write([]byte("x")) })
		defer release.Stop()
		var err error
		*lock, err = acquire()
		return err
	})
	in.Close()
	return errors.Join(err, holder.Wait())
}

// straggle is the time in which the replies that did not decide a round arrive.
const straggle = 50 * time.Millisecond

// counted runs f and writes the counters of what ran until f returned and the stragglers had ended.
func counted(dir string, f func() error) error {
	time.Sleep(straggle) // of the operation before
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	time.Sleep(straggle)
	if err := coverage.WriteMetaDir(dir); err != nil {
		return err
	}
	return coverage.WriteCountersDir(dir)
}
