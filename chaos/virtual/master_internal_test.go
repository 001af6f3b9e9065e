package virtual

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// commands are what locks send, with every kind of reply that a script can have.
var commands = [][]any{
	{"set", "k", "v", "nx", "px", 60000},
	{"set", "k", "w", "nx", "px", 60000},
	{"get", "k"},
	{"get", "none"},
	{"evalsha", strings.Repeat("0", 40), 0},
	{"eval", "return 3.7", 0},
	{"eval", "return 'text'", 0},
	{"eval", "return true", 0},
	{"eval", "return false", 0},
	{"eval", "return nil", 0},
	{"eval", "return {1, 'two', {3, {}}, false, 4}", 0},
	{"eval", "return {1, nil, 3}", 0},
	{"eval", "return {ok = 'FINE'}", 0},
	{"eval", "return {err = 'BAD thing'}", 0},
	{"eval", "return redis.status_reply('FINE')", 0},
	{"eval", "return redis.error_reply('BAD thing')", 0},
	{"eval", "return {KEYS[1], KEYS[2], ARGV[1], #ARGV}", 2, "a", "b", "c"},
	{"eval", "return redis.call('get', KEYS[1]) == ARGV[1]", 1, "k", "v"},
	{"eval", "return redis.call('set', 'other', 1, 'px', 60000)", 0},
	{"eval", "return redis.call('set', 'other', 2, 'nx')", 0},
	{"eval", "return type(redis.call('get', 'none'))", 0},
	{"eval", "return redis.call('incr', 'k')", 0},
	{"eval", "return redis.pcall('incr', 'k')", 0},
	{"eval", "local r = redis.pcall('incr', 'k') return type(r) .. type(r['err'])", 0},
	{"eval", "return redis.call('lpush', 'k', 1)", 0},
	{"eval", "redis.call('no-such-command')", 0},
	{"eval", "error('boom')", 0},
	{"eval", "x = 1 return x", 0},
	{"eval", "return x", 0},
	{"eval", "return redis.call('set', 'other', ARGV[1])", 0},
	{"eval", "return redis.call('set', 'other', true)", 0},
	{"eval", "this is no Lua", 0},
	{"eval", "return 1", 3, "a"},
	{"eval", "return redis.sha1hex('x')", 0},
	{"eval", "return {math.floor(7 / 2), string.sub('hello', 2, 3), tonumber('0x10')}", 0},
	{"zadd", "z", "gt", "ch", 5, "a"},
	{"zadd", "z", 3, "b", 9, "c"},
	{"zadd", "z", "gt", "ch", 4, "a"},
	{"eval", "return redis.call('zrangebyscore', 'z', '(3', '+inf', 'limit', 0, 2)", 0},
	{"eval", "return redis.call('zscore', 'z', 'a')", 0},
	{"eval", "return redis.call('zcard', 'z')", 0},
	{"hset", "h", "f", 1},
	{"eval", "return redis.call('hincrby', 'h', 'f', 4)", 0},
	{"hexists", "h", "f"},
	{"pexpire", "h", 60000},
	{"eval", "return redis.call('pttl', 'h') > 50000", 0},
	{"persist", "h"},
	{"pttl", "h"},
	{"publish", "nobody", "x"},
	{"pubsub", "numsub", "nobody"},
	{"exists", "k", "z", "none"},
	{"del", "k", "none"},
	{"mget", "k", "other"},
	{"script", "exists", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"},
	{"eval", "return 1", 0},
	{"evalsha", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0},
	{"script", "exists", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "abc"},
}

// replies returns the replies to the commands, as text; of an error only its code.
func replies(rdb *redis.Client) (out []string) {
	for _, args := range commands {
		v, err := rdb.Do(context.Background(), args...).Result()
		switch {
		case errors.Is(err, redis.Nil):
			out = append(out, "nil")
		case err != nil:
			code, _, _ := strings.Cut(err.Error(), " ")
			out = append(out, "error "+code)
		default:
			out = append(out, fmt.Sprintf("%T %v", v, v))
		}
	}
	return out
}

func TestMastersInMemoryReplyAsAServerDoes(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		server := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr(), Protocol: protocol})
		want := replies(server)
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		alone(t, &Schedule{}, func(_ *world, masters []endpoint.Endpoint) {
			opt, err := endpoint.Options(masters[0])
			if err != nil {
				t.Error(err)
				return
			}
			opt.Protocol = protocol
			rdb := redis.NewClient(opt)
			got = replies(rdb)
			if err := rdb.Close(); err != nil {
				t.Error(err)
			}
		})
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Errorf("RESP%d: %v: a server says %q, and the master in memory %q", protocol, commands[i], want[i],
					got[i])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d replies, want %d", len(got), len(want))
		}
	}
}

// alone gives one client of one master to a function, in a bubble.
func alone(t *testing.T, s *Schedule, do func(*world, []endpoint.Endpoint)) {
	t.Helper()
	if len(s.Masters) == 0 {
		s.Masters = []Master{{}}
	}
	s.Clients = []Process{{}}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(s, Lock("none", nil))
		w.start()
		defer w.shut()
		if err := w.openMasters(); err != nil {
			t.Error(err)
			return
		}
		c := w.newClient(0)
		w.arm()
		do(w, c.endpoints())
	})
}

