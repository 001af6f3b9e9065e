package oddserver_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-624411e5/redlock/internal/oddserver"
)

// answer is one way to answer a step.
type answer struct {
	name string
	act  oddserver.Act
}

// says are replies in place of the real one, to a command that the server behind did not get.
func says() []answer {
	raw := []string{
		"+QUEUED\r\n", "+\r\n", "+ok\r\n", "+OKAY\r\n", "+OK\n", "+OK",
		"$2\r\nOK\r\n", "$0\r\n\r\n", "$-1\r\n", "$-2\r\n", "$abc\r\n", "$\r\n", "$5\r\nabcXYZZ", "$2\r\n",
		"$9223372036854775807\r\n", "$999999999999\r\n",
		":0\r\n", ":1\r\n", ":-1\r\n", ":77\r\n", ":9223372036854775807\r\n", ":99999999999999999999\r\n", ":\r\n",
		":1.5\r\n",
		"*0\r\n", "*-1\r\n", "*-5\r\n", "*1\r\n:5\r\n", "*1\r\n*1\r\n:1\r\n", "*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
		"*2\r\n-ERR a\r\n-ERR b\r\n",
		"*3\r\n$9\r\nsubscribe\r\n:1\r\n$1\r\nx\r\n", "*999999999\r\n", "*9223372036854775807\r\n",
		"_\r\n", "#t\r\n", "#f\r\n", "#x\r\n", ",1.5\r\n", ",inf\r\n", "(12345678901234567890123\r\n", "!3\r\nERR\r\n",
		"!999999999999\r\n", "=6\r\ntxt:OK\r\n", "=999999999999\r\n",
		"%1\r\n+a\r\n:1\r\n", "%-1\r\n", "%999999999\r\n", "~1\r\n+OK\r\n", "~999999999\r\n", ">0\r\n",
		">2\r\n+x\r\n:1\r\n", ">-1\r\n", ">999999999\r\n", "|1\r\n+a\r\n+b\r\n:5\r\n", "|999999999\r\n",
		"$?\r\n;2\r\nOK\r\n;0\r\n", "*?\r\n:1\r\n.\r\n", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
		"\x15\x03\x01\x00\x02\x02\x46", "\r\n", "\n", "\x00\x00\x00\x00\r\n",
	}
	for _, text := range append(redisErrors(), "", "ERR", "NOSCRIPT No matching script.", "MOVED 1 127.0.0.1:1",
		"ASK 1 127.0.0.1:1", "MOVED", "MOVED 1 :0",
		"EXECABORT Transaction discarded", strings.Repeat("ERR long ", 12<<10)) {
		raw = append(raw, "-"+text+"\r\n")
	}
	var all []answer
	for _, r := range raw {
		all = append(all, answer{fmt.Sprintf("%.40q", r), oddserver.Say(r)})
	}
	return all
}

// redisErrors are the replies of a server that cannot or will not perform a command.
func redisErrors() []string {
	return []string{
		"WRONGPASS invalid username-password pair or user is disabled.", "NOAUTH Authentication required.",
		"NOPERM this user has no permissions",
		"ERR DB index is out of range", "BUSY Redis is busy running a script.", "LOADING Redis is loading the " +
			"dataset in memory",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "READONLY You can't " +
			"write against a read only replica.",
		"ERR max number of clients reached", "CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request " +
			"during rehashing", "OOM command not allowed when used memory > 'maxmemory'.",
		"ERR unknown command", "ERR syntax error", "MISCONF Redis is configured to save RDB snapshots",
		"NOREPLICAS Not enough good replicas to write.",
	}
}

