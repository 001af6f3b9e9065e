package oddserver_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// fragments are the parts of odd replies, besides random bytes.
var fragments = []string{
	"+OK\r\n", "+", "-ERR x\r\n", "-NOSCRIPT x\r\n", ":1\r\n", ":", "$2\r\nOK\r\n", "$-1\r\n", "$", "*1\r\n", "*3\r\n",
	"*", "%1\r\n", "%", "~2\r\n", ">2\r\n", ">",
	"|1\r\n+a\r\n:1\r\n", "|", "_\r\n", "#t\r\n", ",1\r\n", "(1\r\n", "!3\r\nERR\r\n", "=6\r\ntxt:OK\r\n", "999999999",
	"2147483648\r\n", "-5\r\n", "0\r\n", "\r\n",
	"$9\r\nsubscribe\r\n", "$7\r\nmessage\r\n",
}

// odd makes a script from bytes: rules with a step, a way, a length and a number of fragments.
func odd(data []byte) (s oddserver.Script, claims bool) {
	var rules []oddserver.Script
	for len(data) >= 3 && len(rules) < 4 {
		step, way, n := steps[int(data[0])%len(steps)], data[1], int(data[2])%8
		data = data[3:]
		raw := ""
		for ; n > 0 && len(data) > 0; n-- {
			if b := data[0]; b < 128 {
				raw += fragments[int(b)%len(fragments)]
			} else {
				raw += string([]byte{b - 128})
			}
			data = data[1:]
		}
		act := acts(raw)[int(way)%len(acts(raw))]
		claims = claims || act.Claims(step)
		rules = append(rules, script(step, act))
	}
	return oddserver.FirstOf(rules...), claims
}

func acts(raw string) []oddserver.Act {
	return []oddserver.Act{
		oddserver.Say(raw), oddserver.Say(raw).ThenHang(), oddserver.Say(raw).ThenClose(),
		oddserver.Say(raw).ThenReset(), oddserver.Lie(raw),
		oddserver.Before(raw), oddserver.After(raw), oddserver.Again(1), oddserver.Late(), oddserver.Pieces(1),
		oddserver.Unanswered(), oddserver.Cut(2).ThenClose(),
		oddserver.Say(raw).ThenStream("x", 64<<20).ThenHang(), oddserver.Say("").ThenStream(raw+"\r\n", 16<<20).
			ThenHang(),
	}
}

// FuzzOddServers: two of five masters may say anything at any step. Locks are still taken, exclude each other and are
// released. If three masters do, every call still ends.
func FuzzOddServers(f *testing.F) {
	var addrs []string
	for _, s := range redistest.StartN(f, 5, redistest.WithPassword(password)) {
		addrs = append(addrs, s.Addr())
	}
	w := newWorld(addrs)
	f.Cleanup(w.close)
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { watchMemory(2*maxResident+allowedResident, stop) }) // the fuzzer itself needs some
	f.Cleanup(func() { close(stop); watch.Wait() })
	for i := range steps {
		f.Add([]byte{byte(i), 0, 1, 0, byte(i + 1), 1, 2, 8, 9}, false)
		f.Add([]byte{byte(i), 12, 2, 8, 26, byte(i + 1), 6, 1, 0}, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, fenced bool) {
		var opts []redlock.Option
		if fenced {
			opts = append(opts, redlock.Fenced())
		}
		script, claims := odd(data)
		for _, odds := range []int{2, 3} {
			s, err := w.stand(script, odds, len(data), false, false)
			must(t, err)
			key := fmt.Sprintf("fuzz:%d:%d", runs.Add(1), time.Now().UnixNano())
			if odds == 2 {
				err = s.quorum(key, longTTL, opts, "", claims)
			} else {
				err = s.noQuorum(key, longTTL, opts, claims)
			}
			s.close()
			if err != nil {
				t.Errorf("%d of 5: %v", odds, err)
			}
		}
	})
}
