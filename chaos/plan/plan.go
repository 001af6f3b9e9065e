// Package plan describes a run: the workload, and which faults occur, on which targets, and when. A plan is data. It
// comes from a named [Scenario] and a seed, and is always the same for the same seed, or from a YAML file, see [Parse].
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Duration is a time.Duration that is written "1.5s".
type Duration time.Duration

// MarshalText writes it as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// defaultMasters is the number of masters if none is given.
const defaultMasters = 5

// Plan describes a run.
type Plan struct {
	// Scenario is its name.
	Scenario string `yaml:"name" json:"scenario"`
	// Text gives the plan's purpose in a sentence.
	Text string `yaml:"text" json:"text"`
	// Inside says that all faults are within the lock's assumptions: then two holders at a time are
	// a failure. Token order and the continuity of extensions are promised in any case.
	Inside bool `yaml:"inside" json:"inside"`
	// Seed is the seed that the plan was drawn from, and the seed of the workload. 0 in a file
	// means that the caller chooses.
	Seed uint64 `yaml:"seed" json:"seed"`
	// Workload names a profile; "hot-key" when empty.
	Workload string `yaml:"workload" json:"workload"`
	// TTL and Hold replace the profile's values when they are not 0.
	TTL  Duration `yaml:"ttl" json:"ttl,omitempty"`
	Hold Duration `yaml:"hold" json:"hold,omitempty"`
	// Masters and Clients are how many there are; 5 each when 0.
	Masters int `yaml:"masters" json:"masters"`
	Clients int `yaml:"clients" json:"clients"`
	// Members are the masters that clients begin with; empty: all masters. Steps of [Reconfigure]
	// give clients other masters.
	Members []int `yaml:"members,flow,omitempty" json:"members,omitempty"`
	// AOF requires servers that keep all acknowledged writes across a crash.
	AOF bool `yaml:"aof" json:"aof"`
	// TLS asks for servers that speak TLS, with certificates of the run's own.
	TLS bool `yaml:"tls" json:"tls,omitempty"`
	// Duration is how long the workload runs; the last fault ends before.
	Duration Duration `yaml:"duration" json:"duration"`
	// Defining are the plan's essential faults: unless one of these came on, the run shows nothing.
	// Default: all faults that its steps name.
	Defining []string `yaml:"defining,flow,omitempty" json:"defining,omitempty"`
	// Steps are in the order of their times.
	Steps []Step `yaml:"steps" json:"steps"`
	// Own are the caller's faults. Steps can name them in addition to [Faults].
	Own []Fault `yaml:"-" json:"-"`
}

// Step is one fault.
type Step struct {
	// At is when it comes on, For how long it stays, both from the start of the run.
	At  Duration `yaml:"at" json:"at"`
	For Duration `yaml:"for" json:"for,omitempty"`
	// Fault is its name, see [Faults].
	Fault string `yaml:"fault" json:"fault"`
	// Masters and Clients are the targets, counted from 0; empty: all.
	Masters []int `yaml:"masters,flow" json:"masters,omitempty"`
	Clients []int `yaml:"clients,flow" json:"clients,omitempty"`
	// Direction is "both", "requests" or "replies" (network faults).
	Direction string `yaml:"direction" json:"direction,omitempty"`
	// Delay and Jitter are a latency's, Delay also a slow close's, a slicer's and a timeout's.
	Delay  Duration `yaml:"delay" json:"delay,omitempty"`
	Jitter Duration `yaml:"jitter" json:"jitter,omitempty"`
	// Rate is kilobytes a second (bandwidth) or the rate of a clock (clock-rate, 1 is right).
	Rate float64 `yaml:"rate" json:"rate,omitempty"`
	// Bytes are a slicer's and a data limit's.
	Bytes int64 `yaml:"bytes" json:"bytes,omitempty"`
	// Step is by how much a clock jumps (clock-step).
	Step Duration `yaml:"step" json:"step,omitempty"`
	// Period is how long a flapping path stays in one state.
	Period Duration `yaml:"period" json:"period,omitempty"`
	// Sets are the masters that clients have from then on (reconfigure): one set, or the old one and the new one while
	// the one takes the other's place.
	Sets [][]int `yaml:"sets,flow,omitempty" json:"sets,omitempty"`
}

// String is the step in a line.
func (s Step) String() string {
	text := fmt.Sprintf("%s at %v for %v", s.Fault, time.Duration(s.At), time.Duration(s.For))
	if len(s.Masters) > 0 {
		text += fmt.Sprintf(" on masters %v", s.Masters)
	}
	if len(s.Clients) > 0 {
		text += fmt.Sprintf(" on clients %v", s.Clients)
	}
	if len(s.Sets) > 0 {
		text += ": from then on " + setsInWords(s.Sets)
	}
	return text
}

