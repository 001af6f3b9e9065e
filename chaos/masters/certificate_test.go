package masters_test

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/masters"
)

// TestAClientThatChecksCertificatesRefusesAnExpiredOne: the connection that there was is closed and no new one can be
// made, by any name but the master's none can at all, and afterwards all is as before.
func TestAClientThatChecksCertificatesRefusesAnExpiredOne(t *testing.T) {
	fleet := open(t, "process", masters.Options{N: 1, Secure: true})
	m, reach := fleet.Masters[0], fleet.Reach()[0]
	dial := func(e endpoint.Endpoint) *redis.Client {
		opt, err := endpoint.Options(e)
		must(t, err)
		opt.MaxRetries, opt.ContextTimeoutEnabled = -1, true
		c := redis.NewClient(opt)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	old := dial(reach)
	must(t, old.Set(within(t), "k", "v", 0).Err())
	unnamed := reach
	unnamed.TLS = &endpoint.TLS{CA: reach.TLS.CA, Cert: reach.TLS.Cert, Key: reach.TLS.Key}
	if err := dial(unnamed).Ping(within(t)).Err(); err == nil {
		t.Error("its certificate is for its address, too")
	}
	injected, err := m.Inject(within(t), masters.ExpiredCertificate, masters.Params{})
	must(t, err)
	if !strings.Contains(injected.Observed, "1 connections closed") || !strings.Contains(injected.Observed, "expired") {
		t.Errorf("observed: %s", injected.Observed)
	}
	for name, c := range map[string]*redis.Client{"the old": old, "a new": dial(reach)} {
		err := c.Ping(within(t)).Err()
		if name == "the old" {
			err = c.Ping(within(t)).Err() // the first finds its connection closed
		}
		var invalid x509.CertificateInvalidError
		if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
			t.Errorf("%s client gets %v", name, err)
		}
	}
	must(t, injected.Heal(within(t)))
	if v, err := dial(reach).Get(within(t), "k").Result(); err != nil || v != "v" {
		t.Errorf("afterwards: %q, %v", v, err)
	}
	plain := open(t, "process", masters.Options{N: 1})
	if err := plain.Can(masters.ExpiredCertificate); !errors.Is(err, masters.ErrUnavailable) ||
		!strings.Contains(err.Error(), "-tls") {
		t.Errorf("without TLS: %v", err)
	}
}
