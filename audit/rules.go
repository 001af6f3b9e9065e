package audit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// minMajor and minMinor are the first Redis version with ZADD GT, which keeps fencing counters from falling.
	minMajor, minMinor = 6, 2
	// maxOffset is the clock offset beyond which an operator is likely to set the clock.
	maxOffset = time.Second
	// nearlyFull is the share of maxmemory beyond which writes may soon be refused.
	nearlyFull = 0.9
)

// judge returns the findings about one master. It is pure.
func (s *Settings) judge(f *facts) []Finding {
	j := &judgement{facts: f}
	if f.Err != nil {
		j.unreachable()
		return j.findings
	}
	if !f.client {
		j.add(Note, "Its implementation gives no access to the server.", "Only taking a lock could be tried.",
			"Embed a *single.Master in it, or check the server by hand.")
	}
	j.permissions()
	if f.info != nil {
		j.role()
		j.memory()
		j.durability()
		j.version()
	}
	if f.Latency > 0 {
		j.latency(s)
		j.rate(s.DriftFactor)
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
	if reply := replyIn(j.Err); redis.IsAuthError(reply) {
		j.add(Risk, "It does not let this client in: "+sentence(reply.Error()),
			"Its vote is unknown; a quorum has to do without it.",
			"Give the right user and password.")
		return
	}
	j.add(Risk, "It can't be asked: "+sentence(j.Err.Error()), "Its vote is unknown; a quorum has to do without it.",
		remedy(j.Err, j.secure))
}

// remedy returns advice for a connection that could not be made.
func remedy(err error, secure bool) string {
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isName := errors.AsType[x509.HostnameError](err)
	_, isNoTLS := errors.AsType[tls.RecordHeaderError](err)
	text := err.Error()
	switch {
	case isUnknown || strings.Contains(text, "signed by unknown authority"):
		return "Its certificate is signed by an authority that is not trusted here: give the right authority " +
			"(redlock -tls-ca), or check which server answers at this address."
	case isName || strings.Contains(text, "x509: "):
		return "Its certificate is not valid for this address: check its names, dates and use, and the address."
	case isNoTLS || strings.Contains(text, "does not look like a TLS handshake"):
		return "It does not speak TLS at this port: use redis:// instead of rediss://, or its TLS port."
	case strings.Contains(text, "HTTP/"):
		return "An HTTP server answers at this address: give the host and port of a Redis server."
	case strings.Contains(text, "tls: "):
		return "It refuses this TLS connection: check which certificate and versions it wants (redlock -tls-cert, " +
			"-tls-key)."
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "It closes the connection: it may want TLS (rediss://), refuse this address, or be no Redis server."
	case secure && isTimeout(err): // a Redis without TLS waits for the end of the line
		return "Check that it runs, can be reached from here, and speaks TLS at this port. If it does not speak TLS, " +
			"use redis:// instead of rediss://."
	default:
		return "Check that it runs and can be reached from here."
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

func (j *judgement) permissions() {
	if len(j.denied) > 0 {
		j.add(Note, "It does not answer "+strings.Join(j.denied, ", ")+".",
			"The facts that they report are not checked.",
			"Permit them to this user, or run the check as another user.")
	}
	if j.client && j.publish != nil && isReply(j.publish) {
		j.add(Note, "This user can't publish or subscribe: "+sentence(j.publish.Error()),
			"Waiters are not notified of a release; they find out by trying again.",
			"Permit PUBLISH and SUBSCRIBE on the channels "+single.ChannelPrefix+"*.")
	}
}

func (j *judgement) role() {
	replicas, _ := strconv.Atoi(j.info["connected_slaves"])
	const forgets = "A replica lags behind: if it is promoted, locks that it has not received yet are free for others."
	const alone = "Use single servers as masters, without replicas and without promotion."
	switch {
	case j.info["redis_mode"] == "sentinel":
		j.add(Unsafe, "It is a Sentinel.", "A Sentinel holds no keys.", "List the servers that hold the data.")
	case j.Role == "slave":
		j.add(Unsafe, "It is a replica of "+net.JoinHostPort(j.info["master_host"], j.info["master_port"])+".",
			"It has no independent vote: its master decides which locks it holds.", "List independent masters.")
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
			"If maxmemory is set one day, locks are evicted.", fix)
	}
	if limit > 0 && used > nearlyFull*limit {
		j.add(Risk, fmt.Sprintf("Its memory is full to %.0f%%.", 100*used/limit),
			"With noeviction it refuses locks when it is full.", "Give it more memory, or fewer other keys.")
	}
}

func (j *judgement) durability() {
	const fix = "appendonly yes and appendfsync always; or a restart guard (Options.RestartGuard with Dial or " +
		"single.Open; redlock -restart-guard)."
	switch {
	case j.info["loading"] == "1":
		j.add(Risk, "It is loading its data.", "It does not vote until it has loaded them.", "Wait.")
	case j.info["aof_last_write_status"] == "err":
		j.add(Risk, "It could not write its append-only file.", "It refuses locks, or forgets them with a restart.",
			"Repair its disk.")
	case j.info["rdb_last_bgsave_status"] == "err" && j.config["save"] != "":
		j.add(Risk, "Its last snapshot failed.",
			"It refuses writes until a snapshot succeeds (stop-writes-on-bgsave-error), locks too.",
			"Repair its disk, or turn snapshots off.")
	}
	switch {
	case j.keepsAll():
	case j.Guard > 0:
		j.add(Note, fmt.Sprintf("It may forget locks with a restart, and does not vote for %v after one.", j.Guard),
			"That is safe as long as no ttl is longer, for every user of these masters.",
			"Keep the guard at the longest ttl.")
	case j.info["aof_enabled"] != "1":
		j.add(Unsafe, "A restart loses its data (persistence: "+j.Persistence+"), and it votes again at once.",
			"After a restart it has forgotten its locks, so two clients can get a majority.", fix)
	case j.config == nil:
		j.add(Note, "It writes an append-only file; how often it fsyncs is not known.",
			"Locks of the last second may be gone after its machine crashed.", fix)
	default:
		j.add(Risk, "It answers before its data is on disk (persistence: "+j.Persistence+").",
			"If its machine crashes, it forgets the latest locks, and two clients can get a majority.", fix)
	}
}

func (j *judgement) version() {
	parts := strings.SplitN(j.Version, ".", 3)
	if len(parts) < 2 {
		return
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if errors.Join(err, err2) == nil && (major < minMajor || major == minMajor && minor < minMinor) {
		j.add(Risk, "It is Redis "+j.Version+".",
			"It does not know ZADD GT, which fenced locks need, and before version 5 no script may write after it "+
				"has read the time; "+
				"its votes are errors then.",
			fmt.Sprintf("Use version %d.%d or later, or Valkey.", minMajor, minMinor))
	}
}

func (j *judgement) latency(s *Settings) {
	need := 2 * j.Latency // the median; many requests take longer
	what := fmt.Sprintf("It answers in %v.", j.Latency.Round(10*time.Microsecond))
	switch {
	case s.RequestTimeout > 0 && need > s.RequestTimeout:
		j.add(Risk, what, fmt.Sprintf("Options.RequestTimeout is %v: votes will often be unknown.", s.RequestTimeout),
			"Raise Options.RequestTimeout, or move the master closer.")
	case s.RequestTimeout == 0 && need > s.MostTimeout:
		j.add(Risk, what,
			fmt.Sprintf("No request may take longer than %v: votes will often be unknown.", s.MostTimeout),
			"Set Options.RequestTimeout, or move the master closer.")
	case s.RequestTimeout == 0 && need > s.LeastTimeout:
		j.add(Note, what,
			fmt.Sprintf("A request may take a twentieth of the ttl: with ttls below %v votes will often be unknown.",
				(time.Duration(s.TimeoutShare)*need).Round(10*time.Millisecond)),
			"Use longer ttls, or set Options.RequestTimeout.")
	}
}

func (j *judgement) rate(driftFactor float64) {
	faster := "faster"
	if j.ClockRate < 0 {
		faster = "slower"
	}
	switch off := math.Abs(j.ClockRate); {
	case off-j.ClockRateError > driftFactor:
		j.add(Unsafe, fmt.Sprintf("Its clock ran %.1f%% %s than this machine's during the check.", 100*off, faster),
			fmt.Sprintf("Options.DriftFactor allows for %.1f%%: it may expire locks before their holders know. Or "+
				"its clock was set during the check.",
				100*driftFactor), "Let a time service slew its clock, and never step it.")
	case j.ClockRateError > driftFactor:
		j.add(Note, fmt.Sprintf("The rate of its clock is known only to within %.0f%%.", 100*j.ClockRateError),
			"It is too far away, or too busy, for a better measurement.", "Check from a machine that is closer.")
	}
}

func (j *judgement) locking() {
	switch {
	case j.wrong != "":
		j.add(Unsafe, j.wrong, "Locks do not work on it, whatever server it is.",
			"Use a Redis or Valkey server, without a proxy that rewrites commands.")
	case j.probe == nil || j.Role == "slave":
	case j.otherKeys():
		j.add(Note, "This user may only use certain keys: "+sentence(j.probe.Error()),
			"Taking a lock could not be tried.",
			"Besides the keys of locks, permit redlock:queue:*, redlock:token:* and, for this check, redlock:check:*.")
	case notPermitted(j.probe):
		j.add(Risk, "This user may not do what a lock needs: "+sentence(j.probe.Error()),
			"Its votes are always unknown.",
			"Permit SET, GET, DEL, PTTL, EVAL and EVALSHA, and the commands that the scripts call.")
	default:
		j.add(Risk, "A lock could not be taken: "+sentence(j.probe.Error()), "Its votes are unknown.", cure(j.probe))
	}
}

// cure returns advice for a server's refusal to grant a lock.
func cure(err error) string {
	code, _, _ := strings.Cut(err.Error(), " ")
	switch code {
	case "OOM":
		return "Raise maxmemory, also in its configuration file, or remove other data."
	case "MISCONF":
		return "Make room on its disk. It accepts writes again by itself, after seconds."
	case "NOREPLICAS":
		return "CONFIG SET min-replicas-to-write 0, also in its configuration file."
	}
	return "Look up this error of the server."
}

// otherKeys reports whether the server refused the trial lock because of its key. Then this user may be allowed other
// keys.
func (f *facts) otherKeys() bool {
	return notPermitted(f.probe) && strings.Contains(f.probe.Error(), " key")
}

// refusals are texts in a server's error that mean: this user may not run the command. The first is for a plain
// command. The others are for a command in a script, as Redis 7.0, Redis 7.2 and later, and Valkey word it.
var refusals = []string{
	"NOPERM", "can't run this command", "can't access at least one of the keys", "ACL failure in script",
}

// notPermitted reports whether the server refused a command to this user, also a command inside a script.
func notPermitted(err error) bool {
	return isReply(err) && slices.ContainsFunc(refusals, func(words string) bool {
		return strings.Contains(err.Error(), words)
	})
}

// sentence ends a text from another source with a full stop.
func sentence(text string) string { return strings.TrimRight(text, ". ") + "." }