// Profile is the plan's workload.
func (p *Plan) Profile() (workload.Profile, error) {
	profile, err := workload.FindProfile(p.Workload)
	if err != nil {
		return profile, err
	}
	if p.TTL > 0 {
		profile.TTL = time.Duration(p.TTL)
	}
	if p.Hold > 0 {
		profile.Hold = workload.Span{Min: time.Duration(p.Hold), Max: time.Duration(p.Hold)}
	}
	return profile, nil
}

// FaultNames lists the faults of the plan, each once, in order of first use.
func (p *Plan) FaultNames() []string {
	var names []string
	for _, s := range p.Steps {
		if !slices.Contains(names, s.Fault) {
			names = append(names, s.Fault)
		}
	}
	return names
}

// About lists the essential faults: at least one has to come on.
func (p *Plan) About() []string {
	if len(p.Defining) > 0 {
		return p.Defining
	}
	return p.FaultNames()
}

// fieldError is an error in one field, for Parse to say where it is.
type fieldError struct {
	path string // as YAML paths are written: $.steps[2].fault
	err  error
}

func (e *fieldError) Error() string { return e.path[2:] + ": " + e.err.Error() }

func (e *fieldError) Unwrap() error { return e.err }

func wrong(path, format string, args ...any) error {
	return &fieldError{path: path, err: fmt.Errorf(format, args...)}
}

// Complete fills in missing fields and checks the others. Errors name the field.
func (p *Plan) Complete() error {
	p.Workload, p.Duration = cmp.Or(p.Workload, "hot-key"), cmp.Or(p.Duration, Duration(20*time.Second))
	p.Masters, p.Clients = cmp.Or(p.Masters, defaultMasters), cmp.Or(p.Clients, 5)
	if p.Scenario == "" {
		return wrong("$.name", "a plan needs a name")
	}
	if err := checkOwn(p.Own); err != nil {
		return err
	}
	if _, err := p.Profile(); err != nil {
		return wrong("$.workload", "%w", err)
	}
	switch {
	case p.Masters < 1 || p.Masters > 64:
		return wrong("$.masters", "%d masters, want 1 to 64", p.Masters)
	case p.Clients < 1 || p.Clients > 64:
		return wrong("$.clients", "%d clients, want 1 to 64", p.Clients)
	case p.Duration < Duration(100*time.Millisecond):
		return wrong("$.duration", "%v is too short, want at least 100ms", time.Duration(p.Duration))
	}
	for i := range p.Steps {
		if err := p.checkStep(i); err != nil {
			return err
		}
	}
	for i, name := range p.Defining {
		if _, err := p.FindFault(name); err != nil {
			return wrong(fmt.Sprintf("$.defining[%d]", i), "%w", err)
		}
	}
	if err := p.checkMembers(); err != nil {
		return err
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return nil
}

func (p *Plan) checkStep(i int) error {
	s := &p.Steps[i]
	at := func(field string) string { return fmt.Sprintf("$.steps[%d].%s", i, field) }
	f, err := p.FindFault(s.Fault)
	switch {
	case err != nil:
		return wrong(at("fault"), "%w", err)
	case s.At < 0 || s.At >= p.Duration:
		return wrong(at("at"), "%v is not within the run, which lasts %v", time.Duration(s.At),
			time.Duration(p.Duration))
	case s.For < 0 || s.At+s.For > p.Duration:
		return wrong(at("for"), "it ends after %v, and the run after %v", time.Duration(s.At+s.For),
			time.Duration(p.Duration))
	case !slices.Contains([]string{"", "both", "requests", "replies"}, s.Direction):
		return wrong(at("direction"), "%q is none of both, requests, replies", s.Direction)
	}
	for n, m := range s.Masters {
		if m < 0 || m >= p.Masters {
			return wrong(fmt.Sprintf("%s[%d]", at("masters"), n), "no master %d, there are %d", m, p.Masters)
		}
	}
	for n, c := range s.Clients {
		if c < 0 || c >= p.Clients {
			return wrong(fmt.Sprintf("%s[%d]", at("clients"), n), "no client %d, there are %d", c, p.Clients)
		}
	}
	if s.For == 0 && f.Lasts {
		s.For = min(Duration(time.Second), p.Duration-s.At)
	}
	if p.Inside && f.Outside {
		return wrong(at("fault"), "%s is outside what a lock assumes; the scenario says inside: true", s.Fault)
	}
	if f.Check == nil {
		return nil
	}
	err = f.Check(s)
	if bad, ok := errors.AsType[*masters.ParamError](err); ok {
		return wrong(at(bad.Field), "%s", bad.Text)
	}
	if err != nil {
		return wrong(at("fault"), "%s: %w", s.Fault, err)
	}
	return nil
}

// ErrUnknownFault is matched when a plan names a fault that there is not.
var ErrUnknownFault = errors.New("plan: no such fault")
