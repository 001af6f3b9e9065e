package chaos

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// neighbours returns the work of a client's quiet workers, each with a separate key. Their ttls are no shorter than the
// workload's: the harness knows only for that ttl how long a delay makes a master useless.
func (r *run) neighbours(client int) (all []workload.Profile) {
	if !r.cfg.Neighbours {
		return nil
	}
	add := func(p workload.Profile) {
		p.Name, p.Keys, p.Quiet = fmt.Sprintf("neighbours:%d:%d", client, len(all)), 1, true
		p.Think = workload.Span{Min: 5 * time.Millisecond, Max: 50 * time.Millisecond}
		all = append(all, p)
	}
	ttl := r.profile.TTL
	add(workload.Profile{TTL: ttl, Hold: workload.Span{Max: 5 * time.Millisecond}})
	add(workload.Profile{TTL: 5 * ttl, Hold: workload.Span{Max: 5 * time.Millisecond}})
	if !r.renews(client) {
		return all
	}
	for _, ttl := range []time.Duration{ttl, 2 * ttl, 5 * ttl} {
		held := 2 * ttl
		if r.clients.Members != nil {
			held = r.profile.TTL // an exchange of masters waits twice for the last hold
		}
		add(workload.Profile{TTL: ttl, Renew: true, Hold: workload.Span{Min: held * 3 / 4, Max: held}})
	}
	return all
}

// renews tells whether a client renews holds.
func (r *run) renews(client int) bool {
	_, renews := r.cfg.Subject.(workload.Renewer)
	limited, ok := r.clients.Lockers[client].(workload.Limited)
	return renews && (!ok || limited.Lacks(workload.Profile{Renew: true}) == nil)
}

// aboutNeighbours says how they fared.
func (r *run) aboutNeighbours(q oracle.Quiet) string {
	text := fmt.Sprintf("neighbours: of %d quiet renewed holds %d were lost; of %d acquisitions of quiet free keys "+
		"%d failed or took over %v "+
		"(p50 %v, p99 %v, max %v); %d met an outage and were not judged", q.Holds, q.Lost, q.Free, q.Late,
		r.limits().Victim, rounded(q.P50), rounded(q.P99), rounded(q.Max), q.Excused)
	if !r.renews(r.plan.Clients - 1) { // which is in this process
		text += fmt.Sprintf("; %s does not say that it renews holds (workload.Renewer), so there are none",
			r.cfg.Subject.Name())
	}
	return text
}

func rounded(ns int64) time.Duration { return time.Duration(ns).Round(10 * time.Microsecond) }
