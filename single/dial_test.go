package single_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/single"
)

func TestDialReadsUserPasswordAndDatabaseFromTheURL(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("secret"))
	m := dial(t, server.URL()+"/3")
	ask(t, m, acquire("key", "me", time.Minute))
	if got := m.Name(); got != server.Addr() {
		t.Errorf("its name is %q, want the address %q", got, server.Addr())
	}
	if value(t, server, "key") != "" {
		t.Error("the key is in database 0")
	}
	other := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "secret", DB: 3})
	defer other.Close()
	if got, err := other.Get(t.Context(), "key").Result(); err != nil || got != "me" {
		t.Errorf("database 3 has %q, %v", got, err)
	}
}

func TestHazard115AValkeyURLIsARedisURL(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("secret"))
	m := dial(t, strings.Replace(server.URL(), "redis", "valkey", 1)+"/3")
	ask(t, m, acquire("key", "me", time.Minute))
	for rawURL, secure := range map[string]bool{
		"valkey://a": false, "VALKEY://a": false, "valkeys://a": true, "Valkeys://:p@a": true,
	} {
		opt, err := single.ParseURL(rawURL)
		must(t, err)
		if opt.Addr != "a:6379" || (opt.TLSConfig != nil) != secure || secure && opt.TLSConfig.ServerName != "a" {
			t.Errorf("%s: %s, TLS %v", rawURL, opt.Addr, opt.TLSConfig)
		}
	}
	for rawURL, want := range map[string]string{
		"valkey:a":                        "there is no //",
		"valkeys://:hush@a?skip_verify=1": "skip_verify",
		"valkey://:hush@a:1,b:2":          "comma",
		"valkey://:hush@a:99999":          "the port",
		"valkey://:hu%sh@a":               "percent-encoded",
		"valkeyed://:hush@a":              "valkeys",
	} {
		if _, err := single.ParseURL(rawURL); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
}

func TestOpenOverrulesWhatALockCanNotUseAndLeavesTheOptionsAlone(t *testing.T) {
	opt := &redis.Options{Addr: "127.0.0.1:1", MaxRetries: 5}
	m, err := single.Open(opt, single.Options{Name: "first"})
	must(t, err)
	defer func() { must(t, m.Close()) }()
	if opt.ContextTimeoutEnabled || opt.MaxRetries != 5 || opt.Dialer != nil {
		t.Errorf("the caller's options were changed: %+v", opt)
	}
	client, ok := m.Client().(*redis.Client)
	if !ok {
		t.Fatalf("the client is a %T", m.Client())
	}
	if used := client.Options(); !used.ContextTimeoutEnabled || used.MaxRetries != 0 {
		t.Errorf("ContextTimeoutEnabled %t, MaxRetries %d", used.ContextTimeoutEnabled, used.MaxRetries)
	}
	if m.Name() != "first" {
		t.Errorf("its name is %q", m.Name())
	}
}

func TestMastersWithoutAClientOrANameAreRefused(t *testing.T) {
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	defer failover.Close()
	for name, client := range map[string]redis.UniversalClient{
		"nil":            nil,
		"nil client":     (*redis.Client)(nil),
		"nil cluster":    (*redis.ClusterClient)(nil),
		"nil ring":       (*redis.Ring)(nil),
		"without a name": struct{ redis.UniversalClient }{},
	} {
		if m, err := single.New(client, single.Options{}); err == nil {
			t.Errorf("%s: made a master named %q", name, m.Name())
		}
	}
	if _, err := single.Open(nil, single.Options{}); err == nil {
		t.Error("Open(nil): no error")
	}
	m, err := single.New(failover, single.Options{Name: "m"})
	if err != nil || m.Name() != "m" {
		t.Errorf("a failover client with a name: %v", err)
	}
}

// Close closes the library's own connections, and no client that was brought.
func TestCloseLeavesAClientOfTheCallersOpen(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	m := over(t, client)
	must(t, m.Close())
	must(t, client.Ping(t.Context()).Err())

	list := lister(t, server)
	before := connections(t, list)
	own := direct(t, &redis.Options{Addr: server.Addr()}, 2)
	must(t, own.Close())
	if c := send(t, own, patience, inspect("key"))[0]; !errors.Is(c.Err, redis.ErrClosed) || c.Sent {
		t.Errorf("after Close: error %v, sent %t; want an error, not sent", c.Err, c.Sent)
	}
	redistest.Eventually(t, patience, func() bool { return connections(t, list) <= before }, "connections to be closed")
}

