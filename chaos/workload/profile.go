package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Span is a range of durations; a value is drawn from it each time.
type Span struct{ Min, Max time.Duration }

// Profile is how workers use the lock.
type Profile struct {
	Name string `json:"name"`
	// Text describes the profile in a sentence.
	Text string `json:"text"`
	// Keys is over how many keys the workers spread.
	Keys int `json:"keys"`
	// Kind of hold; with Readers above zero that share of the holds is Shared and the others Exclusive.
	Kind    history.Kind `json:"kind"`
	Readers float64      `json:"readers,omitempty"`
	TTL     time.Duration
	// Hold is how long a holder keeps it, Think how long a worker sleeps between two attempts.
	Hold, Think Span
	// Wait is how long an acquisition waits; 0 for one attempt.
	Wait time.Duration
	// Renew asks the library to renew; Extend is the share of holds that the worker extends itself, once.
	Renew  bool    `json:"renew,omitempty"`
	Extend float64 `json:"extend,omitempty"`
	// Quiet: no other worker wants the keys.
	Quiet bool `json:"quiet,omitempty"`
	// Cancel is the share of attempts that are cancelled in the middle, through their context.
	Cancel float64 `json:"cancel,omitempty"`
	// Register: holders read, think and write a register that checks tokens and one that does not.
	Register bool `json:"register,omitempty"`
	// Late: workers write when the time of the hold is over, without checking its bound again, as a program does that
	// checked and was then stopped. Only a resource that checks tokens is safe from such a write.
	Late bool `json:"late,omitempty"`
	// ToBound: a hold lasts until its bound, without a margin that the library leaves before it.
	ToBound bool `json:"to_bound,omitempty"`
	// Nested is how many more holds of the same owner a holder takes (reentrant).
	Nested int `json:"nested,omitempty"`
	// Workers is how many workers each client has. Default 2.
	Workers int `json:"workers,omitempty"`
	// Children is how many clients run in separate processes, which faults stop and kill.
	Children int `json:"children,omitempty"`
	// Together is how many keys a lock has, all or none; 1 when 0.
	Together int `json:"together,omitempty"`
	// First and Some narrow the keys that a worker uses: so many from that one on; all when Some is 0.
	First int `json:"first,omitempty"`
	Some  int `json:"some,omitempty"`
	// Rounds: after the workers have ended, each client takes locks without rivals in equal rounds, and the harness
	// counts the goroutines, the heap and the connections after each.
	Rounds bool `json:"rounds,omitempty"`
	// Parts are what workers do that do not all do the same: the workers of each client take them in turns.
	Parts []Part `json:"parts,omitempty"`
}

// Part is the work of one worker of several; a field that is not set has the profile's value.
type Part struct {
	Kind     history.Kind `json:"kind,omitempty"`
	Together int          `json:"together,omitempty"`
	First    int          `json:"first,omitempty"`
	Some     int          `json:"some,omitempty"`
	Nested   int          `json:"nested,omitempty"`
	Renew    bool         `json:"renew,omitempty"`
	Hold     Span         `json:"hold"`
}

// Of returns the work of a client's n-th worker.
func (p Profile) Of(n int) Profile {
	if len(p.Parts) == 0 {
		return p
	}
	part := p.Parts[n%len(p.Parts)]
	p.Parts = nil
	p.Kind, p.Together, p.First, p.Some = part.Kind, part.Together, part.First, part.Some
	p.Nested, p.Renew = part.Nested, part.Renew
	if part.Hold.Max > 0 {
		p.Hold = part.Hold
	}
	return p
}

const ms = time.Millisecond