func TestACrashLosesScripts(t *testing.T) {
	const second = time.Second
	crash := Fault{Kind: Crash, At: second, For: second, Masters: []int{0}, Client: everyone}
	alone(t, &Schedule{Faults: []Fault{crash}}, func(_ *world, masters []endpoint.Endpoint) {
		opt, err := endpoint.Options(masters[0])
		if err != nil {
			t.Error(err)
			return
		}
		rdb := redis.NewClient(opt)
		sha, err := rdb.ScriptLoad(context.Background(), "return 7").Result()
		if err != nil {
			t.Error(err)
		}
		if n, err := rdb.EvalSha(context.Background(), sha, nil).Int(); err != nil || n != 7 {
			t.Errorf("before the crash: %d, %v", n, err)
		}
		<-time.After(3 * second)
		if _, err := rdb.EvalSha(context.Background(), sha, nil).Int(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("after the crash: %v, want NOSCRIPT", err)
		}
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestASubscriberGetsMessagesOfScripts(t *testing.T) {
	alone(t, &Schedule{}, func(_ *world, masters []endpoint.Endpoint) {
		opt, err := endpoint.Options(masters[0])
		if err != nil {
			t.Error(err)
			return
		}
		rdb := redis.NewClient(opt)
		sub := rdb.Subscribe(context.Background(), "news")
		if _, err := sub.Receive(context.Background()); err != nil {
			t.Error(err)
		}
		n, err := rdb.Eval(context.Background(), "return redis.call('publish', 'news', ARGV[1])", nil, "hello").Int()
		if err != nil || n != 1 {
			t.Errorf("%d subscribers, %v", n, err)
		}
		if m, err := sub.ReceiveMessage(context.Background()); err != nil || m.Payload != "hello" {
			t.Errorf("message %v, %v", m, err)
		}
		if err := errors.Join(sub.Close(), rdb.Close()); err != nil {
			t.Error(err)
		}
	})
}

// request sends a PING over a new connection, and returns how long the reply took.
func request(t *testing.T, e endpoint.Endpoint, within time.Duration) (took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	began := time.Now()
	c, err := e.Dialer(ctx, "tcp", e.Addr)
	if err != nil {
		return time.Since(began), err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(began.Add(within)); err != nil {
		return 0, err
	}
	if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return time.Since(began), err
	}
	b := make([]byte, 16)
	n, err := c.Read(b)
	if err == nil && string(b[:n]) != "+PONG\r\n" {
		err = fmt.Errorf("read %q", b[:n])
	}
	return time.Since(began), err
}

func TestFaultsDoWhatTheySay(t *testing.T) {
	const second = time.Second
	one := func(kind FaultKind) []Fault {
		const by = 100 * time.Millisecond
		return []Fault{{Kind: kind, At: second, For: 2 * second, By: by, Masters: []int{0}, Client: everyone}}
	}
	for kind, c := range map[FaultKind]struct {
		took  time.Duration // of a request in the middle of the fault, at least
		fails string        // its error
	}{
		"":  {0, ""},
		Cut: {second, ""}, CutRequests: {second, ""}, CutReplies: {second, ""}, Freeze: {second, ""},
		Slow: {400 * time.Millisecond, ""}, Crash: {0, "refused"}, Forget: {0, "refused"}, Reset: {0, ""},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := &Schedule{MinDelay: time.Millisecond, MaxDelay: time.Millisecond}
			if kind != "" {
				s.Faults = one(kind)
			}
			alone(t, s, func(_ *world, masters []endpoint.Endpoint) {
				<-time.After(2 * second)
				took, err := request(t, masters[0], 5*second)
				if text := fmt.Sprint(err); c.fails == "" && err != nil || !strings.Contains(text, c.fails) {
					t.Errorf("during the fault: %v, want %q", err, c.fails)
				}
				if took < c.took || took > c.took+10*time.Millisecond {
					t.Errorf("during the fault a request takes %v, want %v", took, c.took)
				}
				<-time.After(2 * second)
				if took, err := request(t, masters[0], second); err != nil || took > 10*time.Millisecond {
					t.Errorf("after the fault: %v, %v", took, err)
				}
			})
		})
	}
}

func TestAResetLosesWhatHasNotArrived(t *testing.T) {
	one := func(kind FaultKind, at, lasts time.Duration) Fault {
		return Fault{Kind: kind, At: at, For: lasts, Masters: []int{0}, Client: everyone}
	}
	const before, later, second = 100 * time.Millisecond, 500 * time.Millisecond, time.Second
	for name, c := range map[string]struct {
		hard   bool
		faults []Fault
		wanted string
	}{
		"closed":                 {false, []Fault{one(Cut, before, second)}, "v"},
		"reset":                  {true, []Fault{one(Cut, before, second)}, ""},
		"reset, and it has come": {true, []Fault{one(Freeze, before, second)}, "v"},
		"the master crashed":     {false, []Fault{one(Freeze, before, second), one(Crash, later, 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Schedule{MinDelay: time.Millisecond, MaxDelay: time.Millisecond, Faults: c.faults}
			alone(t, s, func(w *world, masters []endpoint.Endpoint) {
				conn, err := masters[0].Dialer(context.Background(), "tcp", "")
				if err != nil {
					t.Error(err)
					return
				}
				if c.hard {
					_ = conn.(interface{ SetLinger(seconds int) error }).SetLinger(0)
				}
				<-time.After(200 * time.Millisecond)
				if _, err := conn.Write([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")); err != nil {
					t.Error(err)
				}
				<-time.After(100 * time.Millisecond)
				_ = conn.Close()
				<-time.After(3 * time.Second)
				if got := w.masters[0].engine.Text("k"); got != c.wanted {
					t.Errorf("the master has %q, want %q", got, c.wanted)
				}
			})
		})
	}
}
