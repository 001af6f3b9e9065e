// Package sim runs the real engine over simulated masters and a simulated network in virtual time. Minutes of a
// cluster's life take a millisecond. A failure is replayed from its seed and shrunk to a few steps.
//
// A [Schedule] is data: the clients with their sessions, the clocks, the network and the faults. [Generate] draws one
// from a seed. [Run] performs it, and returns the history and the oracles' findings. [Shrink] looks for a smaller
// schedule that fails in the same way, and [Timeline] draws it.
//
// # Determinism
//
// A run is a bubble of testing/synctest. One goroutine, the scheduler, owns all events: messages, timers (the engine's
// clock is [redlock.Options].Clock) and steps of clients. It gives each event its own nanosecond, and waits until the
// engine's goroutines are idle before the next. So goroutines run concurrently only if one event woke them, and their
// requests to the world are sorted before they are answered. Every random value is a hash of the schedule's seed and of
// the decision's name. No stream is shared, so the order of decisions does not matter. Owner values come from the
// engine's own random source; the history calls them o1, o2, … in the order of their appearance.
//
// # What is simulated
//
// Masters execute the Lua scripts of package single through package internal/store, which a differential test compares
// with a real redis-server. Each master has its own clock (rate and offset). It can freeze, or crash and restart with
// all, some or none of its data, and it may need time to load the data. The network between a client and a master
// delays, holds back, loses and repeats messages, independently in each direction. A client that closes a connection
// resets it: data that the master's kernel has not received yet are discarded. Data in the socket of a frozen master
// stay there and are served when the master resumes. Clients too have their own clocks. A client can be paused between
// any two steps, suspended with its machine, or killed. A master may refuse every command, or only those that need
// memory. Connections may need dialling first. The simulator does not check that a connection was set up before its
// batch was sent: package single does that, and tests it.
package sim
