package single_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

// hanging is a credentials provider that does not return.
type hanging struct {
	release      chan struct{}
	mu           sync.Mutex
	called, most int
}

func (h *hanging) credentials() (user, password string) {
	h.mu.Lock()
	h.called++
	h.most = max(h.most, h.called)
	h.mu.Unlock()
	<-h.release
	h.mu.Lock()
	h.called--
	h.mu.Unlock()
	return "default", "password"
}

// A hanging credentials provider costs a bounded number of goroutines, and delays only its own connections.
func TestAHangingCredentialsProviderCostsABoundedNumberOfGoroutines(t *testing.T) {
	const size, abandoned = 3, 4
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(0)}
		h := &hanging{release: make(chan struct{})}
		m := f.master(t, redis.Options{PoolSize: size, CredentialsProvider: h.credentials})
		var last error
		for range 1000 {
			_, last = tryFor(t, m, "key", 20*time.Millisecond)
		}
		if h.most > size+abandoned || last == nil || !strings.Contains(last.Error(), "credentials provider") {
			t.Errorf("%d concurrent calls of the hanging provider; the last error is %v", h.most, last)
		}
		close(h.release)
		synctest.Wait()
		if ok, err := tryFor(t, m, "key", time.Second); !ok {
			t.Errorf("when the provider returns again: %v", err)
		}
		must(t, m.Close())
	})
	synctest.Test(t, func(t *testing.T) { // Close, while it hangs
		f := &far{takes: after(0)}
		h := &hanging{release: make(chan struct{})}
		m := f.master(t, redis.Options{CredentialsProvider: h.credentials})
		_, _ = tryFor(t, m, "key", 20*time.Millisecond)
		began := time.Now()
		must(t, m.Close())
		if took := time.Since(began); took > 0 {
			t.Errorf("Close took %v", took)
		}
		close(h.release)
	})
}

// If a user's function panics or exits its goroutine, that is an error of its master. The goroutines that call the
// function go on, so the master votes when the function works again.
func TestHazard110AUsersFunctionThatPanicsIsAnErrorOfItsMaster(t *testing.T) {
	const secret = "p4ssw0rd"
	for what, end := range map[string]func(){
		//nolint:forbidigo // the user's
		"panicked: broken with …": func() { panic("broken with " + secret) },
		//nolint:forbidigo // the user's
		"panicked: a value of type struct":       func() { panic(struct{ password string }{secret}) },
		"ended its goroutine instead of returni": runtime.Goexit,
	} {
		for _, whose := range []string{"credentials provider", "dialer"} {
			synctest.Test(t, func(t *testing.T) {
				f := &far{takes: after(0)}
				works := false
				fails := func(which string) {
					if which == whose && !works {
						end()
					}
				}
				opt := redis.Options{Addr: "far:6379", Password: secret}
				opt.CredentialsProvider = func() (user, password string) {
					fails("credentials provider")
					return "", secret
				}
				opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					fails("dialer")
					return f.dial(ctx, network, addr)
				}
				m := opened(t, &opt, single.Options{})
				for range 20 { // more than are left behind when they hang
					_, err := tryFor(t, m, "key", 20*time.Millisecond)
					if err == nil || !strings.Contains(err.Error(), whose+" "+what) ||
						strings.Contains(err.Error(), secret) {
						t.Fatalf("%s: %v; want an error that says it %s", whose, err, what)
					}
				}
				works = true
				if ok, err := tryFor(t, m, "key", time.Second); !ok {
					t.Errorf("when the %s returns again: %v", whose, err)
				}
				must(t, m.Close())
			})
		}
	}
}
