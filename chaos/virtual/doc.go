// Package virtual runs any Go lock in virtual time. A run draws clients, masters and faults from a seed, takes some
// milliseconds, and is judged by the oracles. A run that breaks the lock is shrunk to few steps.
//
// The lock must let its caller dial: go-redis, redigo and rueidis do. Its connections then lead to masters in memory
// that speak Redis's protocol and run Lua scripts, in a bubble of testing/synctest. Nothing else of the lock changes.
// A test takes a few lines:
//
//	func TestMyLock(t *testing.T) {
//		virtual.Test(t, mylock.Subject{}, virtual.Options{})
//	}
//
// The subject is a [workload.Subject] that implements [workload.Secured], the same that the harness drives against
// real servers. A lock that reads another clock than package time's implements [workload.Virtual] too.
//
// # What is simulated
//
// A [Schedule] is data: masters, clients with their sessions, delays, and faults. Between a client and a master the
// network delays each message by a drawn time. A fault may cut one direction or both, slow a path down, or reset its
// connections. As in TCP, bytes that a cut holds back arrive after it, unless their connection was reset. A master can
// freeze, run out of memory, crash with or without its data, or have its clock set; it may also run fast or slow. A
// client can be killed. Its library's goroutines go on, but nothing of theirs reaches a master.
//
// A bubble cannot stop a client's goroutines between two instructions, and all clients have the same clock. Masters
// with fast clocks, which are drawn, have the effect of a client with a slow one. Package sim can do both to this
// library.
//
// # Replay
//
// Every delay is a hash of the seed, of the path and of the message's number. So the same schedule mostly gives the
// same run. Go's scheduler, and a lock that draws its own jitter, may still order two steps differently. A replay
// therefore tries several times, and says how often the run failed.
package virtual
