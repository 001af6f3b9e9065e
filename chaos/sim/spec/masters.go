package spec

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// master is one master's memory, by its own clock. It does not vote before guard. The slices never change.
type master struct {
	keys     map[string][]lease
	counters map[string]uint64
	guard    time.Duration
}

// lease is a hold of a key. It ends at until, give or take the rounding.
type lease struct {
	name
	kind  single.Kind
	until time.Duration
}

func (l lease) isPlain() bool { return l.kind == single.Plain }

const rounding = time.Millisecond

func (m *master) clone() master { return master{maps.Clone(m.keys), maps.Clone(m.counters), m.guard} }

func (s *Spec) save(x *Step) string {
	s.saves[x.Call] = s.masters[x.Master].clone()
	return ""
}

// forget makes a master wait until all that it has forgotten is over.
func (s *Spec) forget(x *Step) string {
	m, saved := &s.masters[x.Master], s.saves[x.Call]
	left, guard := saved.clone(), m.guard
	if left.keys == nil {
		left = master{keys: make(map[string][]lease), counters: make(map[string]uint64)}
	}
	for key, leases := range m.keys {
		for _, l := range leases {
			if !x.Unguarded && !slices.Contains(left.keys[key], l) {
				guard = max(guard, l.until)
			}
		}
	}
	*m = left
	m.guard = guard
	return ""
}

// found counts the keys of a request that are the owner's and another's, perhaps and for sure.
type found struct{ mine, surelyMine, others, surelyOthers int }

func (m *master) look(r *single.Request, now time.Duration) (f found) {
	for _, key := range r.Keys {
		for _, l := range m.keys[key] {
			maybe, surely := one(now < l.until+rounding), one(now < l.until-rounding)
			beside := l.owner == r.Owner || l.kind == single.Shared && r.Kind == single.Shared
			switch {
			case l.name == name{r.Owner, r.Hold}:
				f.mine, f.surelyMine = f.mine+maybe, f.surelyMine+surely
			case beside && r.Kind != single.Plain:
				f.others += maybe
			default:
				f.others, f.surelyOthers = f.others+maybe, f.surelyOthers+surely
			}
		}
	}
	return f
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// perform judges a master's reply, and its data behind it.
func (s *Spec) perform(x *Step) string {
	msg, m := &s.messages[x.Message], &s.masters[x.Master]
	if msg.hold == nil {
		return s.pass()
	}
	r, n, token := msg.request, len(msg.request.Keys), x.Reply.Token
	f, counter := m.look(r, x.At), m.counters[r.Keys[0]]
	yes, no, repaired := x.outcome()
	if !x.Again && (x.Part != Count || yes) {
		msg.reply, msg.replied = x.Reply, !x.Failed
	}
	set := (yes || repaired) && r.Op != single.Raise && x.Part != Count
	why := first(rule{set && r.Op != single.Release && x.At < m.guard-rounding, "the master may have forgotten a hold"})
	switch {
	case x.Failed, x.Part == SetNX && no: // nothing was done
	case x.Part == Count:
		why = first(rule{yes != (counter > 0 && counter < r.Token), "the number is above the counter, or is not"})
		if yes {
			counter, msg.reply.Token = r.Token, r.Token
		}
	case r.Op == single.Acquire:
		why = first(rule{why != "", why}, rule{yes && f.surelyOthers > 0, "a key is granted that is another's"},
			rule{no && f.others == 0 && !r.Polite && r.Kind != single.Shared, "a key is refused that is free"},
			rule{yes && r.Fence && x.Part == Script && token != max(counter+1, r.Token), "the token is wrong"})
		switch {
		case yes && r.Fence && x.Part == Script:
			counter = token + r.Spare
		case no && r.Fence && token > counter: // a refused request may raise it, too
			counter = min(token, max(counter, r.Token))
		}
	case r.Op == single.Extend:
		why = first(rule{why != "", why}, rule{yes && f.mine < n, "a key counts as the owner's that was not there"},
			rule{repaired && (!r.Repair || f.surelyOthers > 0 || f.surelyMine == n), "there is nothing to set again"},
			rule{no && f.surelyMine == n, "the keys are the owner's, and the reply says no"})
		counter = max(counter, r.Token*uint64(one(!no)))
	case r.Op == single.Release && r.Kind == single.Plain:
		why = first(rule{yes && f.mine == 0 || no && f.surelyMine == n, "the reply is not what the keys were"})
	case r.Op == single.Raise:
		allowed := f.mine == n && counter < r.Token
		denied := f.surelyMine < n || counter >= r.Token
		why = first(rule{yes && !allowed || no && !denied, "a raise has the wrong result"})
		counter = max(counter, (r.Token+r.Spare)*uint64(one(yes)))
	}
	if set || r.Op == single.Release && no {
		m.change(x, r)
	}
	return first(rule{why != "", why}, rule{m.differs(x, r, counter), "the data are not what the replies make them"})
}

// change updates the model after a reply. Nothing shortens a key's life.
func (m *master) change(x *Step, r *single.Request) {
	mine := lease{name{r.Owner, r.Hold}, r.Kind, x.At + r.TTL}
	for _, key := range r.Keys {
		left, mine := make([]lease, 0, 1), mine
		for _, l := range m.keys[key] {
			switch lives := x.At < l.until+rounding; {
			case lives && l.name == mine.name && x.Reply.Outcome != single.Repaired:
				mine.until = max(mine.until, l.until)
			case lives && l.name != mine.name && (r.Kind != single.Plain || r.Op == single.Release):
				left = append(left, l)
			}
		}
		if m.keys[key] = left; r.Op != single.Release {
			m.keys[key] = append(left, mine)
		}
	}
}

// differs compares the model with the master's data. A key that may have expired has expired if it is not there.
func (m *master) differs(x *Step, r *single.Request, counter uint64) bool {
	for i, key := range x.Keys {
		leases := m.keys[r.Keys[i]]
		at := slices.IndexFunc(leases, func(l lease) bool { return l.owner == key.Owner && l.kind == single.Plain })
		switch {
		case r.Token > 0 && key.Counter != counter:
			return true
		case key.Owner != "" && (at < 0 || (x.At+key.Left-leases[at].until).Abs() > rounding):
			return true
		case key.Owner != "":
		case slices.ContainsFunc(leases, lease.isPlain) && x.At < leases[0].until-rounding:
			return true
		default:
			m.keys[r.Keys[i]] = slices.DeleteFunc(slices.Clone(leases), lease.isPlain)
		}
	}
	if r.Token > 0 {
		m.counters[r.Keys[0]] = counter
	}
	return false
}
