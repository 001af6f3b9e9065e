// Package endpoint says how clients reach a master: the address to dial, the credentials, and the TLS settings.
package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-624411e5/redlock/internal/tlsfiles"
	"github.com/seed-624411e5/redlock/single"
)

// Endpoint is how a client reaches a master. Printed in any way it has no password; its JSON has it, for processes that
// are clients.
type Endpoint struct {
	// Addr is host:port to dial. If the path has a proxy, Addr is the proxy's address.
	Addr string `json:"addr"`
	// Username and Password are the credentials; none if both are empty.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// DB is the database to use.
	DB int `json:"db,omitempty"`
	// TLS is how to speak TLS with it; nil for plain TCP.
	TLS *TLS `json:"tls,omitempty"`
	// Resolver is a name server, host:port, that knows the name in Addr; clients must ask no other.
	// Default: the system's.
	Resolver string `json:"resolver,omitempty"`
	// Dialer makes connections to Addr in place of the system; nil for the system's. No other process can use it. It
	// is for virtual time: the options of go-redis then fit a bubble of testing/synctest.
	Dialer Dialer `json:"-"`
}

// Dialer makes a connection, as net.Dialer's DialContext does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// TLS has a client's TLS settings. The zero value trusts the system's certificate authorities.
type TLS struct {
	// ServerName is the name that the master's certificate must have.
	ServerName string `json:"server_name,omitempty"`
	// CA is a PEM file with the authorities that sign the masters' certificates. Default: the system's.
	CA string `json:"ca,omitempty"`
	// Cert and Key are PEM files with the client's certificate and its key. Default: none.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

// Parse reads host:port or a URL as [single.ParseURL] does. files has the files for TLS; if one is set, host:port means
// TLS, and redis:// is an error. Errors quote nothing of s, which may hold a password.
func Parse(s string, files TLS) (Endpoint, error) {
	wanted := files != TLS{}
	if !strings.Contains(s, "://") {
		return parseAddress(s, files)
	}
	opt, err := single.ParseURL(s)
	if err != nil {
		return Endpoint{}, errors.New(strings.TrimPrefix(err.Error(), "single: master "))
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return Endpoint{}, errors.New("not a URL")
	case opt.Network == "unix":
		return Endpoint{},
			errors.New("URL: proxies can't stand before a unix socket: redis:// or valkey://, with host and port")
	case u.RawQuery != "":
		return Endpoint{}, errors.New("URL: options after a question mark are not for the harness, which sets its own")
	case opt.TLSConfig == nil && wanted:
		return Endpoint{}, errors.New("it is not a rediss:// URL, but -tls flags are given")
	}
	e := Endpoint{Addr: opt.Addr, Username: opt.Username, Password: opt.Password, DB: opt.DB}
	if opt.TLSConfig != nil {
		e.TLS = files.named(opt.Addr)
	}
	return e, e.check()
}

func parseAddress(s string, files TLS) (Endpoint, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || port == "" || strings.ContainsAny(s, "@/ ") {
		return Endpoint{}, errors.New("it is neither host:port nor a URL such as redis://user:password@host:port")
	}
	e := Endpoint{Addr: s}
	if (files != TLS{}) {
		e.TLS = files.named(s)
	}
	return e, e.check()
}

// named is a copy with the name of the server at addr, unless there is one.
func (t TLS) named(addr string) *TLS {
	if host, _, err := net.SplitHostPort(addr); err == nil && t.ServerName == "" {
		t.ServerName = host
	}
	return &t
}

// check reads the files, so that it is known at once if they can't be.
func (e Endpoint) check() error {
	_, err := e.tlsConfig()
	return err
}

// Plain is an endpoint that takes no more than an address.
func Plain(addr string) Endpoint { return Endpoint{Addr: addr} }

// AllPlain are endpoints that take no more than these addresses.
func AllPlain(addrs []string) []Endpoint {
	all := make([]Endpoint, len(addrs))
	for i, addr := range addrs {
		all[i] = Plain(addr)
	}
	return all
}

// hidden replaces a password in text, as package url does it.
const hidden = "xxxxx"

// IsPlain reports whether a client needs only the address.
func (e Endpoint) IsPlain() bool {
	return e.Username == "" && e.Password == "" && e.DB == 0 && e.TLS == nil && e.Resolver == "" && e.Dialer == nil
}

// Via is the same master behind another address, such as a proxy's. Its certificate must still be for the master.
func (e Endpoint) Via(addr string) Endpoint {
	if e.TLS != nil {
		e.TLS = e.TLS.named(e.Addr)
	}
	e.Addr = addr
	return e
}

// URL returns the endpoint as a URL for redis.ParseURL, with its password. Of the TLS settings it
// only says that TLS is used.
func (e Endpoint) URL() string { return e.url().String() }

func (e Endpoint) url() *url.URL {
	u := &url.URL{Scheme: "redis", Host: e.Addr}
	if e.TLS != nil {
		u.Scheme = "rediss"
	}
	if e.Username != "" || e.Password != "" {
		u.User = url.UserPassword(e.Username, e.Password)
	}
	if e.DB != 0 {
		u.Path = "/" + strconv.Itoa(e.DB)
	}
	return u
}

// String is the URL with xxxxx for the password.
func (e Endpoint) String() string { return e.url().Redacted() }

// Redacted returns s with xxxxx in place of the password. If it can't read s, it returns only xxxxx.
func Redacted(s string) string {
	if u, err := url.Parse(s); err == nil && strings.Contains(s, "://") && u.Host != "" && u.Opaque == "" &&
		u.RawQuery == "" && u.Fragment == "" {
		return u.Redacted()
	}
	if _, err := parseAddress(s, TLS{}); err == nil {
		return s
	}
	return hidden
}

// Format implements fmt.Formatter: an endpoint is printed as its String, whatever the verb.
func (e Endpoint) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, e.String()) // a State keeps the text written
}

