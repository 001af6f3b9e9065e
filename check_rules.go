package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// minMajor is the first version of Redis whose scripts may read the time and then write.
	minMajor = 5
	// maxOffset is how far a clock may be off before somebody is likely to set it.
	maxOffset = time.Second
	// nearlyFull is the share of maxmemory from which on refusals are to be expected.
	nearlyFull = 0.9
)

// judge says what is wrong with one master. It is pure.
func (o *Options) judge(f *facts) []Finding {
	j := &judgement{facts: f}
	if f.Err != nil {
		j.unreachable()
		return j.findings
	}
	if !f.client {
		j.add(Note, "Its implementation gives no access to the server.", "Only taking a lock could be tried.",
			"Give it a method Client() redis.UniversalClient, or check the server by hand.")
	}
	j.permissions()
	if f.info != nil {
		j.role()
		j.memory()
		j.durability()
		j.version()
	}
	if f.Latency > 0 {
		j.latency(o)
		j.rate(o.DriftFactor)
	}
	j.locking()
	return j.findings
}

// judgement collects the findings about one master.
type judgement struct {
	*facts
	findings []Finding
}

func (j *judgement) add(severity Severity, what, why, fix string) {
	j.findings = append(j.findings, Finding{Severity: severity, Master: j.Name, What: what, Why: why, Fix: fix})
}

func (j *judgement) unreachable() {
	if guarded, ok := errors.AsType[*single.GuardError](j.Err); ok {
		j.add(Risk, sentence(guarded.Error()), "Until then the set is one vote short.",
			"Wait, or let masters keep their data: appendonly yes, appendfsync always.")
		return
	}
	if redis.IsAuthError(j.Err) {
		j.add(Risk, "It does not let this client in: "+sentence(j.Err.Error()), "Its vote is unknown; a quorum has to do without it.",
			"Give the right user and password.")
		return
	}
	j.add(Risk, "It can't be asked: "+sentence(j.Err.Error()), "Its vote is unknown; a quorum has to do without it.",
		"See that it runs and can be reached from here.")
}

func (j *judgement) permissions() {
	if len(j.denied) > 0 {
		j.add(Note, "It does not answer "+strings.Join(j.denied, ", ")+".", "What they would tell is not checked.",
			"Permit them to this user, or run the check as another one.")
	}
	if j.client && j.publish != nil && isReply(j.publish) {
		j.add(Note, "This user can't publish or subscribe: "+sentence(j.publish.Error()),
			"Waiters are not called when a lock is released, they find out by trying again.",
			"Permit PUBLISH and SUBSCRIBE on the channels "+single.ChannelPrefix+"*.")
	}
}

func (j *judgement) role() {
	replicas, _ := strconv.Atoi(j.info["connected_slaves"])
	const forgets = "A replica lags behind: when it is promoted, locks that it has not got yet are free for others."
	const alone = "Let masters be single servers, without replicas and without anybody who promotes them."
	switch {
	case j.info["redis_mode"] == "sentinel":
		j.add(Unsafe, "It is a Sentinel.", "A Sentinel holds no keys.", "List the servers that hold the data.")
	case j.Role == "slave":
		j.add(Unsafe, "It is a replica of "+net.JoinHostPort(j.info["master_host"], j.info["master_port"])+".",
			"It has no vote of its own: what it holds, its master decides.", "List independent masters.")
	case j.sentinel && replicas > 0:
		j.add(Unsafe, fmt.Sprintf("Sentinel watches it, and it has %d replicas.", replicas), forgets, alone)
	case j.sentinel:
		j.add(Risk, "Sentinel watches it.", forgets, alone)
	case replicas > 0:
		j.add(Risk, fmt.Sprintf("It has %d replicas.", replicas), forgets, alone)
	}
	if j.info["redis_mode"] == "cluster" || j.info["cluster_enabled"] == "1" {
		j.add(Risk, "It is part of a Redis Cluster.",
			"A Cluster promotes replicas by itself, moves keys between servers, and counts as one vote only.", alone)
	}
}

func (j *judgement) memory() {
	policy := j.info["maxmemory_policy"]
	limit, _ := strconv.ParseFloat(j.info["maxmemory"], 64)
	used, _ := strconv.ParseFloat(j.info["used_memory"], 64)
	const fix = "CONFIG SET maxmemory-policy noeviction, also in its configuration file."
	switch {
	case limit > 0 && policy != "" && policy != "noeviction":
		j.add(Unsafe, "It evicts keys when its memory is full (maxmemory-policy "+policy+").",
			"A lock that is evicted is free for others.", fix)
	case policy != "" && policy != "noeviction":
		j.add(Note, "Its maxmemory-policy is "+policy+", though maxmemory is not set.",
			"As soon as somebody sets a limit, locks are evicted.", fix)
	}
	if limit > 0 && used > nearlyFull*limit {
		j.add(Risk, fmt.Sprintf("Its memory is full to %.0f%%.", 100*used/limit),
			"With noeviction it refuses locks when it is full.", "Give it more memory, or less else to hold.")
	}
}

