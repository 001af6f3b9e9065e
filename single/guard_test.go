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

// saw is a sighting at a time of our clock, answered at once, of a server with a wall clock that runs like ours.
func saw(run string, at, uptime time.Duration) single.Sighting {
	return single.Sighting{RunID: run, Uptime: uptime, Wall: noon.Add(at), Asked: at, Answered: at}
}

// ahead is a sighting of a server with its wall clock, and so its uptime, ahead.
func ahead(by time.Duration, s single.Sighting) single.Sighting {
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

func TestTheGuardTrustsWhatItObservedMoreThanUptime(t *testing.T) {
	const guard = 30 * second
	tests := []struct {
		name  string
		seen  []single.Sighting
		wants []time.Duration
	}{
		{"a server first met when it is old votes at once", []single.Sighting{saw("a", 0, 31*second)}, []time.Duration{
			0,
		}},
		{
			"uptime counts whole seconds, so the last one is not believed",
			[]single.Sighting{saw("a", 0, 30*second)},
			[]time.Duration{second},
		},
		{
			"a server first met when it is young waits for the rest",
			[]single.Sighting{saw("a", 0, 11*second), saw("a", 19*second, 0), saw("a", 20*second, 0)},
			[]time.Duration{20 * second, second, 0},
		},
		{
			"the same run needs no uptime: its clock may be set back",
			[]single.Sighting{saw("a", 0, 0), saw("a", 29*second, -3600*second), saw("a", 30*second, -3600*second)},
			[]time.Duration{guard, second, 0},
		},
		{
			"nor forward",
			[]single.Sighting{saw("a", 0, 0), ahead(3600*second, saw("a", second, second))},
			[]time.Duration{guard, 29 * second},
		},
		{
			"a restart is a new run and waits for a whole guard time",
			[]single.Sighting{
				saw("a", 0, 900*second), saw("b", 5*second, 0), saw("b", 34*second, 29*second),
				saw("b", 35*second, 30*second),
			},
			[]time.Duration{0, guard, second, 0},
		},
		{
			"a restart long before it was noticed costs nothing more",
			[]single.Sighting{saw("a", 0, 900*second), saw("b", 600*second, 500*second)},
			[]time.Duration{0, 0},
		},
		{
			"a clock set forward after the restart is taken off the uptime",
			[]single.Sighting{saw("a", 0, 900*second), ahead(3600*second, saw("b", 600*second, 3*second))},
			[]time.Duration{0, guard},
		},
		{
			"a clock set forward by less than the time since is taken off too",
			[]single.Sighting{saw("a", 0, 900*second), ahead(40*second, saw("b", 600*second, 3*second))},
			[]time.Duration{0, guard},
		},
		{
			"a run that claims to be older than its predecessor's end is not believed at all",
			[]single.Sighting{saw("a", 0, 900*second), saw("b", 5*second, 40*second)},
			[]time.Duration{0, guard},
		},
		{
			"a clock set back only makes the server look younger",
			[]single.Sighting{saw("a", 0, 900*second), ahead(-3600*second, saw("b", 600*second, 500*second))},
			[]time.Duration{0, guard},
		},
		{
			"a server that fsyncs always votes at once, also after a restart",
			[]single.Sighting{durable(saw("a", 0, 0)), durable(saw("b", second, 0))},
			[]time.Duration{0, 0},
		},
		{
			"one that lost its disk is guarded, and so is its next run if nobody has let it vote",
			[]single.Sighting{
				durable(saw("a", 0, 0)), emptied(durable(saw("b", second, 0))), emptied(durable(saw("c", 2*second, 0))),
			},
			[]time.Duration{0, guard, guard},
		},
		{
			"also where it is met for the first time",
			[]single.Sighting{
				emptied(durable(saw("b", 0, 11*second))), emptied(durable(saw("b", 20*second, 31*second))),
			},
			[]time.Duration{20 * second, 0},
		},
		{
			"and is excused again once it has voted",
			[]single.Sighting{emptied(durable(saw("b", 0, 31*second))), durable(saw("c", second, 0))},
			[]time.Duration{0, 0},
		},
		{
			"a replica that took over has the mark and not all the data: it is guarded, and once it has voted its " +
				"next run is excused",
			[]single.Sighting{
				durable(saw("a", 0, 0)), replica(durable(saw("b", second, 900*second))),
				durable(saw("c", 40*second, 0)),
			},
			[]time.Duration{0, guard, 0},
		},
		{
			"a replica that took over, where it is met for the first time, is believed its uptime and not its mark",
			[]single.Sighting{replica(durable(saw("b", 0, 11*second)))},
			[]time.Duration{20 * second},
		},
		{
			"one that was a replica meanwhile has another server's data",
			[]single.Sighting{
				saw("a", 0, 900*second), replica(saw("a", 5*second, 905*second)),
				replica(saw("a", 25*second, 925*second)),
			},
			[]time.Duration{0, guard, 10 * second},
		},
		{
			"one that was met while it wrote its first file may have lost that",
			[]single.Sighting{rewriting(durable(saw("a", 0, 900*second))), durable(saw("b", 2*second, 0))},
			[]time.Duration{0, guard},
		},
		{
			"one that is known as durable remains so while it writes its file anew",
			[]single.Sighting{
				durable(saw("a", 0, 900*second)), rewriting(durable(saw("a", second, 901*second))),
				durable(saw("b", 2*second, 0)),
			},
			[]time.Duration{0, 0, 0},
		},
		{
			"the mark alone excuses nobody",
			[]single.Sighting{
				{RunID: "a", Wall: noon, Marked: true}, {
					RunID: "b", Wall: noon.Add(second), Asked: second, Answered: second, Marked: true,
				},
			},
			[]time.Duration{guard, guard},
		},
		{
			"one that does so only since the restart has forgotten what the run before had",
			[]single.Sighting{saw("a", 0, 900*second), durable(saw("b", second, 0)), durable(saw("c", 2*second, 0))},
			[]time.Duration{0, guard, 0},
		},
		{
			"one that was told to fsync while it ran is trusted from its next restart on",
			[]single.Sighting{saw("a", 0, 0), durable(saw("a", second, 0)), durable(saw("b", 2*second, 0))},
			[]time.Duration{guard, 29 * second, 0},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			judge := single.NewJudge(guard).Judge
			for i, s := range test.seen {
				if got := judge(s); got != test.wants[i] {
					t.Errorf("sighting %d of run %s at %v: votes in %v, want %v", i+1, s.RunID, s.Answered, got,
						test.wants[i])
				}
			}
		})
	}
}