// Profiles returns the profiles there are.
func Profiles() []Profile {
	return []Profile{
		{
			Name: "hot-key", Text: "Everybody wants one key and holds it for some milliseconds.",
			Keys: 1, TTL: 2 * time.Second, Hold: Span{ms, 15 * ms}, Think: Span{0, 20 * ms}, Wait: 20 * time.Second,
			Cancel: 0.05,
		},
		{
			Name: "many-keys", Text: "Keys are plenty and seldom contended; each attempt is made once.",
			Keys: 64, TTL: 2 * time.Second, Hold: Span{ms, 30 * ms}, Think: Span{ms, 20 * ms}, Extend: 0.1,
		},
		{
			Name: "long-holds", Text: "Holds that outlive their ttl several times by renewal.",
			Keys: 3, TTL: 1500 * ms, Hold: Span{2 * time.Second, 5 * time.Second}, Think: Span{0, 50 * ms},
			Wait: 30 * time.Second, Renew: true,
		},
		{
			Name: "short-holds", Text: "Holds that are given back at once, with contexts cancelled in the middle.",
			Keys: 4, TTL: time.Second, Hold: Span{0, ms}, Think: Span{0, 5 * ms}, Wait: 20 * time.Second, Cancel: 0.15,
		},
		{
			Name: "shared", Text: "Many readers and some writers of two keys.",
			Keys: 2, Kind: history.Exclusive, Readers: 0.8, TTL: 2 * time.Second, Hold: Span{ms, 20 * ms},
			Think: Span{0, 20 * ms}, Wait: 20 * time.Second,
		},
		{
			Name: "permits", Text: "Permits of one semaphore: shared holds and no others, for a subject that has a " +
				"semaphore under each key.",
			Keys: 1, Kind: history.Shared, Readers: 1, TTL: 2 * time.Second, Hold: Span{ms, 30 * ms},
			Think: Span{0, 20 * ms}, Wait: 20 * time.Second, Extend: 0.1, Cancel: 0.05,
		},
		{
			Name: "renewed-permits", Text: "Permits of one semaphore that outlive their ttl several times by renewal.",
			Keys: 1, Kind: history.Shared, Readers: 1, TTL: time.Second, Hold: Span{time.Second, 3 * time.Second},
			Think: Span{0, 20 * ms}, Wait: 20 * time.Second, Renew: true,
		},
		{
			Name: "reentrant", Text: "Owners that take the same key again while they hold it.",
			Keys: 2, Kind: history.Reentrant, Nested: 2, TTL: 2 * time.Second, Hold: Span{ms, 10 * ms},
			Think: Span{0, 20 * ms}, Wait: 20 * time.Second,
		},
		{
			Name: "register", Text: "Read-modify-writes under the lock, on a resource that checks tokens and one " +
				"that doesn't.",
			Keys: 2, Kind: history.Fenced, TTL: 2 * time.Second, Hold: Span{ms, 15 * ms}, Think: Span{0, 20 * ms},
			Wait: 20 * time.Second, Register: true, Cancel: 0.05,
		},
		{
			Name: "contended-extends", Text: "Holders extend their holds themselves, without a look at the bound, " +
				"while others wait.",
			Keys: 8, TTL: 500 * ms, Hold: Span{100 * ms, 300 * ms}, Think: Span{100 * ms, 400 * ms},
			Wait:   30 * time.Second,
			Extend: 1,
		},
		{
			// Hold bounds how much happens: a key changes hands inside a process hundreds of thousands of times a
			// second.
			Name: "handoff", Text: "Many waiters for one key that is given back after a moment.",
			Keys: 1, TTL: 2 * time.Second, Hold: Span{0, ms}, Wait: 30 * time.Second, Workers: 5,
		},
		{
			Name: "crowd", Text: "Many goroutines of each client try for some keys, again and again, so that their " +
				"requests share connections.",
			Keys: 6, TTL: 10 * time.Second, Hold: Span{0, 5 * ms}, Think: Span{0, 5 * ms}, Workers: 6,
		},
		{
			Name: "to-the-bound", Text: "Some keys are kept to the very bound, while others try for them again and " +
				"again without waiting to be told.",
			Keys: 4, TTL: 2 * time.Second, Hold: Span{4 * time.Second, 4 * time.Second}, Think: Span{0, 8 * ms},
			Workers: 3, ToBound: true,
		},
		{
			Name: "mixed", Text: "In one process some want one key, some several at once, some enter again what they " +
				"hold, and some keep a key by renewal.",
			Keys: 5, TTL: time.Second, Hold: Span{ms, 10 * ms}, Think: Span{0, 10 * ms}, Wait: 60 * time.Second,
			Workers: 12,
			Parts: []Part{
				{Some: 3},
				{Some: 3, Together: 2},
				{First: 3, Some: 2, Kind: history.Reentrant, Nested: 2},
				{First: 2, Some: 1, Renew: true, Hold: Span{5 * time.Second, 7 * time.Second}},
				{Some: 3, Together: 3},
				{Some: 3},
				{Some: 3, Together: 2},
				{First: 3, Some: 2, Kind: history.Reentrant, Nested: 1},
				{Some: 1, Renew: true, Hold: Span{5 * time.Second, 7 * time.Second}},
				{Some: 3, Together: 2, Renew: true},
				{First: 1, Some: 2},
				{First: 3, Some: 2, Kind: history.Reentrant, Renew: true, Hold: Span{time.Second, 2 * time.Second}},
			},
		},
		{
			Name: "takeover", Text: "Read-modify-writes under two keys that all want, and two more that are kept by " +
				"renewal, each for longer than its ttl or so, and waited for.",
			Keys: 4, Kind: history.Fenced, TTL: 2 * time.Second, Hold: Span{ms, 15 * ms}, Think: Span{0, 20 * ms},
			Wait: 60 * time.Second, Register: true, Extend: 0.1, Workers: 3,
			Parts: []Part{
				{Some: 2, Kind: history.Fenced},
				{Some: 2, Kind: history.Fenced},
				{First: 2, Some: 2, Kind: history.Fenced, Renew: true, Hold: Span{time.Second, 2500 * ms}},
			},
		},
		{
			Name: "rounds", Text: "Some keys that are given back soon, and at the end equal rounds of holds without " +
				"rivals, after each of which goroutines, heap and connections are counted.",
			Keys: 5, TTL: time.Second, Hold: Span{0, 5 * ms}, Think: Span{0, 20 * ms}, Wait: 20 * time.Second,
			Rounds: true,
		},
		{
			Name: "children", Text: "One hot key, and some of the clients are processes that are stopped and killed.",
			Keys: 1, TTL: time.Second, Hold: Span{ms, 30 * ms}, Think: Span{0, 30 * ms}, Wait: 20 * time.Second,
			Children: 2,
		},
		{
			Name: "writers", Text: "Read-modify-writes by clients some of which are processes, and whose writes come " +
				"without another look at the bound.",
			Keys: 1, Kind: history.Fenced, TTL: time.Second, Hold: Span{50 * ms, 200 * ms}, Think: Span{0, 30 * ms},
			Wait: 20 * time.Second, Children: 2, Register: true, Late: true,
		},
	}
}

