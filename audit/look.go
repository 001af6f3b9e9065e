package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// clockSpan is the time between the two readings of a master's clock that give its rate.
	clockSpan = 500 * time.Millisecond
	// clockReadings are taken each time; the quickest one is the most exact.
	clockReadings = 5
	// probeTTL is how long the probe's key would stay if its release were lost.
	probeTTL = 5 * time.Second
	// sentinelChannel is where Sentinels meet, on every master that they watch.
	sentinelChannel = "__sentinel__:hello"
	// failoverAddr is the address that go-redis reports for a client that asks Sentinels for its server.
	failoverAddr = "FailoverClient"
)

// facts are the audit's facts about one master.
type facts struct {
	MasterReport

	client   bool              // it has a go-redis client to query
	secure   bool              // by TLS
	info     map[string]string // INFO; nil if that was not allowed
	config   map[string]string // the relevant settings of CONFIG GET; nil if it was not allowed
	sentinel bool              // Sentinels watch it, or go-redis found it through them
	denied   []string          // commands that this user may not run
	probe    error             // why a lock could not be taken
	wrong    string            // a fault found by the probe that makes locks impossible
	publish  error             // why waiters can't be notified
	told     bool              // its generation is known; it may have none
	foreign  bool              // it has other data under the generation's key
}

// lookAt asks one master, with all operations that the master offers.
func (s *Settings) lookAt(ctx context.Context, m Master) facts {
	f := facts{}
	f.Name = m.Name()
	if g, ok := m.(interface{ RestartGuard() time.Duration }); ok {
		f.Guard = max(0, g.RestartGuard())
	}
	if f.tryLock(ctx, m); !f.otherKeys() {
		f.Unusable = f.probe
	}
	asked, ok := m.(Asked)
	if !ok {
		return f
	}
	f.client = true
	if c, ok := asked.Client().(*redis.Client); ok {
		f.secure = c.Options().TLSConfig != nil
		f.sentinel = c.Options().Addr == failoverAddr
	}
	questions, err := asked.Questions(ctx)
	if err != nil {
		f.Err = err
		return f
	}
	defer questions.Close()
	if _, f.Err = questions.Ask(ctx, "PING"); f.Err != nil && (!isReply(f.Err) || redis.IsAuthError(replyIn(f.Err))) {
		return f
	}
	f.Err = nil
	first := f.readClock(ctx, questions, s)
	f.ask(ctx, questions)
	if first.quick > 0 && s.Sleep(ctx, clockSpan) == nil {
		if second := f.readClock(ctx, questions, s); second.quick > 0 {
			f.ClockRate, f.ClockRateError = second.rateSince(first)
		}
	}
	f.tryNotifying(ctx, questions)
	f.Partly = len(f.denied) > 0 || f.otherKeys()
	return f
}

// reading is one comparison of a master's wall clock with ours.
type reading struct {
	wall  time.Time     // the master's
	at    time.Duration // our clock, in the middle of the round trip
	quick time.Duration // the round trip; 0 if there was none
}

// readClock compares the clocks several times. It keeps the quickest reading, and the median as the latency.
func (f *facts) readClock(ctx context.Context, questions *single.Questions, s *Settings) reading {
	var best reading
	var trips []time.Duration
	for range clockReadings {
		local, start := s.Wall(), s.Now()
		wall, err := timeOf(questions.Ask(ctx, "TIME"))
		trip := max(s.Now()-start, 1)
		if err != nil {
			f.mayNot("TIME", err)
			return best
		}
		trips = append(trips, trip)
		if best.quick == 0 || trip < best.quick {
			best = reading{wall: wall, at: start + trip/2, quick: trip}
			f.ClockOffset = wall.Sub(local.Add(trip / 2)).Round(time.Microsecond)
		}
	}
	slices.SortFunc(trips, cmp.Compare[time.Duration])
	f.Latency = trips[len(trips)/2]
	return best
}

// rateSince returns how much faster the master's clock ran than ours since an earlier reading, as a fraction, and the
// uncertainty of that figure. It is uncertain because the master may have read its clock at any moment of the round
// trip.
func (r reading) rateSince(first reading) (rate, inexact float64) {
	ours := float64(r.at - first.at)
	if ours <= 0 {
		return 0, 1
	}
	return float64(r.wall.Sub(first.wall))/ours - 1, float64(r.quick+first.quick) / 2 / ours
}

// ask reads the server's reports about itself.
func (f *facts) ask(ctx context.Context, questions *single.Questions) {
	if info, err := questions.Ask(ctx, "INFO"); err == nil {
		text, _ := info.(string)
		f.info = parseInfo(text)
	} else {
		f.mayNot("INFO", err)
	}
	for _, name := range []string{"appendfsync", "no-appendfsync-on-rewrite", "save"} {
		values, err := questions.Ask(ctx, "CONFIG", "GET", name)
		if err != nil {
			f.mayNot("CONFIG GET", err)
			break
		}
		if f.config == nil {
			f.config = make(map[string]string)
		}
		f.config[name], _ = valueAfter(name, values).(string)
	}
	if !f.sentinel {
		listeners, err := questions.Ask(ctx, "PUBSUB", "NUMSUB", sentinelChannel)
		if err != nil {
			f.mayNot("PUBSUB NUMSUB", err)
		}
		n, _ := valueAfter(sentinelChannel, listeners).(int64)
		f.sentinel = n > 0
	}
	f.RunID, f.Role = f.info["run_id"], f.info["role"]
	f.Version = f.info["redis_version"]
	if seconds, err := strconv.ParseInt(f.info["uptime_in_seconds"], 10, 64); err == nil {
		f.Uptime = time.Duration(seconds) * time.Second
	}
	f.Persistence = f.persistence()
	f.readGeneration(ctx, questions)
}

