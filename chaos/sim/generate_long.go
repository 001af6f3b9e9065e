package sim

import "time"

// margin draws a long grace. For a renewed hold it also draws extensions by its holder.
func (a *generator) margin(s *Session) {
	s.TTL = max(s.TTL, 100*time.Millisecond)
	s.Grace = a.upTo("grace", s.TTL/2)
	if s.Renew {
		for range a.number("extends beside", 0, 3) { // each about when a renewal is due
			s.Extends = append(s.Extends,
				Extend{After: a.near("after a renewal", s.TTL/3), TTL: a.varied("extend ttl")})
		}
		return
	}
	for i := range s.Extends { // about when Done closes
		s.Extends[i].After = max(0, a.near("before done", s.TTL)-s.Grace)
	}
}

// lasts draws a hold of hundreds of ttls, or a long time without one.
func (a *generator) lasts(s *Session) {
	s.Idle = a.upTo("idle for long", 40*a.ttl)
	if s.Renew && a.one(2, "holds for long") {
		s.Hold = 100*a.ttl + a.upTo("hold for long", 200*a.ttl)
	}
}
