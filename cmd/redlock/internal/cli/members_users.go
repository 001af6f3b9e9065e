package cli

import (
	"maps"
	"slices"
)

// user is a user of masters: a source of connections, or an identity that holds locks.
type user struct {
	Who         string         `json:"who"`
	Connections int            `json:"connections,omitempty"`
	Locks       int            `json:"locks,omitempty"` // on all masters together
	Masters     map[string]int `json:"masters"`         // on how many of each set
	on          map[int]bool
	times       int // in how many looks it was a suspect
}

func (s *membership) users() []*user {
	byName := make(map[string]*user)
	at := func(who string, i int) *user {
		if byName[who] == nil {
			byName[who] = &user{Who: who, Masters: make(map[string]int), on: make(map[int]bool)}
		}
		byName[who].on[i] = true
		return byName[who]
	}
	for i := range s.members {
		for who, n := range s.members[i].clients {
			at(who, i).Connections += n
		}
		for who, n := range s.members[i].owners {
			at(who, i).Locks += n
		}
	}
	var all []*user
	for _, who := range slices.Sorted(maps.Keys(byName)) {
		u := byName[who]
		for _, set := range s.fleet.sets {
			u.Masters[set.name] = set.count(func(i int) bool { return u.on[i] })
		}
		all = append(all, u)
	}
	return all
}

// apart returns the masters of a set that answer and are not in the other set. Their users show who uses the set.
func (s *membership) apart(set, other int) []int {
	return slices.DeleteFunc(slices.Clone(s.fleet.sets[set].at), func(i int) bool {
		return !s.answers(i) || slices.Contains(s.fleet.sets[other].at, i)
	})
}

// onlyIn returns the users of one set that do not use the other set. Such a user is on a master that only this set has,
// or on a quorum of this set. It is on no master that only the other set has. If none of those masters would show the
// user, onlyIn can't tell and leaves the user out.
func (s *membership) onlyIn(set, other int) []*user {
	mine, others := s.apart(set, other), s.apart(other, set)
	var found []*user
	for _, u := range s.users() {
		on := func(i int) bool { return u.on[i] }
		uses := slices.ContainsFunc(mine, on) || s.fleet.sets[set].count(on) >= s.fleet.sets[set].quorum()
		shown := slices.ContainsFunc(others, func(i int) bool { return s.members[i].shows(u) })
		if uses && shown && !slices.ContainsFunc(others, on) {
			found = append(found, u)
		}
	}
	return found
}

// shows reports whether a user of a master would be seen on it. It may not be: a master may not list its clients, or
// may have more keys than the command reads.
func (m *member) shows(u *user) bool {
	if u.Connections > 0 {
		return m.clients != nil
	}
	return !m.partly
}
