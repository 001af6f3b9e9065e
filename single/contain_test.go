package single_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

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
				m := opened(t, &opt)
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
