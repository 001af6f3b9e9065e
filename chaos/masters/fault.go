package masters

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Fault describes an action. An action that needs only commands, or only the server's process or
// files, has its own source file with its name, its facts and its code, and [Faults] lists it. The
// backends perform the other actions, each in its own way.
type Fault struct {
	Action Action
	// Text describes the action in a few words.
	Text string
	// Needs lists the features that the action needs from a backend.
	Needs Needs
	// Lasts reports whether the fault stays on until it is healed.
	Lasts bool
	// Outside reports that the action breaks the assumptions of a lock with any numbers.
	Outside bool
	// Leaves is the service that the master still gives during the fault.
	Leaves Service
	// Forgets reports that keys may vanish before they expire.
	Forgets bool
	// Check checks the numbers; a nil Check needs none. An error is a *ParamError.
	Check func(Params) error

	// act does it by commands, process to a server that this run has started.
	act     func(context.Context, *commands, Params) (Injection, error)
	process func(context.Context, *process, Params) (Injection, error)
}

// Service is the service that a master with a fault still gives.
type Service uint8

// The services.
const (
	// NoService: every request may fail.
	NoService Service = iota
	// HoldsOnly: held locks can be extended and released; an acquisition may fail.
	HoldsOnly
	// FullService: all goes on, at most after a request that failed.
	FullService
)

// Needs is a set of features of a backend.
type Needs uint8

// The features that an action may need.
const (
	// Server: a redis-server or valkey-server, with working CONFIG, ACL and CLIENT commands.
	Server Needs = 1 << iota
	// Consent: data is destroyed or settings are changed, which the owner of the server has to allow.
	Consent
	// Process: the server's process can be stopped, killed and started.
	Process
	// Arguments: it can be started with other arguments.
	Arguments
	// Clock: the server's clock can be changed without this machine's.
	Clock
	// Packets: the server has an individual network connection that can be unplugged.
	Packets
	// AppendOnly: the server has an append-only file, which this run can write to.
	AppendOnly
	// Secure: the server speaks TLS, with a certificate that this run can replace.
	Secure
)

var needNames = []string{
	"a real server", "leave to destroy data and change settings", "a process that this run may stop and kill",
	"a process that this run starts itself", "a clock of the server's own (the process backend's shim)",
	"a network of the server's own (containers)", "an append-only file (-aof)", "TLS with a certificate of the run's " +
		"own (-tls)",
}

// String lists the features in the set.
func (n Needs) String() string {
	var names []string
	for i, name := range needNames {
		if n&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// ParamError says which number of a fault is wrong.
type ParamError struct {
	// Field is its name in a plan, such as "step" or "rate".
	Field string
	Text  string
}

// Error implements error.
func (e *ParamError) Error() string { return e.Field + ": " + e.Text }

// Faults lists all actions with their facts.
func Faults() []Fault {
	return []Fault{
		{Action: Pause, Text: "the server stands still (SIGSTOP)", Needs: Process, Lasts: true},
		{
			Action: Kill, Text: "the server is killed and restarted with the data it has on disk", Needs: Process,
			Lasts: true, Forgets: true,
		},
		{
			Action: KillEmpty, Text: "the server is killed and restarted without data", Needs: Process, Lasts: true,
			Outside: true, Forgets: true,
		},
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
		{
			Action: Disconnect, Text: "the server is off the network, its connections stay (containers)",
			Needs: Packets,
			Lasts: true,
		},
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

// FindFault returns the facts of an action. The error matches ErrUnavailable.
func FindFault(action Action) (Fault, error) {
	for _, f := range Faults() {
		if f.Action == action {
			return f, nil
		}
	}
	return Fault{}, unavailable("there is no %s", action)
}

// Has returns nil if a backend with these features can perform the action. Otherwise the error
// matches ErrUnavailable and names the missing features.
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

// errAsUsual is an action's that was done and has no effect. Its settings may have been lost in a restart by another
// fault.
var errAsUsual = errors.New("was answered as usual")

// answered returns the error of an action that did not show its effect in the answer.
func answered(what string, answer error) error {
	if answer == nil {
		return fmt.Errorf("%s %w", what, errAsUsual)
	}
	return fmt.Errorf("%s was answered %w", what, answer)
}
