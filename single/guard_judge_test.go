package single_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

const second = time.Second

// noon is some time of day.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// saw is a sighting at a second of our clock, answered at once, of a server with a wall clock that runs like ours. The
// server has been up for so many seconds.
func saw(run string, at, uptime int) single.Sighting {
	now := time.Duration(at) * second
	return single.Sighting{
		RunID: run, Uptime: time.Duration(uptime) * second, Wall: noon.Add(now), Asked: now, Answered: now,
	}
}

// ahead is a sighting of a server with its wall clock, and so its uptime, ahead.
func ahead(seconds int, s single.Sighting) single.Sighting {
	by := time.Duration(seconds) * second
	s.Wall, s.Uptime = s.Wall.Add(by), s.Uptime+by
	return s
}

// durable is a sighting of a server that fsyncs always and has the data of a run that voted; emptied has lost it.
func durable(s single.Sighting) single.Sighting {
	s.Durable, s.Marked = true, true
	return s
}

// replica is a sighting of a server that is or was a replica.
func replica(s single.Sighting) single.Sighting {
	s.Replica = true
	return s
}

func rewriting(s single.Sighting) single.Sighting {
	s.Rewrites = true
	return s
}

func emptied(s single.Sighting) single.Sighting {
	s.Marked = false
	return s
}

// marked is a sighting of a server with the mark, and nothing else.
func marked(s single.Sighting) single.Sighting {
	s.Marked = true
	return s
}

func TestTheGuardTrustsWhatItObservedMoreThanUptime(t *testing.T) {
	const guard = 30
	type seen struct {
		single.Sighting
		votes int // in so many seconds
	}
	for name, sightings := range map[string][]seen{
		"a server first met when it is old votes at once":              {{saw("a", 0, 31), 0}},
		"uptime counts whole seconds, so the last one is not believed": {{saw("a", 0, 30), 1}},
		"a server first met when it is young waits for the rest": {
			{saw("a", 0, 11), 20}, {saw("a", 19, 0), 1}, {saw("a", 20, 0), 0},
		},
		"the same run needs no uptime: its clock may be set back": {
			{saw("a", 0, 0), guard}, {saw("a", 29, -3600), 1}, {saw("a", 30, -3600), 0},
		},
		"nor forward": {{saw("a", 0, 0), guard}, {ahead(3600, saw("a", 1, 1)), 29}},
		"a restart is a new run and waits for a whole guard time": {
			{saw("a", 0, 900), 0}, {saw("b", 5, 0), guard}, {saw("b", 34, 29), 1}, {saw("b", 35, 30), 0},
		},
		"a restart long before it was noticed costs nothing more": {{saw("a", 0, 900), 0}, {saw("b", 600, 500), 0}},
		"a clock set forward after the restart is taken off the uptime": {
			{saw("a", 0, 900), 0}, {ahead(3600, saw("b", 600, 3)), guard},
		},
		"a clock set forward by less than the time since is taken off too": {
			{saw("a", 0, 900), 0}, {ahead(40, saw("b", 600, 3)), guard},
		},
		"a run that claims to be older than its predecessor's end is not believed at all": {
			{saw("a", 0, 900), 0}, {saw("b", 5, 40), guard},
		},
		"a clock set back only makes the server look younger": {
			{saw("a", 0, 900), 0}, {ahead(-3600, saw("b", 600, 500)), guard},
		},
		"a server that fsyncs always votes at once, also after a restart": {
			{durable(saw("a", 0, 0)), 0}, {durable(saw("b", 1, 0)), 0},
		},
		"one that lost its disk is guarded, and so is its next run if nobody has let it vote": {
			{durable(saw("a", 0, 0)), 0},
			{emptied(durable(saw("b", 1, 0))), guard},
			{emptied(durable(saw("c", 2, 0))), guard},
		},
		"also where it is met for the first time": {
			{emptied(durable(saw("b", 0, 11))), 20}, {emptied(durable(saw("b", 20, 31))), 0},
		},
		"and is excused again once it has voted": {
			{emptied(durable(saw("b", 0, 31))), 0}, {durable(saw("c", 1, 0)), 0},
		},
		"a replica that took over has the mark and not all the data; once it has voted its next run is excused": {
			{durable(saw("a", 0, 0)), 0}, {replica(durable(saw("b", 1, 900))), guard}, {durable(saw("c", 40, 0)), 0},
		},
		"a replica that took over, met for the first time, is believed its uptime and not its mark": {
			{replica(durable(saw("b", 0, 11))), 20},
		},
		"one that was a replica meanwhile has another server's data": {
			{saw("a", 0, 900), 0}, {replica(saw("a", 5, 905)), guard}, {replica(saw("a", 25, 925)), 10},
		},
		"one that was met while it wrote its first file may have lost that": {
			{rewriting(durable(saw("a", 0, 900))), 0}, {durable(saw("b", 2, 0)), guard},
		},
		"one that is known as durable remains so while it writes its file anew": {
			{durable(saw("a", 0, 900)), 0}, {rewriting(durable(saw("a", 1, 901))), 0}, {durable(saw("b", 2, 0)), 0},
		},
		"the mark alone excuses nobody": {{marked(saw("a", 0, 0)), guard}, {marked(saw("b", 1, 0)), guard}},
		"one that does so only since the restart has forgotten what the run before had": {
			{saw("a", 0, 900), 0}, {durable(saw("b", 1, 0)), guard}, {durable(saw("c", 2, 0)), 0},
		},
		"one that was told to fsync while it ran is trusted from its next restart on": {
			{saw("a", 0, 0), guard}, {durable(saw("a", 1, 0)), 29}, {durable(saw("b", 2, 0)), 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			judge := single.NewJudge(guard * second).Judge
			for i, s := range sightings {
				if got, want := judge(s.Sighting), time.Duration(s.votes)*second; got != want {
					t.Errorf("sighting %d of run %s at %v: votes in %v, want %v", i+1, s.RunID, s.Answered, got, want)
				}
			}
		})
	}
}

