package sim

import "time"

// chance is a stream of random numbers (splitmix64). It depends on nothing but its seed.
type chance uint64

// chanceOf makes the stream for one decision, named by numbers.
func chanceOf(seed uint64, name ...uint64) chance {
	h := chance(seed)
	for _, n := range name {
		h = h.named(n)
	}
	return h
}

// named is the stream for a decision with one more number in its name.
func (c chance) named(n uint64) chance {
	c ^= chance(n * 0x9e3779b97f4a7c15)
	return chance(c.next())
}

func (c *chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// below returns a number of at least 0 and below n, 0 for an n that is not positive.
func (c *chance) below(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(c.next() % uint64(n))
}

// of reports true in n of a thousand cases.
func (c *chance) of(n int) bool { return n > 0 && c.below(1000) < int64(n) }

// between returns a duration of at least low and at most high, in nanoseconds.
func (c *chance) between(low, high time.Duration) int64 {
	return int64(low) + c.below(int64(high-low)+1)
}

// The names of the streams, so that no two kinds of decision share one.
const (
	ofJitter uint64 = iota + 1
	ofFlight
	ofStagger
	ofTie
	ofResume
	ofSubscription
	ofEarlyExpiry
)

// earlyExpiry is how many masters of a thousand end keys a millisecond early.
const earlyExpiry = 300
