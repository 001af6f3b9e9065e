package redlock

// effects is what a change of a hold leaves to be done once the hold's mutex has been given up: to end contexts, to send
// requests, to tell the observers of a decision. None of that may happen under the mutex, because it runs code of others, or
// comes back: a call that can't be sent ends before Send has returned, and its receiver takes the mutex.
//
// The one idiom for it: a function whose name ends in Locked is called with the mutex held, keeps it, and adds to the
// effects. Whoever locked the mutex unlocks it, and then runs them.
//
//	var after effects
//	defer after.run()
//	k.mu.Lock()
//	defer k.mu.Unlock()
//	k.overLocked(reason, &after)
type effects struct {
	reason   error            // why the contexts end
	contexts []*lockContext   // of a hold that is over
	late     *round           // whose time is up
	decided  *round           // whose observers are to be told
	observer decisionObserver // is to be told of observed
	observed *round           // was decided before
	send     *round           // is to be sent
	ready    uint64           // a bit for each master to send it to; maxMasters fit
	repairs  []*repair        // are to be sent
	leaver   *Lock            // its Locker leaves the arrival queues of these keys
	leaves   []string
	renews   *Lock // is to be renewed when it is its turn
}

// run does what is left to do. No mutex is held. Whoever depends on a hold that is over is told before its first master is.
func (e *effects) run() {
	for _, c := range e.contexts {
		c.cancel(e.reason)
	}
	if e.late != nil {
		e.late.expire()
	}
	if e.decided != nil {
		e.decided.announce()
	}
	if e.observer != nil {
		e.observer.onDecided(e.observed)
	}
	if e.send != nil {
		lanes := e.send.lock.locker.lanes
		for i := range e.send.ballots {
			if e.ready&(1<<i) != 0 {
				lanes[i].Send(&e.send.ballots[i].Call)
			}
		}
	}
	for _, p := range e.repairs {
		p.lock.locker.lanes[p.Index].Send(&p.Call)
	}
	if e.leaver != nil {
		e.leaver.locker.depart(e.leaver.spec, e.leaves, nil)
	}
	if e.renews != nil {
		e.renews.locker.renewals.Enter(e.renews)
	}
}
