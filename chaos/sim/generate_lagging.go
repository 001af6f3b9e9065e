package sim

import "time"

// lags draws quiet locks. One master answers late for a while, and others crash meanwhile. A majority always answers
// within the request timeout, so each attempt must succeed, although a slow master is spared at first. No key is used
// twice, because a master that comes back may still have it for a moment.
func (a *generator) lags(s *Schedule) {
	s.Net = Net{MinDelay: 20*time.Microsecond + a.upTo("min delay", 300*time.Microsecond)}
	s.Net.MaxDelay = s.Net.MinDelay + a.upTo("delay spread", 200*time.Microsecond)
	key := 0
	quiet := func() Session {
		key++
		return Session{Keys: []int{key}, TTL: a.ttl, Quiet: true, Kind: pick(a, "kind", a.kinds)}
	}
	for range a.number("clients", 1, 2) {
		c := Client{PPM: a.rate("client ppm", a.clientPPM)}
		for range a.number("tasks", 1, 2) {
			var task []Session
			for range 60 {
				once := quiet()
				once.Idle, once.Hold = a.upTo("idle", 10*time.Millisecond), a.upTo("hold", 5*time.Millisecond)
				task = append(task, once)
			}
			c.Tasks = append(c.Tasks, task)
		}
		held := quiet()
		held.Renew, held.Hold = true, 2*a.ttl
		c.Tasks = append(c.Tasks, []Session{held})
		s.Clients = append(s.Clients, c)
	}
	n := len(s.Masters)
	slow := a.number("slow master", 0, n-1)
	s.Faults = append(s.Faults, Fault{
		Kind: Slow, Client: All, Master: slow, At: 20*time.Millisecond + a.upTo("at", 200*time.Millisecond),
		For:    100*time.Millisecond + a.upTo("for", time.Second),
		Amount: 10*time.Millisecond + a.upTo("amount", a.ttl/250),
	})
	for i := range (n - 1) / 2 {
		s.Faults = append(s.Faults, Fault{
			Kind: Crash, Client: All, Master: (slow + 1 + i) % n,
			At:  s.Faults[0].At + a.upTo("after", 300*time.Millisecond),
			For: time.Millisecond + a.upTo("down for", 300*time.Millisecond),
		})
	}
}
