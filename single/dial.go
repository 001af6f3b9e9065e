package single

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout bounds a new connection where a request's own deadline does not.
const dialTimeout = time.Second

// Dial makes a Master from a URL as [redis.ParseURL] reads it: redis://user:password@host:port/db, rediss:// for TLS,
// unix:// for a socket. It connects when the first request is sent. Errors never contain the URL's credentials.
func Dial(rawURL string, opts Options) (*Master, error) {
	opt, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("single: master URL: %s", complaint(rawURL))
	}
	return Open(opt, opts)
}

// Open makes a Master with connections of its own from opt, on which it sets what a lock needs: requests are sent
// once, obey their deadline, and a connection is closed with a reset, so that what a stopped or unreachable master
// has not been given yet is discarded and does not arrive minutes later. opt itself is not changed.
func Open(opt *redis.Options, opts Options) (*Master, error) {
	if opt == nil {
		return nil, errors.New("single: nil options")
	}
	own := *opt
	own.MaxRetries = -1 // none; 0 would mean three
	own.ContextTimeoutEnabled = true
	own.DialerRetries = 1
	own.DialTimeout = dialTimeout
	own.Dialer = dialer(&own)
	if own.ReadTimeout == 0 {
		own.ReadTimeout = dialTimeout // for setting up connections; requests bring their own deadline
	}
	own.DisableIdentity = true // a new connection is one round trip from use
	own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if own.Protocol == 0 {
		own.Protocol = 2
	}
	if own.PoolSize == 0 {
		own.PoolSize = maxInFlight + 2
	}
	if opts.Name == "" {
		opts.Name = own.Addr
	}
	g, err := newGuard(opts.Name, opts)
	if err != nil {
		return nil, err
	}
	if g != nil {
		own.OnConnect = g.onConnect(own.OnConnect)
	}
	opts.RestartGuard = 0 // applied
	m, err := New(redis.NewClient(&own), opts)
	if err != nil {
		return nil, err
	}
	m.owned, m.guard = true, g
	if client, ok := m.client.(*redis.Client); ok && direct(&own) {
		m.carrier = newWires(&own, client)
	}
	return m, nil
}

// complaint says what is wrong with a URL that does not parse, and quotes nothing of it: what a password with a
// slash in it did to the rest can't be told from the password.
func complaint(rawURL string) string {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return "not a URL; is there a character in the password that must be percent-encoded?"
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return "the scheme must be redis, rediss or unix"
	case u.Host == "" && u.Scheme != "unix":
		return "there is no host"
	default:
		return "the path must be a database number and the query known options; a password's special characters must be " +
			"percent-encoded"
	}
}