// Options returns the options of go-redis for a master: address, credentials, database, TLS, and a Dialer if there is
// one or a Resolver. The error says which file can't be read.
//
// It is not a method: then each package that uses an Endpoint would compile go-redis's generic types again, which takes
// two seconds.
func Options(e Endpoint) (*redis.Options, error) {
	config, err := e.tlsConfig()
	if err != nil {
		return nil, fmt.Errorf("endpoint: %s: %w", e.Addr, err)
	}
	opt := &redis.Options{Addr: e.Addr, Username: e.Username, Password: e.Password, DB: e.DB, TLSConfig: config}
	switch {
	case e.Dialer != nil:
		opt.Dialer = e.Dialer
		// A client with these notifications waits for a mutex while it connects. That stops virtual time.
		opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		// Who waits for a connection uses a timer that clients of other bubbles have used.
		opt.PoolSize = enoughConnections
	case e.Resolver != "":
		opt.Dialer = dialer(e.Resolver, config)
	}
	return opt, nil
}

// AllOptions are the Options of all endpoints.
func AllOptions(all []Endpoint) ([]*redis.Options, error) {
	options := make([]*redis.Options, len(all))
	for i, e := range all {
		var err error
		if options[i], err = Options(e); err != nil {
			return nil, err
		}
	}
	return options, nil
}

// enoughConnections is more than a client has under way in virtual time.
const enoughConnections = 256

// dialer asks the resolver for the address of a name each time.
func dialer(resolver string, config *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{
		Timeout: dialTimeout,
		Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", resolver)
		}},
	}
	if config == nil {
		return plain.DialContext
	}
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
}

// dialTimeout bounds dials without a deadline in their context.
const dialTimeout = 5 * time.Second

func (e Endpoint) tlsConfig() (*tls.Config, error) {
	if e.TLS == nil {
		return nil, nil //nolint:nilnil // none is wanted
	}
	config, err := tlsfiles.Files{CA: e.TLS.CA, Cert: e.TLS.Cert, Key: e.TLS.Key}.Config()
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.ServerName = e.TLS.named(e.Addr).ServerName
	return config, nil
}

// Addrs are the addresses of the endpoints.
func Addrs(all []Endpoint) []string {
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = e.Addr
	}
	return out
}

// shortest is the least length of a password that Hide replaces in text of other programs. A
// shorter password could match in any text.
const shortest = 4

// Hide returns a function that replaces the endpoints' passwords by xxxxx, both plain and escaped as in a URL. It is
// for text of other programs: errors of a library under test, a program's output.
func Hide(all []Endpoint) func(text string) string {
	var pairs []string
	for _, e := range all {
		if len(e.Password) >= shortest {
			escaped := strings.TrimPrefix(url.UserPassword("", e.Password).String(), ":")
			quoted := strings.Trim(strconv.Quote(e.Password), `"`)
			pairs = append(pairs, e.Password, hidden, escaped, hidden, quoted, hidden, url.QueryEscape(e.Password),
				hidden)
		}
	}
	if len(pairs) == 0 {
		return func(text string) string { return text }
	}
	return strings.NewReplacer(pairs...).Replace
}