// vast are replies that would take too much memory.
func vast() []answer {
	const gib = 1 << 30
	return []answer{
		{"2 GiB bulk, streamed", oddserver.Say("$2147483648\r\n").ThenStream("x", 2*gib).ThenHang()},
		{"2 GiB verbatim, streamed", oddserver.Say("=2147483648\r\ntxt:").ThenStream("x", 2*gib).ThenHang()},
		{"endless simple string", oddserver.Say("+").ThenStream("a", 2*gib).ThenHang()},
		{"endless error", oddserver.Say("-ERR ").ThenStream("a", 2*gib).ThenHang()},
		{"endless number", oddserver.Say(":").ThenStream("1", 2*gib).ThenHang()},
		{"endless length", oddserver.Say("$").ThenStream("0", 2*gib).ThenHang()},
		{"endless array", oddserver.Say("*99999999\r\n").ThenStream(":1\r\n", 2*gib).ThenHang()},
		{"endless array of strings", oddserver.Say("*1000\r\n").ThenStream("$1048576\r\n"+strings.Repeat("x", 1<<20)+
			"\r\n", 2*gib).ThenHang()},
		{"endless nesting", oddserver.Say("*1\r\n").ThenStream("*1\r\n", gib/4).ThenHang()},
		{"endless attributes", oddserver.Say("").ThenStream("|1\r\n+a\r\n+b\r\n", gib/4).ThenHang()},
		{"endless attributes within attributes", oddserver.Say("").ThenStream("|1\r\n", gib/4).ThenHang()},
		{"endless pushes", oddserver.Say("").ThenStream(">2\r\n+message\r\n$1\r\nx\r\n", gib/4).ThenHang()},
		{"endless replies", oddserver.After("").ThenStream("+OK\r\n", gib/4).ThenHang()},
		{"a push of 2 GiB", oddserver.Say(">2\r\n+invalidate\r\n$2147483648\r\n").ThenStream("x", 2*gib).ThenHang()},
		{"a map of 2 GiB", oddserver.Say("%1\r\n$2147483648\r\n").ThenStream("x", 2*gib).ThenHang()},
	}
}

// bends are the ways in which a real reply may be damaged on its way.
func bends() []answer {
	return []answer{
		{"silence", oddserver.Silent()},
		{"the reply is lost", oddserver.Unanswered()},
		{"close", oddserver.Say("").ThenClose()},
		{"reset", oddserver.Say("").ThenReset()},
		{"done, then close", oddserver.Lie("").ThenClose()},
		{"done, then reset", oddserver.Lie("").ThenReset()},
		{"half a reply, then silence", oddserver.Cut(3).ThenHang()},
		{"half a reply, then close", oddserver.Cut(3).ThenClose()},
		{"a whole reply but its last byte, then reset", oddserver.Cut(1 << 20).ThenReset()},
		{"half a reply and on with the next", oddserver.Cut(2)},
		{"the reply, then close", oddserver.After("").ThenClose()},
		{"the reply twice", oddserver.Again(1)},
		{"the reply a hundred times", oddserver.Again(100)},
		{"an OK too many behind", oddserver.After("+OK\r\n")},
		{"an OK too many in front", oddserver.Before("+OK\r\n")},
		{"a number too many behind", oddserver.After(":1\r\n")},
		{"a byte too many behind", oddserver.After("+")},
		{"late, behind the next one", oddserver.Late()},
		{"byte by byte", oddserver.Pieces(1)},
		{"a push in front", oddserver.Before(">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n*2\r\n*1\r\n:1\r\n%1\r\n+a\r\n#t\r\n")},
		{"a nested invalidation in front", oddserver.Before(">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n")},
		{"an attribute in front", oddserver.Before("|1\r\n+ttl\r\n:5\r\n")},
		{"done, and QUEUED", oddserver.Lie("+QUEUED\r\n")},
		{"done, and a null", oddserver.Lie("$-1\r\n")},
		{"done, and an error", oddserver.Lie("-ERR no\r\n")},
	}
}

// steps are the steps of the conversation. Each has the events that must come first, so that the step exists.
var steps = []string{
	oddserver.Connect, "HELLO", "AUTH", "SELECT", "CLIENT", // making a connection
	"INFO", "TIME", "CONFIG", "GET", // the restart guard
	"SET", "ZADD", "EVALSHA", "EVAL", // requests
	"SUBSCRIBE", oddserver.Push, // hearing of releases
}

