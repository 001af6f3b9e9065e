package masters

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Fault is what is known of an action. One that commands bring about is whole: a file of its own has the action's name, its
// facts and how it is done, and [Faults] lists it; so is one that is done to a server's process or files. The others are done by the
// backends, each in its own way.
type Fault struct {
	Action Action
	// Text says in a few words what it does.
	Text string
	// Needs is what a backend must have for it.
	Needs Needs
	// Lasts tells whether it stays on until it is healed.
	Lasts bool
	// Outside tells that it breaks what a lock assumes, whatever its numbers.
	Outside bool
	// Leaves says what the master can still be counted on for while it is on.
	Leaves Service
	// Forgets tells that keys may vanish which were to live on.
	Forgets bool
	// Check fills in and checks the numbers; a nil Check needs none. An error is a *ParamError.
	Check func(*Params) error

	// act does it by commands, process to a server that this run has started.
	act     func(context.Context, *commands, Params) (Injection, error)
	process func(context.Context, *process, Params) (Injection, error)
}

// Service is what a master with a fault can be counted on for.
type Service uint8

// The services.
const (
	// NoService: nothing that is asked of it need succeed.
	NoService Service = iota
	// HoldsOnly: what is held can be extended and released; an acquisition need not succeed.
	HoldsOnly
	// FullService: all goes on, at most after a request that failed.
	FullService
)

// Needs is a set of what a backend must have.
type Needs uint8

// What an action may need.
const (
	// Server: a redis-server or valkey-server, whose CONFIG, ACL and CLIENT commands do what theirs do.
	Server Needs = 1 << iota
	// Consent: data is destroyed or settings are changed, which the owner of the server has to allow.
	Consent
	// Process: the server's process can be stopped, killed and started.
	Process
	// Arguments: it can be started with other arguments.
	Arguments
	// Clock: the server has a clock of its own.
	Clock
	// Packets: the server has a network of its own, which it can be taken off.
	Packets
	// AppendOnly: the server has an append-only file, which this run can write to.
	AppendOnly
	// Secure: the server speaks TLS, with a certificate that this run can replace.
	Secure
)

var needNames = []string{
	"a real server", "leave to destroy data and change settings", "a process that this run may stop and kill",
	"a process that this run starts itself", "a clock of the server's own (the process backend's shim)",
	"a network of the server's own (containers)", "an append-only file (-aof)", "TLS with a certificate of the run's own (-tls)",
}

// String lists what is in the set.
func (n Needs) String() string {
	var names []string
	for i, name := range needNames {
		if n&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// ParamError says which number of an action is wrong.
type ParamError struct {
	// Field is "step", "rate" or "for".
	Field string
	Text  string
}

// Error implements error.
func (e *ParamError) Error() string { return e.Field + ": " + e.Text }

// Faults lists all actions with what is known of them.
func Faults() []Fault {
	return []Fault{
		{Action: Pause, Text: "the server stands still (SIGSTOP)", Needs: Process, Lasts: true},
		{Action: Kill, Text: "the server is killed and restarted with the data it has on disk", Needs: Process, Lasts: true, Forgets: true},
		{Action: KillEmpty, Text: "the server is killed and restarted without data", Needs: Process, Lasts: true, Outside: true, Forgets: true},
		loading,
		clientKill,
		flushAll,
		scriptFlush,
		evict,
		full,
		misconf,
		readOnly,
		credentials,
		rights,
		expiredCertificate,
		busy,
		maxClients,
		pauseWrites,
		closeIdle,
		loseFsync,
		failover,
		{Action: Disconnect, Text: "the server is off the network, its connections stay (containers)", Needs: Packets, Lasts: true},
		clockStep,
		clockRate,
	}
}

// Actions lists all actions.
func Actions() []Action {
	all := Faults()
	out := make([]Action, len(all))
	for i := range all {
		out[i] = all[i].Action
	}
	return out
}

// FindFault returns what is known of an action. The error matches ErrUnavailable.
func FindFault(action Action) (Fault, error) {
	for _, f := range Faults() {
		if f.Action == action {
			return f, nil
		}
	}
	return Fault{}, unavailable("there is no %s", action)
}

// Has returns nil if a backend that has these things can do the action, or an error that matches ErrUnavailable and says
// what it lacks.
func (n Needs) Has(action Action) error {
	f, err := FindFault(action)
	if err != nil {
		return err
	}
	if lacks := f.Needs &^ n; lacks != 0 {
		return unavailable("%s needs %s", action, lacks)
	}
	return nil
}

func seen(heal func(context.Context) error, format string, args ...any) Injection {
	return Injection{Observed: fmt.Sprintf(format, args...), Heal: once(heal)}
}

// errAsUsual is an action's that was done and has no effect. Its settings may have been lost in a restart by another fault.
var errAsUsual = errors.New("was answered as usual")

// answered is the error of an action whose effect was not seen.
func answered(what string, answer error) error {
	if answer == nil {
		return fmt.Errorf("%s %w", what, errAsUsual)
	}
	return fmt.Errorf("%s was answered %w", what, answer)
}
