package cli

import (
	"maps"
	"slices"
)

// user is somebody that uses masters: a place that connections come from, or an identity that holds locks.
type user struct {
	Who         string         `json:"who"`
	Connections int            `json:"connections,omitempty"`
	Locks       int            `json:"locks,omitempty"` // on all masters together
	Masters     map[string]int `json:"masters"`         // on how many of each set
	on          map[int]bool
}

// users are all of them, sorted.
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

// apart are the masters of a set that answer and are not in the other one: by them it shows who uses the set.
func (s *membership) apart(set, other int) []int {
	return slices.DeleteFunc(slices.Clone(s.fleet.sets[set].at), func(i int) bool {
		return !s.answers(i) || slices.Contains(s.fleet.sets[other].at, i)
	})
}

// onlyIn are those that use one set of two and not the other one: they are on a master that the one has for itself, or on a quorum of
// it, and on none that the other one has for itself. If none of these would show them, nobody is told from those that use both.
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

// shows reports that this user would be seen on a master if it used it: a master may not tell its clients, or have more keys than are looked at.
func (m *member) shows(u *user) bool {
	if u.Connections > 0 {
		return m.clients != nil
	}
	return !m.partly
}
