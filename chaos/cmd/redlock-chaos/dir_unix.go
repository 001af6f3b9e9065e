//go:build linux || darwin

package main

import (
	"os"
	"syscall"
)

// lockFile fails if another process has locked the file. The lock ends with the process.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
