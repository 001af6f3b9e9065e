package single

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// This file turns a panic in a user's function into an error of one master. The library and go-redis call such
// functions from their own goroutines. There a panic would end the process, and runtime.Goexit would end the
// goroutine.

// contain wraps the functions of opt that make connections.
func contain(opt *redis.Options) {
	password := opt.Password
	if dial := opt.Dialer; dial != nil {
		opt.Dialer = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
			err = contained("dialer", password, func() (err error) {
				conn, err = dial(ctx, network, addr)
				return err
			})
			return conn, err
		}
	}
	if call := opt.OnConnect; call != nil {
		opt.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
			return contained("OnConnect", password, func() error { return call(ctx, conn) })
		}
	}
	opt.CredentialsProviderContext, opt.CredentialsProvider = provided(opt), nil
}

// contained calls a function in another goroutine and returns its error. A panic becomes an error, and so does
// runtime.Goexit.
func contained(what, password string, call func() error) error {
	ended := make(chan error, 1)
	go func() {
		err := fmt.Errorf("the %s ended its goroutine instead of returning", what)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the %s panicked: %s", what, shown(p, password))
			}
			ended <- err
		}()
		err = call()
	}()
	return <-ended
}

// abandoned counts calls that have not returned and that nobody waits for any more.
type abandoned struct{ atomic.Int32 }

// wait runs call in another goroutine, and reports whether it has returned before ctx ended. Otherwise it counts until
// it returns.
func (a *abandoned) wait(ctx context.Context, call func()) bool {
	var over atomic.Bool // the later one of the two corrects the count
	ended := make(chan struct{})
	go func() {
		call()
		close(ended)
		if !over.CompareAndSwap(false, true) {
			a.Add(-1)
		}
	}()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	a.Add(1)
	if !over.CompareAndSwap(false, true) {
		a.Add(-1) // it returned at this very moment
	}
	return false
}

// shown returns the value of a panic, without the password. Any value but a text may have the password in a field, so
// only its type is shown.
func shown(p any, password string) string {
	var text string
	switch p := p.(type) {
	case error:
		text = p.Error()
	case string:
		text = p
	default:
		return fmt.Sprintf("a value of type %T", p)
	}
	if password != "" {
		text = strings.ReplaceAll(text, password, "…")
	}
	return bounded(errors.New(text)).Error()
}
