// Package redlocktest is for the tests of code that uses redlock. Its masters run in the test's own process, without
// Redis, containers or a network. A test can stop them, slow them down, empty them and start them again, and act as
// other lock holders.
//
//	masters := redlocktest.New(t)                      // five
//	locker := masters.Locker(t, redlock.Options{})     // a *redlock.Locker, closed when the test ends
//
//	masters.Hold("orders:42")    // another process has the lock from now on
//	masters.Release("orders:42") // and gives it back; waiters are notified
//	masters.Lose("orders:42")    // the holder loses the lock
//	masters.FailNext(err)        // the next attempt fails
//	masters[:3].Stop()           // three of five are away
//
// The Locker is the real one; only the servers are replaced. The masters keep locks of all kinds, fencing tokens,
// waiters' queues and generations as the Lua scripts of package single do. Their store is also the store of the
// project's simulator, and is compared with real servers. There is no server configuration to inspect:
// [redlock.Locker.Check] tries a lock on each master and can check no more.
//
// Keys are the masters' keys: for a Locker with a Prefix in its Options, the Prefix and the key.
//
// # Time
//
// Masters and Lockers follow Go's clock. Inside a bubble of testing/synctest that is the bubble's clock: a ttl of a
// minute takes no real time, and all objects belong to the bubble in which they were made. Outside a bubble time
// passes in real time, unless [Masters.Advance] moves it.
//
// A Locker that the code under test makes with redlock.New follows the masters too (redlock.Timed). If a wrapper
// stands between the Locker and the masters, set [Masters.Clock] in its Options. Otherwise it follows the machine's
// clock, which neither a bubble nor Advance changes. In a bubble close such a Locker before the test ends.
//
// Masters answer at once. On a busy machine the goroutine that asks may still be late: use ttls of seconds. An
// acquisition, an extension or a release is decided when a majority has answered. Its requests to the other masters
// may arrive after it has returned. A test that looks at single masters in a bubble calls synctest.Wait first.
//
// # Concurrency
//
// All functions and methods may be called from several goroutines. A function that fails the test for bad input calls
// Fatalf: call it from the test's own goroutine.
package redlocktest