// guarded reports that a step exists only with a restart guard.
func guarded(step string) bool {
	return slices.Contains([]string{"INFO", "TIME", "CONFIG", "GET"}, step)
}

// script plays an act at a step.
func script(step string, act oddserver.Act) oddserver.Script {
	at := oddserver.At(step, act)
	switch step {
	case "AUTH": // is used where HELLO is not
		return oddserver.FirstOf(oddserver.At("HELLO", oddserver.Say("-ERR unknown command 'HELLO'\r\n")), at)
	case "EVAL": // follows an EVALSHA that is not known
		return oddserver.FirstOf(oddserver.At("EVALSHA",
			oddserver.Say("-NOSCRIPT No matching script. Please use EVAL.\r\n")), at)
	}
	return at
}

// oddCase is one answer at one step, on some of five masters.
type oddCase struct {
	step    string
	answer  answer
	odd     int
	brought bool // the masters use a user's go-redis clients
	vast    bool
	check   bool // it is an answer to Check, which asks more than locks do
	number  int
}

// checkSteps are the additional commands of Check.
var checkSteps = []string{"PING", "TIME", "INFO", "CONFIG", "PUBSUB", "GET", "PUBLISH", "SUBSCRIBE"}

func (c oddCase) String() string {
	how := "Dial"
	if c.brought {
		how = "NewMaster"
	}
	if c.check {
		how += ", Check"
	}
	return fmt.Sprintf("%d of 5, %s, %s: %s", c.odd, how, c.step, c.answer.name)
}

// claims reports that the odd servers claim to have done something that they did not do. At the steps of a set-up,
// go-redis takes every reply except an error for success, and cannot notice one reply too many.
func (c oddCase) claims() bool {
	return c.answer.act.Claims(c.step) || c.brought && slices.Contains(setupSteps, c.step)
}

// deadly are replies that end a process with go-redis, by its parser or by its memory. No user of go-redis can
// prevent that, so the library promises nothing about it for a user's client.
func deadly(a answer) bool {
	for _, length := range []string{"9223372036854775807", "999999999", "$-2", "*-5", "%-1", ">-1"} {
		if strings.Contains(a.name, length) {
			return true
		}
	}
	return false
}

// beyond are the deadly cases, each at a step of a connection's beginning, of a request and of a subscription.
func beyond() []oddCase {
	var all []oddCase
	answers := slices.DeleteFunc(says(), func(a answer) bool { return !deadly(a) })
	answers = append(answers, vast()...)
	for _, step := range []string{"HELLO", "SET", "SUBSCRIBE"} {
		for _, a := range answers {
			all = append(all, oddCase{step: step, answer: a, odd: 2, brought: true})
		}
	}
	return all
}

// cases has all cases; those that the library cannot promise to handle come last. The vast answers are made once,
// because they take megabytes.
var cases = sync.OnceValue(func() []oddCase {
	var all []oddCase
	says, bends, vast := says(), bends(), vast()
	for _, step := range steps {
		for _, a := range slices.Concat(says, bends) {
			for _, odd := range []int{2, 3} {
				all = append(all, oddCase{step: step, answer: a, odd: odd})
				if !guarded(step) && !deadly(a) {
					all = append(all, oddCase{step: step, answer: a, odd: odd, brought: true})
				}
			}
		}
		for _, a := range vast {
			all = append(all, oddCase{step: step, answer: a, odd: 2 + len(all)%2, vast: true})
		}
	}
	for _, step := range checkSteps {
		for _, a := range slices.Concat(says, bends) {
			all = append(all, oddCase{step: step, answer: a, odd: 2, check: true})
		}
		for _, a := range vast {
			all = append(all, oddCase{step: step, answer: a, odd: 2, vast: true, check: true})
		}
	}
	all = append(all, beyond()...)
	for i := range all {
		all[i].number = i
	}
	return all
})

// promised returns the numbers of one in so many cases, without the cases that the library cannot promise to handle.
func promised(share int) []int {
	var numbers []int
	for i, n := 0, len(cases())-len(beyond()); i < n; i += share {
		numbers = append(numbers, i)
	}
	return numbers
}
