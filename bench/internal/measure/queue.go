package measure

import "time"

// Jain is Jain's fairness index of the given shares: (Σx)² / (n·Σx²). It is 1 when all are equal and 1/n when one
// takes everything. No shares, or only zeros, give 0: nothing was shared, so nothing was shared fairly.
func Jain(shares []int64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// IdealWait returns how long each contender of a perfect queue waits. The queue serves contenders in turn, and each
// holds the key for hold. To pass the key on takes one uncontended cycle: a release and an acquisition. A contender
// that has just released and asks again waits until the others have had their turn. The result is both the median and
// the maximum of such a queue.
//
// With fewer than two contenders the wait is 0.
func IdealWait(contenders int, hold, cycle time.Duration) time.Duration {
	if contenders < 2 {
		return 0
	}
	return time.Duration(contenders-1) * (hold + cycle)
}
