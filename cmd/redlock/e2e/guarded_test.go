//go:build unix

package e2e_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// guardedMain is a command to run under a lock. While it lives, it appends a line to a log every few milliseconds. It
// must not do so after another process has the lock.
func guardedMain() {
	stubborn := flag.Bool("stubborn", false, "ignore what can be ignored")
	deaf := flag.Bool("deaf", false, "ignore SIGINT")
	nested := flag.Bool("nested", false, "start another one like this")
	root := flag.Bool("root", false, "be root, if the file's mode permits it")
	tty := flag.Bool("tty", false, "read a line from the terminal first")
	cleanUp := flag.Duration("cleanup", 0, "go on for this time after the first signal")
	life := flag.Duration("for", 24*time.Hour, "end after this time")
	path := flag.String("log", "", "append to this file")
	flag.Parse()
	log, err := os.OpenFile(*path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	exitOn(err)
	// Who gets an exclusive lock on the file knows that no guarded command writes.
	exitOn(syscall.Flock(int(log.Fd()), syscall.LOCK_SH))
	if *stubborn {
		*cleanUp = 0
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	}
	if *deaf {
		signal.Ignore(syscall.SIGINT)
	}
	if *root {
		exitOn(syscall.Setresuid(0, 0, 0))
	}
	if *nested {
		cmd := exec.Command(os.Args[0], "-stubborn", "-log", *path)
		exitOn(cmd.Start())
	}
	if *tty {
		fmt.Fprintf(log, "asks %d\n", os.Getpid())
		terminal, err := os.Open("/dev/tty")
		exitOn(err)
		line, err := bufio.NewReader(terminal).ReadString('\n')
		exitOn(err)
		fmt.Fprintf(log, "read %s", line)
	}
	work(log, *life, *cleanUp)
}

// work writes until the end of a life, or of the clean-up after a signal.
func work(log *os.File, life, cleanUp time.Duration) {
	signals := make(chan os.Signal, 1)
	if cleanUp > 0 {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	}
	end, last := time.After(life), "over\n"
	for {
		if _, err := fmt.Fprintf(log, "works %d\n", os.Getpid()); err != nil {
			os.Exit(3)
		}
		select {
		case <-signals:
			if last == "over\n" {
				end, last = time.After(cleanUp), "cleaned\n"
			}
		case <-end:
			_, err := log.WriteString(last)
			exitOn(err)
			return
		case <-time.After(3 * time.Millisecond):
		}
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "guarded:", err)
		os.Exit(4)
	}
}
