package shim

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// control is the mapped file; its layout is the same as struct control in preload/clock.c.
type control struct {
	page  []byte
	words *[4]int64
}

func openControl(path string) (control, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return control{}, err
	}
	defer f.Close()
	size := os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		return control{}, err
	}
	page, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return control{}, err
	}
	return control{page: page, words: (*[4]int64)(unsafe.Pointer(&page[0]))}, nil
}

// write publishes the three numbers under an odd sequence number, so that a reader never mixes old and new.
func (c control) write(offset, rate, base int64) {
	if c.words == nil {
		return
	}
	atomic.AddInt64(&c.words[0], 1)
	atomic.StoreInt64(&c.words[1], offset)
	atomic.StoreInt64(&c.words[2], rate)
	atomic.StoreInt64(&c.words[3], base)
	atomic.AddInt64(&c.words[0], 1)
}

func (c *control) close() error {
	if c.page == nil {
		return nil
	}
	err := unix.Munmap(c.page)
	c.page, c.words = nil, nil
	return err
}
