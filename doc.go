// Package redlock takes distributed locks by majority over independent Redis masters: the Redlock algorithm
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
//
// A program makes one Locker, when it starts, and closes it when it ends:
//
//	locker, err := redlock.Dial(ctx, []string{"redis://a:6379", "redis://b:6379", "redis://c:6379"}, redlock.Options{})
//	if err != nil {
//		return err
//	}
//	defer locker.Close(shutdown) // a context that bounds how long it waits for locks and masters
//
// Do acquires, renews, stops the work when the lock is lost, releases, and says if the lock was lost before the work was done:
//
//	err = locker.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
//		return ship(ctx, 42)
//	})
//
// By hand, the error of Release is where that is said:
//
//	lock, err := locker.Acquire(ctx, "orders:42", 10*time.Second)
//	if err != nil {
//		return err
//	}
//	err = ship(lock.Context(ctx), 42)
//	return errors.Join(err, lock.Release(ctx)) // ErrNotHeld: somebody else may have had the lock meanwhile
//
// # What is guaranteed
//
// At most one Lock of a key is held at any time, where held means: between the return of Acquire and [Lock.Until].
// This assumes that
//
//   - the clocks of masters and clients run at rates that differ by less than the drift allowance
//     ([Options].DriftFactor), and are not set while locks are held;
//   - a master that restarts has its data, or does not vote until every lock it may have forgotten has expired;
//   - the masters are independent: none is a replica of another, no two are the same server.
//
// A lock is available while a majority of masters can be reached. A holder that dies frees it after at most its ttl.
//
// # What is not guaranteed
//
// A holder that is paused (by its garbage collector, its hypervisor, a debugger) or whose requests are delayed on
// their way to the resource may act after its validity has ended; no lock service can prevent that. [Lock.Done] closes a
// [Grace] before, but a timer promises no more than that. Work that must
// not overlap belongs under [Lock.Context], should ask [Lock.Err] before what can't be undone, and where the resource
// can compare numbers should carry fencing tokens. Where the assumptions above do not hold, two holders are possible.
//
// # Concurrency
//
// All types are safe for concurrent use. Every acquisition returns a Lock of its own, which is never reused.
package redlock