// readGeneration reads the generation that the master knows. It reads nothing if the key has another type or may not be
// read.
func (f *facts) readGeneration(ctx context.Context, questions *single.Questions) {
	known, err := questions.Ask(ctx, "GET", single.GenerationKey)
	text, isText := known.(string)
	number, notNumber := strconv.ParseUint(text, 10, 64)
	if isText && notNumber == nil {
		f.Generation = number
	}
	f.told = err == nil && (known == nil || isText && notNumber == nil)
	f.foreign = isText && notNumber != nil || redis.HasErrorPrefix(replyIn(err), "WRONGTYPE")
}

// persistence says in words how the master keeps its data.
func (f *facts) persistence() string {
	switch {
	case f.info == nil:
		return ""
	case f.info["aof_enabled"] != "1" && f.config["save"] != "":
		return "snapshots"
	case f.info["aof_enabled"] != "1":
		return "none"
	case f.config == nil:
		return "aof"
	case f.config["no-appendfsync-on-rewrite"] == "yes":
		return "aof, fsync " + f.config["appendfsync"] + " but not during rewrites"
	default:
		return "aof, fsync " + f.config["appendfsync"]
	}
}

// keepsAll reports whether the master answers only after its data is on disk.
func (f *facts) keepsAll() bool { return f.Persistence == "aof, fsync always" }

// mayNot notes a command that this user may not run or that the server does not know.
func (f *facts) mayNot(what string, err error) {
	if isReply(err) && !slices.Contains(f.denied, what) {
		f.denied = append(f.denied, what)
	}
}

// isReply reports that the server answered, with an error.
func isReply(err error) bool { return replyIn(err) != nil }

// replyIn returns the server's own error within err; nil if there is none.
func replyIn(err error) error {
	if reply, is := errors.AsType[redis.Error](err); is {
		return reply
	}
	return nil
}

// probePatience is how long each request of tryLock waits for a master that may hang.
const probePatience = time.Second

// tryLock takes a key that no other client uses, as a lock would, and releases it, even if the audit is cut short.
func (f *facts) tryLock(ctx context.Context, m Master) {
	key, mine := "redlock:check:"+owner.Random(), owner.Random()
	taken := false
	defer func() {
		if !taken {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probePatience)
		defer cancel()
		release := single.Request{Op: single.Release, Keys: []string{key}, Owner: mine}
		m.Do(ctx, []*single.Call{{Request: &release}})
	}()
	steps := []struct {
		what    string
		request single.Request
		want    single.Outcome
	}{
		{"takes a free key", single.Request{Op: single.Acquire, Owner: mine, TTL: probeTTL}, single.Granted},
		{
			"refuses a held key",
			single.Request{Op: single.Acquire, Owner: owner.Random(), TTL: probeTTL},
			single.Refused,
		},
		{"extends for the owner", single.Request{Op: single.Extend, Owner: mine, TTL: probeTTL}, single.Granted},
		{"shows who holds a key", single.Request{Op: single.Inspect}, single.Granted},
		{"refuses a release by others", single.Request{Op: single.Release, Owner: owner.Random()}, single.Refused},
		{"releases for the owner", single.Request{Op: single.Release, Owner: mine}, single.Granted},
	}
	for _, step := range steps {
		step.request.Keys = []string{key}
		c := single.Call{Request: &step.request}
		stepCtx, cancel := context.WithTimeout(ctx, probePatience)
		m.Do(stepCtx, []*single.Call{&c})
		cancel()
		switch {
		case step.request.Owner == mine && step.request.Op == single.Acquire:
			taken = c.Sent
		case step.request.Owner == mine && step.request.Op == single.Release && c.Err == nil:
			taken = false
		}
		if c.Err != nil {
			if f.probe = c.Err; !c.Answered() {
				f.Err = c.Err
			}
			return
		}
		if c.Reply.Outcome != step.want {
			f.wrong = fmt.Sprintf("Asked to be a master that %s, it did not.", step.what)
			return
		}
	}
}

// tryNotifying publishes and subscribes as a release and a waiter would.
func (f *facts) tryNotifying(ctx context.Context, questions *single.Questions) {
	channel := single.ChannelPrefix + "check"
	if _, f.publish = questions.Ask(ctx, "PUBLISH", channel, ""); f.publish == nil {
		f.publish = questions.Subscribe(ctx, channel)
	}
}

// timeOf reads the reply to TIME: seconds and microseconds.
func timeOf(reply any, err error) (time.Time, error) {
	if err != nil {
		return time.Time{}, err
	}
	parts, _ := reply.([]any)
	var numbers [2]int64
	for i := range numbers {
		if len(parts) != len(numbers) {
			return time.Time{}, errNoTime
		}
		text, _ := parts[i].(string)
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return time.Time{}, errNoTime
		}
	}
	return time.Unix(numbers[0], numbers[1]*1000), nil
}

var errNoTime = errors.New("its reply to TIME is no time")

// valueAfter returns the value that follows a name in a list of names and values.
func valueAfter(name string, pairs any) any {
	list, _ := pairs.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		if list[i] == name {
			return list[i+1]
		}
	}
	return nil
}

// parseInfo reads the lines of INFO.
func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields
}