// URLs that would make go-redis panic, that go-redis would ignore, or that would do harm.
func TestDialRefusesURLsThatCannotBeMeant(t *testing.T) {
	for url, says := range map[string]string{
		"rediss://:hunter2@127.0.0.1:1?skip_verify=true":     "skip_verify",
		"redis://:hunter2@127.0.0.1:1?pool_size=-1":          "PoolSize",
		"redis://:hunter2@127.0.0.1:1?pool_size=99999999999": "PoolSize",
		"redis://:hunter2@127.0.0.1:1?protocol=7":            "Protocol",
		"redis://:hunter2@127.0.0.1:1,127.0.0.1:2":           "comma",
		"redis://jobs:12#hunter2@127.0.0.1:1":                "%23",
		"redis://jobs:hunter2:27101":                         "more than one :",
		"redis:127.0.0.1:1":                                  "no //",
		"rediss:u:hunt@host:1":                               "no //",
		"127.0.0.1:1":                                        "begins with redis://",
		"redis://:hunt/er2@127.0.0.1:1":                      "percent-encoded",
		"http://:hunter2@127.0.0.1:1":                        "scheme",
	} {
		m, err := single.Dial(url, single.Options{})
		if err == nil {
			must(t, m.Close())
			t.Errorf("%s was accepted", url)
			continue
		}
		if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunt") {
			t.Errorf("%s: %v, want it to say %q and no password", url, err, says)
		}
	}
	m, err := single.Dial("rediss://127.0.0.1:1?pool_size=3&protocol=3&skip_verify=false", single.Options{})
	must(t, err)
	must(t, m.Close())
}

// FuzzDial: a URL is accepted or refused, without a panic. Neither the error, of one line, nor the master's name ever
// contains the password, wherever it is in a broken URL.
func FuzzDial(f *testing.F) {
	for _, seed := range []string{
		"redis://user:PASSWORD@127.0.0.1:6379/0", "rediss://:PASSWORD@host", "redis://user:PASSWORD@host:port",
		"redis://u:PASSWORD@[::1",
		"PASSWORD", "redis://u:PASSWORD/x@host", "redis://u:PASSWORD#@host", "redis://u:%zzPASSWORD@host",
		"http://u:PASSWORD@host",
		"unix://u:PASSWORD@/tmp/sock?db=1", "redis://host/PASSWORD", "redis://u:PASSWORD@host?dial_timeout=PASSWORD",
		"redis://u:PASSWORD@host:1,host:2", "redis://u:PASSWORD@host/0?x=1", "\x00redis://u:PASSWORD@",
		"redis://PASSWORD@host",
		"valkey://u:PASSWORD@host:port",
		"redis://user:PASSWORD@host:6379/PASSWORD", // not a database
		"redis://user:PASSWORD@host:6379/1/PASSWORD", "redis://user:PASSWORD@host:6379/?PASSWORD=1",
		"redis://user:PASSWORD@host:6379/?db=PASSWORD",
		"redis://:1/PASSWORD@host:6379", // a password with an unescaped slash
		"redis://:PASSWORD?x@host:6379", "redis://:PASSWORD%zz@host:6379", "user:PASSWORD@host:6379", ":PASSWORD@host",
		"redis:user:PASSWORD@host:6379", "redis://user:PASSWORD@host:6379\n", "unix://user:PASSWORD@",
		" redis://user:PASSWORD@host:6379",
	} {
		f.Add(seed, "secret-0123456789")
	}
	f.Fuzz(func(t *testing.T, template, secret string) {
		if len(secret) < 8 || !strings.Contains(template, "PASSWORD") ||
			strings.Contains(strings.ReplaceAll(template, "PASSWORD", ""), secret) {
			return
		}
		raw := strings.ReplaceAll(template, "PASSWORD", url.PathEscape(secret))
		for _, rawURL := range []string{raw, strings.ReplaceAll(template, "PASSWORD", secret)} {
			m, err := single.Dial(rawURL, single.Options{})
			if err != nil {
				if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), url.PathEscape(secret)) ||
					!strings.HasPrefix(err.Error(), "single: ") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q: %q", rawURL, err)
				}
				continue
			}
			inHost := false // the address is the master's name, and not a secret
			if u, err := url.Parse(rawURL); err == nil {
				inHost = strings.Contains(strings.ToLower(u.Host+u.Path), strings.ToLower(secret))
			}
			if !inHost && strings.Contains(m.Name(), secret) {
				t.Errorf("%q is called %q", rawURL, m.Name())
			}
			must(t, m.Close())
		}
	})
}

// calls counts how often go-redis calls a hook or asks a provider.
type calls struct{ dials, requests atomic.Int64 }

func (c *calls) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.dials.Add(1)
		return next(ctx, network, addr)
	}
}

func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.requests.Add(1)
		return next(ctx, cmd)
	}
}

func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.requests.Add(1)
		return next(ctx, cmds)
	}
}

