package single

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// defaultPoolSize is the default bound of connections: one for each batch in flight to a distant master,
// and two more.
const defaultPoolSize = 18

// dialTimeout bounds the making of a connection, which may outlast a request's deadline.
const dialTimeout = time.Second

// Dial makes a Master from a URL that [ParseURL] accepts. It connects when the first request is sent.
func Dial(rawURL string, opts Options) (*Master, error) {
	opt, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return Open(opt, opts)
}

// ParseURL reads the URL of a master: redis://user:password@host:port/db, rediss:// for TLS, unix:// for a socket.
// valkey:// is redis://, and valkeys:// is rediss://. Settings follow a question mark, as in [redis.ParseURL]. A URL
// cannot contain everything, for example your own certificate authority: set such options in the result, and give it
// to [Open].
//
// An error quotes no part of the URL, which may contain a password. A URL cannot turn off the verification of
// certificates: skip_verify is an error.
func ParseURL(rawURL string) (*redis.Options, error) {
	opt, err := redis.ParseURL(asRedis(rawURL))
	if err != nil {
		return nil, fmt.Errorf("single: master URL: %s", complaint(rawURL))
	}
	if opt.TLSConfig != nil && opt.TLSConfig.InsecureSkipVerify {
		return nil,
			errors.New("single: master URL: skip_verify would send passwords to whoever answers; use Open, with a " +
				"tls.Config " +
				"that has the server's authority")
	}
	switch u, err := url.Parse(rawURL); {
	case err != nil:
	case u.Opaque != "": // which would be this machine
		return nil, errors.New("single: master URL: there is no // after the scheme")
	case strings.Contains(rawURL, "#"): // what follows it would be left out
		return nil, errors.New("single: master URL: there is a #; in a password it is written %23")
	case strings.Contains(opt.Addr, ","):
		return nil, errors.New("single: master URL: there is a comma in the address; each master has a URL of its own")
	case strings.Contains(u.Hostname(), ":") && !strings.Contains(u.Host, "["):
		return nil, errors.New("single: master URL: there is more than one : in the address; a user and a password " +
			"end with @, and an IPv6 address is written in brackets")
	}
	return opt, checkOptions(opt)
}

// schemes maps Valkey's URL schemes to go-redis's.
var schemes = map[string]string{"valkey": "redis", "valkeys": "rediss"}

// asRedis returns the URL with a scheme that go-redis knows.
func asRedis(rawURL string) string {
	if scheme, rest, found := strings.Cut(rawURL, ":"); found {
		if known, ok := schemes[strings.ToLower(scheme)]; ok {
			return known + ":" + rest
		}
	}
	return rawURL
}

// Open makes a Master with its own connections. It copies opt and sets the options that a lock needs: requests are
// sent once and obey their deadline, and connections are closed with a reset. After a reset the system discards all
// that a stopped or unreachable master has not received, so it does not arrive minutes later.
//
// There are at most opt.PoolSize connections, 18 by default. A connect takes at most a second. The set-up of a
// connection takes at most opt.ReadTimeout, a second by default. opt.DialTimeout and opt.MinIdleConns do nothing. A
// connection that comes too late for its request is kept for the next ones.
//
// A Dialer in opt must return when its context ends. If it wraps connections, they should have SetLinger,
// SyscallConn, or a NetConn that returns the connection below. Otherwise there is no reset, and each reuse takes a
// fifth of a millisecond longer, since a read must show that no data is left. A credentials provider that does not
// return within two seconds is abandoned. At most four such calls may hang; no connection is made until one returns.
func Open(opt *redis.Options, opts Options) (*Master, error) {
	if opt == nil {
		return nil, errors.New("single: nil options")
	}
	if opts.Name == "" {
		opts.Name = opt.Addr
	}
	if err := checkOptions(opt); err != nil {
		return nil, err
	}
	g, err := newGuard(opts.Name, opts)
	if err != nil {
		return nil, err
	}
	own := *opt
	own.MaxRetries = -1 // none; 0 would mean three
	own.ContextTimeoutEnabled = true
	own.DialerRetries = 1
	own.DialTimeout = dialTimeout
	own.MinIdleConns = 0 // they would be the client's, which sends no requests
	contain(&own)
	users := own // what connections of our own are made with
	own.Dialer = dialer(&own, g)
	if own.ReadTimeout == 0 {
		own.ReadTimeout = dialTimeout // for setting up connections; requests bring their own deadline
	}
	own.DisableIdentity = true // a new connection is one round trip from use
	own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if own.Protocol == 0 {
		own.Protocol = 2
	}
	if own.PoolSize == 0 {
		own.PoolSize = defaultPoolSize
	}
	if g != nil {
		own.OnConnect = g.onConnect(own.OnConnect)
	}
	opts.RestartGuard = 0 // applied
	client := redis.NewClient(&own)
	m, err := New(client, opts)
	if err != nil {
		return nil, err
	}
	m.owned, m.guard = true, g
	if direct(&users) {
		m.fixed = opt.Dialer == nil
		m.transport = conns{newPool(&users, client.Options(), g)}
	}
	return m, nil
}

// maxPoolSize is more than a server accepts by default, and more than a system has ports.
const maxPoolSize = 1 << 16

// checkOptions rejects options that make go-redis panic or that it ignores.
func checkOptions(opt *redis.Options) error {
	switch {
	case opt.PoolSize < 0 || opt.PoolSize > maxPoolSize:
		return fmt.Errorf("single: PoolSize (pool_size) is %d, and can be 0 to %d", opt.PoolSize, maxPoolSize)
	case opt.Dialer == nil && opt.Network != "unix" && !isPort(opt.Addr):
		return errors.New("single: the port is not a number from 1 to 65535") // the address may be half a password
	case opt.Protocol != 0 && opt.Protocol != 2 && opt.Protocol != 3:
		return fmt.Errorf("single: Protocol (protocol) is %d, and can be 2 or 3", opt.Protocol)
	}
	return nil
}

// isPort returns false if an address has a port number that is out of range.
func isPort(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return true // dialling reports the fault
	}
	n, err := strconv.ParseUint(port, 10, 64)
	return err != nil && !errors.Is(err, strconv.ErrRange) || err == nil && n > 0 && n <= math.MaxUint16
}

// complaint says why a URL does not parse, and quotes no part of it. If the password has a slash, parts of the
// password may be anywhere in the parsed URL.
func complaint(rawURL string) string {
	u, err := url.Parse(asRedis(rawURL))
	switch {
	case !strings.Contains(rawURL, "://"):
		return "not a URL: it begins with redis://, rediss://, valkey://, valkeys:// or unix://"
	case err != nil:
		return "not a URL; is there a character in the password that must be percent-encoded?"
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return "the scheme must be redis, rediss, valkey, valkeys or unix"
	case u.Host == "" && u.Scheme != "unix":
		return "there is no host"
	default:
		return "the path must be a database number and the query known options; a password's special characters " +
			"must be " +
			"percent-encoded"
	}
}