func (j *judgement) durability() {
	const fix = "appendonly yes and appendfsync always; or a restart guard (Options.RestartGuard with Dial or single.Open; redlock -restart-guard)."
	switch {
	case j.info["loading"] == "1":
		j.add(Risk, "It is loading its data.", "It does not vote until it has.", "Wait.")
	case j.info["aof_last_write_status"] == "err":
		j.add(Risk, "It could not write its append-only file.", "It refuses locks, or forgets them with a restart.", "See to its disk.")
	case j.info["rdb_last_bgsave_status"] == "err" && j.config["save"] != "":
		j.add(Risk, "Its last snapshot failed.", "It refuses writes while that is so (stop-writes-on-bgsave-error), locks too.",
			"See to its disk, or turn snapshots off.")
	}
	switch {
	case j.keepsAll():
	case j.Guard > 0:
		j.add(Note, fmt.Sprintf("It may forget locks with a restart, and does not vote for %v after one.", j.Guard),
			"That is safe as long as no ttl is longer, for every user of these masters.", "Keep the guard at the longest ttl.")
	case j.info["aof_enabled"] != "1":
		j.add(Unsafe, "A restart loses its data (persistence: "+j.Persistence+"), and it votes again at once.",
			"With the locks that it has forgotten, a majority can be had twice.", fix)
	case j.config == nil:
		j.add(Note, "It writes an append-only file; how often it fsyncs is not known.",
			"Locks of the last second may be gone after its machine crashed.", fix)
	default:
		j.add(Risk, "It answers before its data is on disk (persistence: "+j.Persistence+").",
			"When its machine crashes, it forgets the latest locks, and a majority can be had twice.", fix)
	}
}

func (j *judgement) version() {
	major, _, _ := strings.Cut(j.Version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < minMajor {
		j.add(Risk, "It is Redis "+j.Version+".",
			"Its scripts may not write after they have read the time, as shared and fenced locks and waiters need; their votes are errors.",
			fmt.Sprintf("Use version %d or later.", minMajor))
	}
}

func (j *judgement) latency(o *Options) {
	need := 2 * j.Latency // the median; many requests take longer
	what := fmt.Sprintf("It answers in %v.", j.Latency.Round(10*time.Microsecond))
	switch {
	case o.RequestTimeout > 0 && need > o.RequestTimeout:
		j.add(Risk, what, fmt.Sprintf("Options.RequestTimeout is %v: votes will often be unknown.", o.RequestTimeout),
			"Raise Options.RequestTimeout, or move the master closer.")
	case o.RequestTimeout == 0 && need > maxRequestTimeout:
		j.add(Risk, what, fmt.Sprintf("No request is given more than %v: votes will often be unknown.", maxRequestTimeout),
			"Set Options.RequestTimeout, or move the master closer.")
	case o.RequestTimeout == 0 && need > minRequestTimeout:
		j.add(Note, what, fmt.Sprintf("A request is given a twentieth of the ttl: with ttls below %v votes will often be unknown.",
			(timeoutShare*need).Round(10*time.Millisecond)), "Use longer ttls, or set Options.RequestTimeout.")
	}
}

func (j *judgement) rate(driftFactor float64) {
	switch off := math.Abs(j.ClockRate); {
	case off-j.ClockRateError > driftFactor:
		j.add(Unsafe, fmt.Sprintf("Its clock ran %+.1f%% faster than this machine's while it was looked at.", 100*j.ClockRate),
			fmt.Sprintf("Options.DriftFactor allows for %.1f%%: it may expire locks before their holders know, or its clock is being set.",
				100*driftFactor), "Let a time service slew its clock, and never step it.")
	case j.ClockRateError > driftFactor:
		j.add(Note, fmt.Sprintf("The rate of its clock is known only to within %.0f%%.", 100*j.ClockRateError),
			"It is too far away, or too busy, to tell more.", "Check from a machine that is closer.")
	}
}

func (j *judgement) locking() {
	switch {
	case j.wrong != "":
		j.add(Unsafe, j.wrong, "It does not do what a lock needs, whatever it is.", "Use a Redis or Valkey server, without anything in between that rewrites commands.")
	case j.probe == nil || j.Role == "slave":
	case notPermitted(j.probe) && strings.Contains(j.probe.Error(), " key"):
		j.add(Note, "This user may only use certain keys: "+sentence(j.probe.Error()), "Taking a lock could not be tried.",
			"Besides the keys of locks, permit redlock:queue:*, redlock:token:* and, for this check, redlock:check:*.")
	case notPermitted(j.probe):
		j.add(Risk, "This user may not do what a lock needs: "+sentence(j.probe.Error()), "Its votes are always unknown.",
			"Permit SET, GET, DEL, PTTL, EVAL and EVALSHA, and what the scripts call.")
	default:
		j.add(Risk, "A lock could not be taken: "+sentence(j.probe.Error()), "Its votes are unknown.", "See what the server means by that.")
	}
}

// notPermitted tells a server's refusal to this user, also of a command inside a script, from others.
func notPermitted(err error) bool {
	return isReply(err) && (strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "can't run this command") ||
		strings.Contains(err.Error(), "can't access at least one of the keys"))
}