func TestTheGuardIgnoresWhichOfTwoOverlappingChecksCameFirst(t *testing.T) {
	judge := single.NewJudge(30 * second).Judge
	young := saw("b", 10, 0)
	if got := judge(young); got != 30*second {
		t.Fatalf("a young server votes in %v", got)
	}
	// This check began before the other one had ended, and describes the previous run: its reply was on its way for
	// long.
	late := saw("a", 9, 900)
	late.Answered = 11 * second
	if got := judge(late); got != 30*second {
		t.Errorf("a connection to a run that may be over votes in %v, want not at all", got)
	}
	if got := judge(saw("b", 40, 30)); got != 0 {
		t.Errorf("the later run has to wait for another %v, because an old reply made it look new", got)
	}
}

func TestAStandbyServerCountsAsJustBorn(t *testing.T) {
	const guard = 30 * second
	judge := single.NewJudge(guard)
	judge.Judge(saw("a", 0, 900))
	judge.Heard(599 * second) // on a connection that was set up at 0
	if got := judge.Judge(saw("b", 600, 500)); got != guard {
		t.Errorf("a server that has run for long, but elsewhere, votes in %v, want %v", got, guard)
	}
	if got := judge.Judge(saw("b", 630, 530)); got != 0 {
		t.Errorf("after a guard time it votes in %v", got)
	}
}

func TestARestartBetweenTwoRequestsIsBelievedToBeOne(t *testing.T) {
	judge := single.NewJudge(30 * second)
	judge.Judge(saw("a", 0, 900))
	judge.Heard(400 * second)
	if got := judge.Judge(saw("b", 600, 100)); got != 0 { // it began at 500
		t.Errorf("a server that restarted long before anybody asked again votes in %v, want at once", got)
	}
}

// world is a server that restarts and gets its wall clock stepped. Only the test can see both.
type world struct {
	now, started time.Duration
	step         time.Duration // of its wall clock
	startStep    time.Duration // when it started
	run          int
}

func (w *world) restart() { w.started, w.startStep, w.run = w.now, w.step, w.run+1 }

func (w *world) sighting() single.Sighting {
	wall, startWall := noon.Add(w.now+w.step), noon.Add(w.started+w.startStep)
	return single.Sighting{
		RunID:  fmt.Sprint(w.run),
		Uptime: wall.Truncate(second).Sub(startWall.Truncate(second)),
		Wall:   wall, Asked: w.now, Answered: w.now,
	}
}

// tooEarly counts the connections that judge lets through to a server that has run for less than the guard. It plays
// random histories: the server's clock is set at most once between two sightings.
func tooEarly(guard time.Duration, judge func() func(single.Sighting) time.Duration) (violations, votes int) {
	for seed := range uint64(300) {
		source := rand.New(rand.NewPCG(seed, 7))
		random := func(below time.Duration) time.Duration { return time.Duration(source.Int64N(int64(below))) }
		decide, w := judge(), &world{run: 1}
		w.now = 1000 * second
		decide(w.sighting()) // there has to be something to compare with
		for range 60 {
			step := func() {
				if random(3) == 0 {
					w.step += random(200*second) - 100*second
				}
			}
			stepsFirst := random(2) == 0 // before the restart, if there is one
			w.now += random(20 * second)
			if stepsFirst {
				step()
				w.now += random(5 * second)
			}
			if random(3) == 0 {
				w.restart()
			}
			w.now += random(5 * second)
			if !stepsFirst {
				step()
			}
			w.now += random(20 * second)
			if decide(w.sighting()) > 0 {
				continue
			}
			votes++
			if w.now-w.started < guard {
				violations++
			}
		}
	}
	return violations, votes
}

func TestTheGuardIsNeverFooledByAStepOfTheServersClock(t *testing.T) {
	const guard = 10 * second
	violations, votes := tooEarly(guard, func() func(single.Sighting) time.Duration {
		return single.NewJudge(guard).Judge
	})
	if violations > 0 || votes == 0 {
		t.Errorf("%d of %d connections were let through to a server younger than %v", violations, votes, guard)
	}
}

// The control: the same histories fool a guard that uses only uptime.
func TestAGuardThatBelievesUptimeIsFooled(t *testing.T) {
	const guard = 10 * second
	naive := func(s single.Sighting) time.Duration { return max(0, guard-s.Uptime+second) }
	violations, votes := tooEarly(guard, func() func(single.Sighting) time.Duration { return naive })
	if violations == 0 {
		t.Errorf("none of %d connections came too early: the histories prove nothing", votes)
	}
}
