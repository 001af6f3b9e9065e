package endpoint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

const secret = "hush/hush: 1"

func TestParseReadsAddressesAndURLs(t *testing.T) {
	files := redistest.SelfSigned(t).Files
	tls := endpoint.TLS{CA: files.CAFile, Cert: files.CertFile, Key: files.KeyFile}
	secure := tls
	secure.ServerName = "redis.example.com"
	for name, tt := range map[string]struct {
		s     string
		files endpoint.TLS
		want  endpoint.Endpoint
	}{
		"an address": {"127.0.0.1:6379", endpoint.TLS{}, endpoint.Endpoint{Addr: "127.0.0.1:6379"}},
		"an address, with files": {
			"redis.example.com:6379", tls, endpoint.Endpoint{Addr: "redis.example.com:6379", TLS: &secure},
		},
		"a URL": {
			"redis://redis.example.com", endpoint.TLS{}, endpoint.Endpoint{Addr: "redis.example.com:6379"},
		},
		"a password": {
			"redis://:hush%2Fhush%3A%201@a:1", endpoint.TLS{}, endpoint.Endpoint{Addr: "a:1", Password: secret},
		},
		"a user and a database": {
			"redis://jobs:hush%2Fhush%3A%201@a:1/3", endpoint.TLS{}, endpoint.Endpoint{
				Addr: "a:1", Username: "jobs", Password: secret, DB: 3,
			},
		},
		"TLS by the system": {
			"rediss://redis.example.com:1", endpoint.TLS{}, endpoint.Endpoint{
				Addr: "redis.example.com:1", TLS: &endpoint.TLS{ServerName: "redis.example.com"},
			},
		},
		"TLS by files": {
			"rediss://redis.example.com:1", tls, endpoint.Endpoint{Addr: "redis.example.com:1", TLS: &secure},
		},
		"a version 6 of Internet": {"[::1]:6379", endpoint.TLS{}, endpoint.Endpoint{Addr: "[::1]:6379"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := endpoint.Parse(tt.s, tt.files)
			must(t, err)
			gotJSON, _ := json.Marshal(got)
			wantJSON, _ := json.Marshal(tt.want)
			if !bytes.Equal(gotJSON, wantJSON) {
				t.Errorf("%s, want %s", gotJSON, wantJSON)
			}
			if again, err := endpoint.Parse(got.URL(), tt.files); err != nil || again.URL() != got.URL() {
				t.Errorf("its URL is read as %v, %v", again, err)
			}
		})
	}
}

func TestHazard115TheHarnessTakesValkeyURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"valkey://jobs:hush@a/3": "redis://jobs:hush@a:6379/3",
		"valkeys://a:1":          "rediss://a:1",
	} {
		if e, err := endpoint.Parse(rawURL, endpoint.TLS{}); err != nil || e.URL() != want {
			t.Errorf("%s: %s, %v", rawURL, e, err)
		}
	}
}

func TestMistakesAreNamedAndNothingIsQuoted(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	must(t, os.WriteFile(empty, nil, 0o600))
	for name, tt := range map[string]struct {
		s     string
		files endpoint.TLS
		says  string
	}{
		"no port":           {"hushhush", endpoint.TLS{}, "neither host:port nor a URL"},
		"no scheme":         {"jobs:hushhush@a:1", endpoint.TLS{}, "neither host:port nor a URL"},
		"half a password":   {"redis://jobs:hush/hush@a:1", endpoint.TLS{}, "percent-encoded"},
		"another scheme":    {"http://jobs:hushhush@a:1", endpoint.TLS{}, "scheme"},
		"a socket":          {"unix:///hushhush.sock", endpoint.TLS{}, "unix socket"},
		"an option":         {"redis://jobs:hushhush@a:1?protocol=3", endpoint.TLS{}, "options"},
		"unverified":        {"rediss://jobs:hushhush@a:1?skip_verify=true", endpoint.TLS{}, "skip_verify"},
		"files without TLS": {"redis://jobs:hushhush@a:1", endpoint.TLS{CA: empty}, "not a rediss:// URL"},
		"no such file": {
			"rediss://jobs:hushhush@a:1", endpoint.TLS{CA: filepath.Join(dir, "none.pem")}, "-tls-ca: open",
		},
		"an empty file":   {"rediss://jobs:hushhush@a:1", endpoint.TLS{CA: empty}, "holds no certificate"},
		"half a key pair": {"rediss://jobs:hushhush@a:1", endpoint.TLS{Cert: empty}, "belong together"},
		"a certificate empty": {
			"rediss://jobs:hushhush@a:1", endpoint.TLS{Cert: empty, Key: empty}, "-tls-cert and -tls-key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := endpoint.Parse(tt.s, tt.files)
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
			if shown := endpoint.Redacted(tt.s); strings.Contains(shown, "hushhush") &&
				!strings.Contains(tt.s, ".sock") {
				t.Errorf("redacted it is %s", shown)
			}
		})
	}
}

func TestAnEndpointIsPrintedWithoutItsPassword(t *testing.T) {
	e := endpoint.Endpoint{Addr: "a:1", Username: "jobs", Password: secret, TLS: &endpoint.TLS{ServerName: "a"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, what := range []any{e, []endpoint.Endpoint{e}, struct {
			E endpoint.Endpoint
		}{e}, map[string]endpoint.Endpoint{"e": e}} {
			if s := fmt.Sprintf(verb, what); strings.Contains(s, "hush") ||
				!strings.Contains(s, "rediss://jobs:xxxxx@a:1") {
				t.Errorf("%s: %s", verb, s)
			}
		}
	}
	hide := endpoint.Hide([]endpoint.Endpoint{e})
	for _, text := range []string{"no " + secret + "!", "no " + e.URL() + "!", fmt.Sprintf("no %q!", secret)} {
		if s := hide(text); strings.Contains(s, "hush") || !strings.Contains(s, "xxxxx") || !strings.HasSuffix(s, "!") {
			t.Errorf("%q became %q", text, s)
		}
	}
}

func TestBehindAProxyTheCertificateNamesTheMaster(t *testing.T) {
	e, err := endpoint.Parse("rediss://:pass@redis.example.com:1/2", endpoint.TLS{})
	must(t, err)
	opt, err := endpoint.Options(e.Via("127.0.0.1:40001"))
	if err != nil || opt.Addr != "127.0.0.1:40001" || opt.TLSConfig == nil ||
		opt.TLSConfig.ServerName != "redis.example.com" || opt.Password != "pass" || opt.DB != 2 {
		t.Errorf("%+v, %v", opt, err)
	}
	opt, err = endpoint.Options(endpoint.Plain("a:1").Via("b:2"))
	if err != nil || opt.TLSConfig != nil || opt.Addr != "b:2" {
		t.Errorf("%+v, %v", opt, err)
	}
}
