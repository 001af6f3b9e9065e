package plan

import (
	"fmt"
	"time"
)

// Scenario is a family of plans, one for each seed.
type Scenario struct {
	Name string `json:"name"`
	// Text gives the scenario's purpose in a sentence.
	Text string `json:"text"`
	// Inside says that the scenario stays within the lock's assumptions.
	Inside   bool   `json:"inside"`
	AOF      bool   `json:"aof,omitempty"`
	TLS      bool   `json:"tls,omitempty"`
	Workload string `json:"workload"`

	ttl, hold time.Duration
	// clients, if not 0, is how many there are, whatever the caller asks for: more would get in each other's way.
	clients   int
	catalogue []template
	// defining are the essential faults: unless one of these came on, a run shows nothing. Default:
	// the faults of the catalogue.
	defining []string
	// exchanges has clients get other sets of masters, one exchange after another.
	exchanges bool
	// gap is the range of pauses between the end of a fault and the next. length is the range of a fault's duration.
	gap, length span
	// atOnce is how many faults may be on at a time. Default 1.
	atOnce int
}

// span is a range of durations.
type span [2]time.Duration

// Scenarios lists the scenarios by name.
func Scenarios() []Scenario {
	normal, long := span{100 * ms, 800 * ms}, span{300 * ms, 1500 * ms}
	return []Scenario{
		{
			Name: "calm", Text: "No faults: what the lock does when nothing is wrong, to compare with.",
			Inside: true, Workload: "hot-key",
		},
		{
			Name: "growth", Text: "No faults, and at the end equal rounds of holds: goroutines, heap and connections " +
				"must not grow with each of them.",
			Inside: true, Workload: "rounds",
		},
		{
			Name: "slow-network", Text: "Latency, jitter, little bandwidth, slicing and slow closing on some paths.",
			Inside: true, Workload: "hot-key", gap: normal, length: long, atOnce: 2,
			catalogue: []template{
				{"latency", all(minority, delayed(1*ms, 30*ms, 0), directed)},
				{"latency", delayed(5*ms, 15*ms, 4*ms)},
				{"bandwidth", all(oneMaster, rate(20, 50))},
				{"slicer", minority},
				{"slow-close", oneMaster},
			},
		},
		{
			Name: "broken-network", Text: "Silence in one or both directions, resets, cut-off data, refused " +
				"connections, at a minority.",
			Inside: true, Workload: "hot-key", gap: normal, length: long,
			catalogue: []template{
				{"silence", all(minority, directed)},
				{"timeout", minority},
				{"reset", all(minority, directed)},
				{"limit-data", minority},
				{"down", minority},
				{"syn-drop", minority},
			},
		},
		{
			Name: "partitions", Text: "Clients see different majorities, one client none, all of them too few masters.",
			Inside: true, Workload: "register", gap: normal, length: long,
			catalogue: []template{
				{"isolate-client", oneClient},
				{"isolate-master", oneMaster},
				{"minority-lost", directed},
				{"majority-lost", everyMaster},
				{"different-majorities", directed},
				{"bridge", everyMaster},
				{"ring", directed},
				{Flapping, minority},
			},
		},
		{
			Name: "bridge", Text: "Two clients, whatever number is asked for, see majorities that share one master, " +
				"which alone keeps them apart.",
			Inside: true, Workload: "hot-key", hold: 200 * ms, clients: 2, gap: normal,
			length:    span{2 * time.Second, 3 * time.Second},
			catalogue: []template{{"bridge", everyMaster}},
		},
		{
			Name: "wandering-majority", Text: "Only a bare majority of masters can be reached, every half second " +
				"another: what they count and keep goes apart.",
			Inside: true, Workload: "register", ttl: 800 * ms, gap: span{0, 100 * ms},
			length: span{300 * ms, 700 * ms}, catalogue: []template{{"isolate-master", largestMinority}},
		},
		{
			Name: "master-outage", Text: "A minority of masters stops, is killed and comes back with its data, or " +
				"refuses service.",
			Inside: true, AOF: true, Workload: "hot-key", gap: normal, length: long,
			catalogue: []template{
				{"pause", minority},
				{"kill", oneMaster},
				{"client-kill", minority},
				{"script-flush", everyMaster},
				{"busy", oneMaster},
				{"maxclients", oneMaster},
			},
		},
		{
			Name: "lasting-outage", Text: "One master is gone for most of the run: stopped, killed or silent.",
			Inside: true, AOF: true, Workload: "hot-key", gap: normal, length: span{4 * time.Second, 6 * time.Second},
			catalogue: []template{{"pause", oneMaster}, {"kill", oneMaster}, {"silence", oneMaster}},
		},
		{
			Name: "credentials", Text: "Clients' passwords and rights are changed at some masters or most, " +
				"connections are closed, and all is changed back.",
			Inside: true, Workload: "crowd", gap: normal, length: span{200 * ms, 800 * ms},
			catalogue: []template{
				{"credentials", largestMinority},
				{"credentials", majority},
				{"rights", largestMinority},
				{"rights", majority},
			},
		},
		{
			Name: "expired-certificates", Text: "Certificates of some masters or most expire and are renewed, " +
				"connections are closed: nobody who checks them gets through meanwhile.",
			Inside: true, TLS: true, Workload: "crowd", gap: normal, length: span{200 * ms, 800 * ms},
			catalogue: []template{{"expired-certificate", largestMinority}, {"expired-certificate", majority}},
		},
		{
			Name: "unresolved-names", Text: "Names of some masters or most do not resolve for a while, connections " +
				"are closed: nobody can dial them meanwhile.",
			Inside: true, Workload: "crowd", gap: normal, length: span{200 * ms, 800 * ms},
			catalogue: []template{{NoName, largestMinority}, {NoName, majority}},
		},
		{
			Name: "refused-writes", Text: "A minority of masters serves reads and refuses writes: full, unable to " +
				"save, a replica, still loading.",
			Inside: true, AOF: true, Workload: "register", gap: normal, length: long,
			catalogue: []template{
				{"full", minority}, {"misconf", minority}, {"readonly", minority}, {"loading", oneMaster},
			},
		},
		{
			Name: "full", Text: "All masters, which are of one size, run full, and have room again: what is held and " +
				"renewed must stay held.",
			Inside: true, Workload: "long-holds", gap: normal, length: span{2500 * ms, 4 * time.Second},
			catalogue: []template{{"full", everyMaster}, {"full", majority}},
		},
		{
			Name: "loading", Text: "A majority of masters restarts with its data and takes time to load it.",
			Inside: true, AOF: true, Workload: "register", gap: span{time.Second, 2 * time.Second}, length: long,
			catalogue: []template{{"loading", majority}, {"loading", oneMaster}},
		},
		{
			Name: "rolling-restart", Text: "One master after the other is restarted with its data, as in an upgrade, " +
				"and connections that lie idle are closed: what is renewed must stay held.",
			Inside: true, AOF: true, Workload: "long-holds", gap: span{1200 * ms, 1500 * ms},
			length:    span{200 * ms, 600 * ms},
			catalogue: []template{{"kill", inTurn}, {"kill", inTurn}, {"close-idle", inTurn}},
			defining:  []string{"kill"},
		},
		{
			Name: "held-writes", Text: "Masters hold back what is written and execute it later (CLIENT PAUSE): late " +
				"grants must not outlive their release.",
			Inside: true, Workload: "hot-key", gap: normal, length: long,
			catalogue: []template{{"pause-writes", minority}, {"pause-writes", oneMaster}},
		},
		{
			Name: "slow-restart", Text: "A majority of masters restarts with its data and takes seconds to load it: " +
				"who guards itself against restarts must know them again.",
			Inside: true, AOF: true, Workload: "register", gap: span{7 * time.Second, 8 * time.Second},
			length: span{1500 * ms, 2 * time.Second}, catalogue: []template{{"loading", majority}},
		},
		{
			Name: "lost-packets", Text: "For a moment connections break and dialling hangs, at all masters or some: " +
				"what is renewed must stay held.",
			Inside: true, Workload: "long-holds", gap: span{time.Second, 2 * time.Second},
			length:    span{50 * ms, 200 * ms},
			catalogue: []template{{"syn-drop", everyMaster}, {"syn-drop", majority}, {"syn-drop", minority}},
		},
		{
			Name: "unplugged", Text: "Masters leave the network and come back, a minority at a time; sent data " +
				"arrives late. For containers.",
			Inside: true, Workload: "hot-key", gap: normal, length: long,
			catalogue: []template{{"disconnect", minority}, {"disconnect", oneMaster}, {"pause", oneMaster}},
			defining:  []string{"disconnect"},
		},
		{
			Name: "majority-outage", Text: "A majority stops or is killed and comes back with its data; nobody may " +
				"hold what was lost, and all recover.",
			Inside: true, AOF: true, Workload: "register", gap: span{time.Second, 2 * time.Second}, length: long,
			catalogue: []template{{"pause", majority}, {"kill", majority}, {"down", majority}},
		},
		{
			Name: "drift", Text: "Masters' clocks run up to 0.8 % fast or slow, and holders keep locks to their very " +
				"bound.",
			Inside: true, Workload: "to-the-bound", gap: normal, length: span{3 * time.Second, 5 * time.Second},
			catalogue: []template{{"clock-rate", rate(1.008)}, {"clock-rate", rate(0.992)}},
		},
		{
			Name: "late-replies", Text: "Replies to some clients take longer than the drift allowance, and holders " +
				"keep locks to their very bound.",
			Inside: true, Workload: "to-the-bound", gap: span{20 * ms, 40 * ms},
			length:    span{2 * time.Second, 3 * time.Second},
			catalogue: []template{{"latency", all(delayed(45*ms, 50*ms, 0), mostClients, towards("replies"))}},
		},
		{
			Name: "membership", Text: "Masters join, leave and are replaced, five of them or more, while clients " +
				"hold, renew and wait, and a minority of each set comes and goes.",
			Inside: true, AOF: true, Workload: "takeover", exchanges: true, defining: []string{Reconfigure},
			gap: span{settle, settle + 400*ms}, length: long,
			catalogue: []template{
				{"silence", all(minorityOfEach, directed)},
				{"down", minorityOfEach},
				{"syn-drop", minorityOfEach},
				{"pause", minorityOfEach},
				{"kill", minorityOfEach},
				{"isolate-master", minorityOfEach},
				{"latency", delayed(2*ms, 15*ms, 2*ms)},
				{"ring", directed},
			},
		},
		{
			Name: "renewal", Text: "Long holds are renewed while a minority of masters comes and goes.",
			Inside: true, AOF: true, Workload: "long-holds", gap: normal, length: long,
			catalogue: []template{
				{"pause", minority},
				{"silence", all(minority, directed)},
				{"kill", oneMaster},
				{"latency", delayed(5*ms, 20*ms, 4*ms)},
			},
		},
		{
			Name: "paused-clients", Text: "Holders stand still for longer than their locks live; the checked " +
				"register must refuse what they write then.",
			Inside: true, Workload: "register", hold: 60 * ms, ttl: 500 * ms, gap: normal,
			length:    span{600 * ms, 1200 * ms},
			catalogue: []template{{ClientPause, oneClient}, {"latency", delayed(1*ms, 10*ms, 0)}},
			defining:  []string{ClientPause},
		},
		{
			Name: "wrong-clocks", Text: "Clients' times of day jump by seconds and hours, in both directions, and " +
				"run fast or slow: tokens must stay in order.",
			Inside: true, Workload: "register", gap: normal, length: long,
			catalogue: []template{
				{ClientClock, all(oneClient, jump(time.Hour, -time.Hour))},
				{ClientClock, all(mostClients, jump(5*time.Second, -5*time.Second))},
				{ClientRate, all(mostClients, rate(1.5, 0.5))},
			},
		},
		{
			Name: "clocks-of-processes", Text: "The same for clients that are processes, which are stopped in between.",
			Inside: true, Workload: "writers", gap: normal, length: long,
			catalogue: []template{
				{ClientClock, all(aProcess, jump(time.Hour, -time.Hour))},
				{ClientRate, all(aProcess, rate(1.5, 0.5))},
				{ClientPause, aProcess},
			},
			defining: []string{ClientClock, ClientRate},
		},
		{
			Name: "dying-clients", Text: "Clients are processes that are stopped and killed while they hold or ask " +
				"for a lock.",
			Inside: true, Workload: "children", gap: normal, length: span{300 * ms, 1500 * ms},
			catalogue: []template{{ChildKill, everyMaster}, {ChildPause, everyMaster}},
		},
		{
			Name: "stopped-clients", Text: "Clients are processes that are stopped while they hold a lock, for " +
				"longer than it lives: none may go on as if no time had passed.",
			Inside: true, Workload: "children", hold: 400 * ms, gap: normal, length: span{1200 * ms, 1800 * ms},
			catalogue: []template{{ChildPause, everyMaster}},
		},
		{
			Name: "stopped-writers", Text: "Clients that are processes are stopped for longer than their locks live, " +
				"and write when they go on: a register that checks tokens must refuse that.",
			Inside: true, Workload: "writers", gap: normal, length: span{1200 * ms, 1800 * ms},
			catalogue: []template{{ChildPause, everyMaster}},
		},
		{
			Name: "handoff-storm", Text: "Dozens wait for one key that is given back at once, over a network with " +
				"jitter.",
			Inside: true, Workload: "handoff", gap: normal, length: long,
			catalogue: []template{{"latency", delayed(2*ms, 10*ms, 2*ms)}, {"client-kill", oneMaster}},
		},
		{
			Name: "mixed-waiters", Text: "One process, whatever number is asked for, whose goroutines want one key, " +
				"several at once, or their own again, while some keep keys for long.",
			Inside: true, Workload: "mixed", clients: 1, gap: normal, length: long,
			catalogue: []template{
				{"latency", delayed(1*ms, 5*ms, 1*ms)},
				{"silence", all(oneMaster, directed)},
				{"client-kill", oneMaster},
			},
		},
		{
			Name: "many-keys", Text: "Distinct keys, tried once each, while a minority is slow, silent or gone.",
			Inside: true, Workload: "many-keys", gap: normal, length: long,
			catalogue: []template{
				{"silence", all(minority, directed)},
				{"pause", oneMaster},
				{"latency", all(minority, delayed(1*ms, 30*ms, 0))},
			},
		},
		{
			Name: "shared", Text: "Readers and writers while a minority comes and goes.",
			Inside: true, AOF: true, Workload: "shared", gap: normal, length: long,
			catalogue: []template{{"silence", all(minority, directed)}, {"pause", oneMaster}, {"kill", oneMaster}},
		},
		{
			Name: "reentrant", Text: "Owners that hold a key several times while a minority comes and goes.",
			Inside: true, AOF: true, Workload: "reentrant", gap: normal, length: long,
			catalogue: []template{{"silence", all(minority, directed)}, {"pause", oneMaster}, {"kill", oneMaster}},
		},
		{
			Name: "stragglers", Text: "Jitter larger than a round: late grants must not outlive their release. Ends " +
				"while it is on.",
			Inside: true, Workload: "short-holds", ttl: 15 * time.Second, gap: span{50 * ms, 100 * ms},
			length:    span{2 * time.Second, 3 * time.Second},
			catalogue: []template{{"latency", all(delayed(22*ms, 28*ms, 20*ms), towards("requests"))}},
		},
		{
			Name: "back-again", Text: "One master refuses connections and is back, again and again: nothing that was " +
				"given up meanwhile may land on it and stay.",
			Inside: true, Workload: "register", ttl: 15 * time.Second, gap: span{100 * ms, 300 * ms},
			length: span{300 * ms, 700 * ms}, catalogue: []template{{"down", oneMaster}},
		},
		{
			Name: "amnesia", Text: "A majority of masters is killed and comes back without its data, within a lock's " +
				"life: what a restart guard is for.",
			Workload: "register", ttl: 4 * time.Second, hold: 1500 * ms, gap: span{6 * time.Second, 7 * time.Second},
			length: span{20 * ms, 60 * ms}, catalogue: []template{{"kill-empty", majority}},
		},
		{
			Name: "power-loss", Text: "A majority of masters loses power, and with it what it was told during more " +
				"than a lock's life (appendfsync no): what a restart guard is for.",
			AOF: true, Workload: "register", ttl: 1500 * ms, hold: time.Second,
			gap:    span{6 * time.Second, 7 * time.Second},
			length: span{20 * ms, 60 * ms}, catalogue: []template{{"lose-fsync", all(majority, jump(2*time.Second))}},
		},
		{
			Name: "failover", Text: "A majority of masters is lost and replaced by replicas that lack what was " +
				"written during more than a lock's life: what a restart guard is for.",
			Workload: "register", ttl: 1500 * ms, hold: time.Second, gap: span{6 * time.Second, 7 * time.Second},
			length: span{20 * ms, 60 * ms}, catalogue: []template{{"failover", all(majority, jump(2*time.Second))}},
		},
		{
			Name: "data-loss", Text: "Keys vanish from masters that run on: FLUSHALL and eviction.",
			Workload: "register", ttl: 2 * time.Second, hold: 300 * ms, gap: normal, length: span{100 * ms, 400 * ms},
			catalogue: []template{{"flushall", majority}, {"evict", majority}, {"flushall", minority}},
		},
		{
			Name: "clock-jumps", Text: "Masters' clocks jump forwards, so that keys expire at once, and back.",
			Workload: "register", ttl: 2 * time.Second, hold: 300 * ms, gap: normal, length: span{300 * ms, 900 * ms},
			catalogue: []template{
				{"clock-step", all(majority, jump(30*time.Second, time.Minute))},
				{"clock-step", all(minority, jump(-10*time.Second))},
			},
		},
		{
			Name: "lapsed-extension", Text: "Holders stand still past their bound and then extend: whoever is told " +
				"that its hold goes on must have had it all along.",
			Inside: true, Workload: "contended-extends", gap: span{50 * ms, 200 * ms},
			length: span{700 * ms, 1500 * ms}, atOnce: 3, catalogue: []template{{ClientPause, oneClient}},
		},
		{
			Name: "everything", Text: "All faults that a lock has to stand, two at a time.",
			Inside: true, AOF: true, Workload: "register", gap: normal, length: long, atOnce: 2,
			catalogue: []template{
				{"silence", all(oneMaster, directed)},
				{"down", oneMaster},
				{"reset", oneMaster},
				{"pause", oneMaster},
				{"kill", oneMaster},
				{"client-kill", oneMaster},
				{"script-flush", everyMaster},
				{"busy", oneMaster},
				{"latency", delayed(2*ms, 15*ms, 2*ms)},
				{ClientPause, oneClient},
				{"isolate-client", oneClient},
				{"clock-rate", all(oneMaster, rate(1.005, 0.995))},
				{"ring", everyMaster},
				{"syn-drop", oneMaster},
				{"credentials", oneMaster},
				{"full", oneMaster},
				{"readonly", oneMaster},
			},
		},
	}
}

// FindScenario returns the scenario of that name.
func FindScenario(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("plan: no scenario %q; there are %v", name, names)
}
