// Package sim runs the real engine over simulated masters and a simulated network in virtual time: minutes of a
// cluster's life take a millisecond, and whatever goes wrong can be replayed from its seed and shrunk to a few steps.
//
// A [Schedule] is data: the clients and what they do, the clocks, the network, the faults. [Generate] draws one from a
// seed, [Run] performs it and returns the history with what the oracles found in it, [Shrink] looks for a smaller
// one that fails in the same way, and [Timeline] draws it.
//
// # Determinism
//
// A run is a bubble of testing/synctest. One goroutine, the scheduler, owns all events: messages, timers (the engine's
// clock is [redlock.Options].Clock), steps of clients. It gives each event a nanosecond of its own, and lets the
// engine's goroutines settle before the next. So the only concurrency left is between goroutines that one event woke;
// what they ask of the world is put in order before it is answered. Everything random is a hash of the schedule's
// seed and of what is being decided, never a shared stream, so that the order of questions does not matter. Owners
// are the engine's own random values; the history calls them o1, o2, … in the order of their appearance.
//
// # What is simulated
//
// Masters do what the Lua scripts of package single do, by package internal/store, which a differential test holds to a real
// redis-server. They have clocks of their own (rate and offset), freeze, crash and restart with their data, with a part of them or with none, and may have to load them. The network between
// a client and a master delays, holds back, loses and repeats messages, in each direction by itself. A client that
// closes a connection resets it: what the master's kernel has not got by then is discarded, but what waits in the
// socket of a frozen master stays there and is served when it goes on. Clients have clocks of their own too, can be
// paused between any two steps, or suspended with their machine, and can die. Masters may also refuse whatever is asked, or only what needs memory, and
// connections may have to be dialled first; whether a batch's connection was set up before it was sent is package single's
// own, and tested there.
package sim
