package oracle

import "math"

// chance is the greatest probability at which an oracle that counts failures still takes them for bad luck.
const chance = 0.001

// beyondChance reports whether so many failures show a rate of failures above allowed: at that rate, as many or more
// would come with a probability below chance. Of five operations all five must fail to show more than 0.2, and of ten
// all ten to show more than 0.5.
func beyondChance(failed, judged int, allowed float64) bool {
	if failed == 0 || allowed >= 1 || float64(failed) <= allowed*float64(judged) {
		return false
	}
	if allowed <= 0 {
		return true
	}
	tail := 0.0
	for k := failed; k <= judged; k++ {
		tail += math.Exp(logChoose(judged, k) + float64(k)*math.Log(allowed) + float64(judged-k)*math.Log1p(-allowed))
	}
	return tail < chance
}

// unlucky reports whether a long wait may be bad luck. In it other waiters got the key so many times (grants), and the
// run had so many waits. The measure is a lock that chooses at random and gives each waiter half of its fair share.
func unlucky(waits, others, grants int) bool {
	return float64(waits)*math.Pow(1-0.5/float64(others+1), float64(grants)) >= chance
}

// logChoose returns the logarithm of the number of ways to choose k of n.
func logChoose(n, k int) float64 {
	logFactorial := func(n int) float64 {
		x, _ := math.Lgamma(float64(n) + 1)
		return x
	}
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}
