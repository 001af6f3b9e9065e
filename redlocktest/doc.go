// Package redlocktest is for the tests of code that uses redlock: masters in the test's own process, without Redis, containers
// or a network, that a test stops, slows down, empties and starts again, and on which it plays everybody else.
//
//	masters := redlocktest.New(t)                      // five
//	locker := masters.Locker(t, redlock.Options{})     // a *redlock.Locker, closed when the test ends
//
//	masters.Hold("orders:42")    // somebody else has the lock from now on
//	masters.Release("orders:42") // and gives it back, which waiters are told
//	masters.Lose("orders:42")    // whoever has it loses it
//	masters.FailNext(err)        // the next attempt fails
//	masters[:3].Stop()           // three of five are away
//
// The Locker is the real one: what is replaced is what the masters' servers do. They keep locks of all kinds, fencing tokens,
// waiters' queues and generations as the Lua scripts of package single do, from the store that the project's simulator uses and
// that is compared with real servers. What they do not have is a server to look at: [redlock.Locker.Check] tries each of them with
// a lock and can tell no more.
//
// Keys are those that the masters have: for a Locker with a Prefix in its Options, the Prefix and the key.
//
// # Time
//
// Masters and Lockers follow Go's clock. Inside a bubble of testing/synctest that is the bubble's: a ttl of a minute takes no
// time there, and everything belongs to the bubble that was made in it. Outside one time passes as it does, unless
// [Masters.Advance] moves it. A Locker that the code under test makes by itself, with redlock.New, follows the masters too (redlock.Timed).
// Only where something else stands between it and the masters does it need their clock in its Options, [Masters.Clock]: otherwise it goes by
// the machine's, which no bubble and no Advance changes. In a bubble it has to be closed before the test ends.
//
// Requests to masters are answered at once. On a busy machine the goroutine that asks may still be late: give ttls of seconds,
// as everywhere. And an acquisition, an extension or a release is decided when a majority has answered: what was sent to the other masters
// may arrive after it has returned. Where a test looks at single masters that matters: in a bubble, synctest.Wait lets it arrive.
//
// # Concurrency
//
// All functions and methods may be called from several goroutines. Those that fail the test for bad input call Fatalf, and so belong in
// the test's own goroutine.
package redlocktest
