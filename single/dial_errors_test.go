package single_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// A connection with a failed set-up is closed, even if the failure is a reply: it must not be used again. The error
// shows no password.
func TestHazard34AnAuthenticationThatFailsShowsNoPassword(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("right"))
	m := dial(t, "redis://:hunter2@"+server.Addr())
	for i := range 4 {
		_, err := m.Ask(t.Context(), inspect("key"))
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") ||
			strings.Contains(err.Error()+m.Name(), "hunter2") {
			t.Errorf("request %d to master %q: %v, want WRONGPASS", i, m.Name(), err)
		}
	}
}

// Redis before 6.2 has no ZADD GT, and reports only a syntax error; scripts report the same.
func TestHazard41AnOldServerIsNamedAsSuch(t *testing.T) {
	server := oddServer(t, func(_ int, words []string) string {
		switch words[0] {
		case "set":
			if words[1] == "taken" { // on a free key it is a SET, as on newer servers
				return "$-1\r\n"
			}
			return "+OK\r\n"
		case "zadd":
			return "-ERR syntax error\r\n"
		case "evalsha":
			return "-ERR Error running script (call to f_67145e498fa5f6527cd0e8bd36013c57231b2351): " +
				"@user_script:151: ERR syntax error\r\n"
		}
		return ""
	})
	fenced := acquire("key", "me", time.Minute)
	fenced.Fence, fenced.Token = true, 1
	shared := acquire("taken", "me", time.Minute)
	shared.Kind, shared.Hold = single.Shared, "hold"
	for way, m := range ways(t, server.addr) {
		for name, r := range map[string]*single.Request{"fenced": &fenced, "shared": &shared} {
			c := &single.Call{Request: r}
			m.Do(within(t, patience), []*single.Call{c})
			if c.Err == nil || !strings.Contains(c.Err.Error(), "6.2") || single.Lasts(c.Err) != single.Mendable {
				t.Errorf("%s, %s: error %v, lasts %d", way, name, c.Err, single.Lasts(c.Err))
			}
			if !c.Answered() {
				t.Errorf("%s, %s: it is no reply any more: %v", way, name, c.Err)
			}
		}
	}
}

// whyNot returns the reason why a master at this URL answers no request.
func whyNot(t *testing.T, url string) string {
	t.Helper()
	m, err := single.Dial(url, single.Options{})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = m.Close() }()
	if err := send(t, m, 2*short, inspect("k"))[0].Err; err != nil {
		return err.Error()
	}
	return ""
}

func TestHazard127TheErrorNamesAWrongPortForTLS(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t).Addr()
	secret := redistest.Start(t, redistest.WithPassword("sesame")).Addr()
	// what redis-server does at its TLS port to a client without TLS
	secure := oddServer(t, func(int, []string) string { return hangUp }).addr
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for url, want := range map[string]string{
		"redis://" + web.Listener.Addr().String(): `not a reply of a Redis server to this: "HTTP/1.1 400 Bad Request"`,
		"rediss://" + plain:                       "a port without TLS (redis://)",
		"redis://" + secure:                       "as a TLS port (rediss://) does",
		"redis://:pw@" + secure:                   "as a TLS port (rediss://) does",
		"redis://" + secret:                       "the server asks for a password, and this client has none",
		"redis://127.0.0.1:99999":                 "the port is not a number from 1 to 65535",
		"redis://127.0.0.1:0":                     "the port is not a number from 1 to 65535",
	} {
		if got := whyNot(t, url); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", url, got, want)
		}
	}
	if got := whyNot(t, "redis://"+web.Listener.Addr().String()); strings.Contains(got, "TLS") {
		t.Errorf("a web server: %q", got)
	}
	if got := whyNot(t, "redis://"+plain); got != "" {
		t.Errorf("a usable master: %q", got)
	}
}