func TestTheGuardIgnoresWhichOfTwoOverlappingChecksCameFirst(t *testing.T) {
	judge := single.NewJudge(30 * second).Judge
	young := saw("b", 10*second, 0)
	if got := judge(young); got != 30*second {
		t.Fatalf("a young server votes in %v", got)
	}
	// This check began before the other one had ended, and describes the previous run: its reply was on its way for
	// long.
	late := saw("a", 9*second, 900*second)
	late.Answered = 11 * second
	if got := judge(late); got != 30*second {
		t.Errorf("a connection to a run that may be over votes in %v, want not at all", got)
	}
	if got := judge(saw("b", 40*second, 30*second)); got != 0 {
		t.Errorf("the later run has to wait for another %v, because an old reply made it look new", got)
	}
}

func TestAStandbyServerCountsAsJustBorn(t *testing.T) {
	const guard = 30 * second
	judge := single.NewJudge(guard)
	judge.Judge(saw("a", 0, 900*second))
	judge.Heard(599 * second) // on a connection that was set up at 0
	if got := judge.Judge(saw("b", 600*second, 500*second)); got != guard {
		t.Errorf("a server that has run for long, but elsewhere, votes in %v, want %v", got, guard)
	}
	if got := judge.Judge(saw("b", 630*second, 530*second)); got != 0 {
		t.Errorf("after a guard time it votes in %v", got)
	}
}

func TestARestartBetweenTwoRequestsIsBelievedToBeOne(t *testing.T) {
	judge := single.NewJudge(30 * second)
	judge.Judge(saw("a", 0, 900*second))
	judge.Heard(400 * second)
	if got := judge.Judge(saw("b", 600*second, 100*second)); got != 0 { // it began at 500
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