// sentence ends a text from elsewhere.
func sentence(text string) string { return strings.TrimRight(text, ". ") + "." }

// judgeSet says what is wrong with the masters together. It is pure.
func judgeSet(all []facts) []Finding {
	return slices.Concat(judgeIdentity(all), judgeNumber(all), judgeClocks(all))
}

// judgeIdentity finds servers that are listed more than once.
func judgeIdentity(all []facts) []Finding {
	var findings []Finding
	byRun := make(map[string][]string)
	for i := range all {
		if id := all[i].RunID; id != "" {
			byRun[id] = append(byRun[id], all[i].Name)
		}
	}
	for i := range all {
		names := byRun[all[i].RunID]
		if len(names) < 2 || names[0] != all[i].Name {
			continue
		}
		findings = append(findings, Finding{
			Severity: Unsafe, Master: strings.Join(names, ", "),
			What: "They are one server (run_id " + all[i].RunID + ").",
			Why:  "It votes as often as it is listed, so that a quorum is no majority of servers.", Fix: "List each server once.",
		})
	}
	return findings
}

// judgeNumber looks at how many masters there are, and where.
func judgeNumber(all []facts) []Finding {
	var findings []Finding
	note := func(what, why, fix string) {
		findings = append(findings, Finding{Severity: Note, What: what, Why: why, Fix: fix})
	}
	n := len(all)
	switch {
	case n == 1:
		note("There is one master.", "When it is down, no lock can be had; when it loses its data, all are lost.", "Use three or five.")
	case n%2 == 0:
		note(fmt.Sprintf("There are %d masters.", n),
			fmt.Sprintf("They can do without %d, no more than %d could, and more of them have to agree.", n-quorumOf(n), n-1),
			"Use an odd number.")
	}
	host := func(name string) string {
		h, _, err := net.SplitHostPort(name)
		if err != nil {
			return name
		}
		return h
	}
	first := host(all[0].Name)
	if n > 1 && !slices.ContainsFunc(all, func(f facts) bool { return host(f.Name) != first }) {
		note("All masters are on "+first+".", "They fail together.", "Put each on a machine of its own.")
	}
	return findings
}

// judgeClocks finds wall clocks that are off: a master's against the majority, or ours.
func judgeClocks(all []facts) []Finding {
	var offsets []time.Duration
	for i := range all {
		if all[i].Latency > 0 {
			offsets = append(offsets, all[i].ClockOffset)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	var middle time.Duration // of few masters none is more right than this machine
	if len(offsets) > 2 {
		slices.SortFunc(offsets, cmp.Compare[time.Duration])
		middle = offsets[len(offsets)/2]
	}
	var findings []Finding
	if middle.Abs() > maxOffset {
		findings = append(findings, Finding{
			Severity: Note, What: fmt.Sprintf("This machine's clock is %v off from that of most masters.", middle.Abs().Round(time.Millisecond)),
			Why: "Fencing tokens start from it when a master has lost its counters.", Fix: "Run a time service.",
		})
	}
	for i := range all {
		f := &all[i]
		if off := f.ClockOffset - middle; f.Latency > 0 && off.Abs() > maxOffset+f.Latency {
			findings = append(findings, Finding{
				Severity: Risk, Master: f.Name,
				What: fmt.Sprintf("Its clock is off by %v.", off.Round(time.Millisecond)),
				Why:  "Whoever sets it forward expires its locks too early; whoever sets it back keeps them for too long.",
				Fix:  "Set it while no locks are held, then run a time service that slews.",
			})
		}
	}
	return findings
}
