//go:build linux && (amd64 || arm64) && !race

package wire

// Dated reports that the last reply came with its time.
func (c *Conn) Dated() bool { return c.times.sure() }

// Leave is for a request that is not sent.
func (c *Conn) Leave() { c.times.leaves() }
