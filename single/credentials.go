package single

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// maxAbandoned bounds the calls of a user's credentials provider that have not returned and that no one waits for any
// more.
const maxAbandoned = 4

// credentials returns opt's source of user and password; nil if there is none. [contain] must have wrapped opt before.
func credentials(opt *redis.Options) func(context.Context) (user, password string, err error) {
	switch {
	case opt.CredentialsProviderContext != nil:
		return opt.CredentialsProviderContext
	case opt.Password != "":
		return func(context.Context) (string, string, error) { return opt.Username, opt.Password, nil }
	default:
		return nil
	}
}

// provided returns the provider of opt that go-redis would use; nil if it has none.
func provided(opt *redis.Options) func(context.Context) (user, password string, err error) {
	call, plain := opt.CredentialsProviderContext, opt.CredentialsProvider
	if call == nil && plain != nil {
		call = func(context.Context) (string, string, error) {
			user, password := plain()
			return user, password, nil
		}
	}
	if call == nil {
		return nil
	}
	return (&provider{call: call, password: opt.Password}).ask
}

// isProvided reports whether a user's function makes the credentials, in one of go-redis's three ways.
func isProvided(
	withContext func(context.Context) (user, password string, err error), plain func() (user, password string),
	streaming auth.StreamingCredentialsProvider,
) bool {
	return withContext != nil || plain != nil || streaming != nil
}

// provider is a user's function. It may return late after its context ends, or never.
type provider struct {
	call      func(context.Context) (user, password string, err error)
	password  string // is not shown
	abandoned abandoned
}

// ask calls the provider in a separate goroutine, and stops waiting for it when ctx ends.
func (p *provider) ask(ctx context.Context) (user, password string, err error) {
	if n := p.abandoned.Load(); n >= maxAbandoned {
		return "", "", fmt.Errorf("the credentials provider has not returned from %d earlier calls", n)
	}
	var u, pw string
	var e error
	if p.abandoned.wait(ctx, func() {
		e = contained("credentials provider", p.password, func() (err error) {
			u, pw, err = p.call(ctx)
			return err
		})
	}) {
		return u, pw, e
	}
	return "", "", fmt.Errorf("the credentials provider has not returned: %w", ctx.Err())
}