// What NewMaster's comment says of the settings of a client.
func TestHazard113TheSettingsOfAClientCountAsDocumented(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("secret"))
	var dialed, asked, set atomic.Int64
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), DB: 3, ReadTimeout: time.Nanosecond, WriteTimeout: time.Nanosecond,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
		CredentialsProvider: func() (username, password string) { asked.Add(1); return "", "secret" },
		OnConnect:           func(context.Context, *redis.Conn) error { set.Add(1); return nil },
	})
	seen := &calls{}
	client.AddHook(seen)
	m := over(t, client)
	batch := batchOf(acquisitions("a", "b")...)
	m.Do(within(t, patience), batch)
	m.Do(within(t, patience), batch[:1])
	for _, c := range batch {
		must(t, c.Err)
	}
	if dialed.Load() == 0 || asked.Load() == 0 || set.Load() == 0 || seen.dials.Load() == 0 {
		t.Errorf("Dialer %d, CredentialsProvider %d, OnConnect %d, DialHook %d calls", dialed.Load(), asked.Load(),
			set.Load(), seen.dials.Load())
	}
	if n := seen.requests.Load(); n != 0 {
		t.Errorf("hooks saw %d requests", n)
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}, Password: "secret"})
	all := &calls{}
	ring.AddHook(all)
	ask(t, over(t, ring), acquire("c", "me", time.Minute))
	if all.requests.Load() == 0 {
		t.Error("the hooks of a Ring see nothing")
	}
}

func TestAllKindsOfClientsSpeakTheSameLock(t *testing.T) {
	t.Parallel()
	cluster, clusterClient := clusterOf(t)
	server := redistest.Start(t)
	for name, m := range map[string]*single.Master{
		"ClusterClient": over(t, clusterClient),
		"Ring":          over(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}})),
		"Client":        over(t, redis.NewClient(&redis.Options{Addr: server.Addr()})),
		"RESP3":         over(t, redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 3})),
		"Dial":          dial(t, server.URL()),
		"Dial, cluster": dial(t, cluster.URL()),
	} {
		key := "key of " + name
		for i, want := range []single.Outcome{single.Granted, single.Refused, single.Granted, single.Repaired} {
			r := []single.Request{
				acquire(key, "me", time.Minute), acquire(key, "other", time.Minute),
				release(key, "me"), extend(key, "me", time.Minute, true),
			}[i]
			if got := ask(t, m, r); got.Outcome != want {
				t.Errorf("%s: step %d: %+v, want outcome %d", name, i, got, want)
			}
		}
		// with keys of different slots
		for _, c := range send(t, m, patience, acquisitions(key+"a", key+"b", key+"c", key+"d")...) {
			if c.Err != nil || c.Reply.Outcome != single.Granted {
				t.Errorf("%s: batch: %+v, %v", name, c.Reply, c.Err)
			}
		}
	}
}

// A Ring cannot subscribe without a channel, and panics if all its servers are down. A broken subscription is made
// again, also if the server says odd things.
func TestHazard60ARingSubscribes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const channel = single.ChannelPrefix + "w"
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}})
	for _, m := range []*single.Master{dial(t, server.URL()), over(t, ring)} {
		ready, heard := make(chan struct{}, 10), make(chan string, 10)
		stop := m.Listen(channel, func() { ready <- struct{}{} }, func(message string) { heard <- message })
		redistest.Eventually(t, patience, func() bool { return len(ready) > 0 }, "the subscription")
		must(t, server.Client().Publish(t.Context(), channel, "hello").Err())
		hearsThat(t, heard, "hello")
		must(t, server.Client().Do(t.Context(), "client", "kill", "type", "pubsub").Err())
		redistest.Eventually(t, patience, func() bool { return len(ready) > 1 }, "another subscription")
		stop()
	}
	odd := oddServer(t, says(map[string]string{"subscribe": "*999999999\r\n"}))
	stop := dial(t, "redis://"+odd.addr).Listen(channel, func() {}, func(string) {})
	redistest.Eventually(t, patience, func() bool { return odd.heard("subscribe") > 1 }, "another subscription")
	stop()
	down, err := single.New(redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": "127.0.0.1:1"}, HeartbeatFrequency: time.Millisecond,
	}), single.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, down.Client().(*redis.Ring).Close()) })
	redistest.Eventually(t, patience, func() bool { return down.Client().(*redis.Ring).Len() == 0 },
		"the ring to notice that its servers are down")
	down.Listen("channel", func() {}, func(string) {})()
}

// A Ring that is closed while it sends a pipeline of its own crashes the process (go-redis v9.23).
func TestHazard157ARingMayBeClosedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for range soak.Or(50, 1000) {
		ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}})
		m := over(t, ring)
		var users sync.WaitGroup
		asked := make(chan struct{}, 1)
		for i := range 8 {
			users.Go(func() {
				for {
					batch := []*single.Call{
						{Request: new(acquire(fmt.Sprint("a", i), "me", time.Minute))},
						{Request: new(acquire(fmt.Sprint("b", i), "me", time.Minute))},
					}
					m.Do(t.Context(), batch)
					if batch[0].Err != nil || batch[1].Err != nil {
						return
					}
					select {
					case asked <- struct{}{}:
					default:
					}
				}
			})
		}
		<-asked
		must(t, ring.Close())
		users.Wait()
	}
}