// FindProfile returns the profile of that name.
func FindProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return Profile{}, fmt.Errorf("workload: no workload %q; there are %v", name, names)
}

// KeyNames are the keys that workers use, on the masters.
func (p Profile) KeyNames() []string {
	names := make([]string, max(1, p.Keys))
	for i := range names {
		names[i] = fmt.Sprintf("redlock-chaos:%s:%d", p.Name, i)
	}
	return names
}

// keys are the names of the keys that this worker uses.
func (p Profile) keys() []string {
	names := p.KeyNames()
	if p.Some > 0 {
		names = names[p.First : p.First+p.Some]
	}
	return names
}

// Renews reports whether the library has to renew some of the holds.
func (p Profile) Renews() bool {
	return p.Renew || slices.ContainsFunc(p.Parts, func(part Part) bool { return part.Renew })
}

// Check returns an error if the subject lacks a feature that the profile needs. Without tokens,
// Fenced falls back to plain holds, with only the unchecked register. If holders write late, Check
// returns an error instead, because only tokens protect the register then.
func (p Profile) Check(s Subject) error {
	kinds := []history.Kind{p.Kind}
	if p.Readers > 0 {
		kinds = append(kinds, history.Shared)
	}
	together := p.Together > 1
	for _, part := range p.Parts {
		kinds = append(kinds, part.Kind)
		together = together || part.Together > 1
	}
	if several, ok := s.(Several); together && (!ok || several.SupportsSeveral() != nil) {
		return fmt.Errorf("workload %s: %w: %s has no locks over several keys", p.Name, ErrUnsupported, s.Name())
	}
	if _, renews := s.(Renewer); !renews && p.Renews() {
		return fmt.Errorf("workload %s: %w: %s does not renew holds", p.Name, ErrUnsupported, s.Name())
	}
	if _, processes := s.(Settable); processes && p.Children > 0 {
		return fmt.Errorf("workload %s: %w: clients of %s are processes already, and can't be those of the harness",
			p.Name, ErrUnsupported, s.Name())
	}
	for _, kind := range kinds {
		if kind == history.Fenced && !p.Late {
			continue
		}
		if err := s.Supports(kind); err != nil {
			return fmt.Errorf("workload %s: %w", p.Name, err)
		}
	}
	return nil
}
