package redlocktest

import (
	"bytes"
	"regexp"
	"runtime"
	"time"
)

var inBubble = regexp.MustCompile(`^goroutine \d+ \[[^\n]*(synctest bubble \d+)[\],]`)

// lockerLeft reports whether a Locker in the caller's bubble has been used and not closed. It is false outside bubbles.
// Masters do not see that a Locker is closed, but each master that it has used has a goroutine until then.
func lockerLeft() bool {
	var own [256]byte // of a stack the first line is enough
	where := inBubble.FindSubmatch(own[:runtime.Stack(own[:], false)])
	if len(where) < 2 {
		return false
	}
	//nolint:forbidigo // the bubble's time passes when all others wait: those that are ending have ended
	time.Sleep(time.Nanosecond)
	stacks := make([]byte, 1<<16)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*len(stacks))
	}
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if m := inBubble.FindSubmatch(stack); len(m) == 2 && bytes.Equal(m[1], where[1]) &&
			bytes.Contains(stack, []byte("internal/lane.(*Lane).work(")) {
			return true
		}
	}
	return false
}
