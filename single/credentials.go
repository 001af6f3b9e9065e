package single

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// maxAbandoned bounds the calls of a user's credentials provider that are waited for no more and have not returned.
const maxAbandoned = 4

// credentials is where opt takes user and password from, in go-redis's order; nil when there are none.
func credentials(opt *redis.Options) func(context.Context) (user, password string, err error) {
	switch {
	case opt.CredentialsProviderContext != nil:
		return (&provider{call: opt.CredentialsProviderContext}).ask
	case opt.CredentialsProvider != nil:
		return (&provider{call: func(context.Context) (string, string, error) {
			user, password := opt.CredentialsProvider()
			return user, password, nil
		}}).ask
	case opt.Password != "":
		return func(context.Context) (string, string, error) { return opt.Username, opt.Password, nil }
	default:
		return nil
	}
}

// provider is a user's function that may not return when its context ends, or never.
type provider struct {
	call      func(context.Context) (user, password string, err error)
	abandoned atomic.Int32
}

// ask calls it in a goroutine of its own, and goes without it at ctx's end.
func (p *provider) ask(ctx context.Context) (user, password string, err error) {
	if n := p.abandoned.Load(); n >= maxAbandoned {
		return "", "", fmt.Errorf("the credentials provider has not returned from %d earlier calls", n)
	}
	var over atomic.Bool // whichever of the two comes last knows by it
	answered := make(chan struct{})
	var u, pw string
	var e error
	go func() {
		u, pw, e = p.call(ctx)
		close(answered)
		if !over.CompareAndSwap(false, true) {
			p.abandoned.Add(-1)
		}
	}()
	select {
	case <-answered:
		return u, pw, e
	case <-ctx.Done():
	}
	p.abandoned.Add(1)
	if !over.CompareAndSwap(false, true) {
		p.abandoned.Add(-1) // it returned at this very moment
	}
	return "", "", fmt.Errorf("the credentials provider has not returned: %w", ctx.Err())
}
