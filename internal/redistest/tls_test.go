package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestTLSIsSpokenByThePortAndNotNeededByTheClient(t *testing.T) {
	certificate := redistest.SelfSigned(t)
	config := certificate.Client()
	server := redistest.Start(t, redistest.WithTLS(certificate.Files))
	must(t, server.Client().Ping(t.Context()).Err())
	must(t, pingURL(t.Context(), server.URL(), func(o *redis.Options) { o.TLSConfig = config }))

	stranger := config.Clone()
	stranger.Certificates = nil
	if err := pingURL(t.Context(), server.URL(), func(o *redis.Options) { o.TLSConfig = stranger }); err == nil {
		t.Error("a client without a certificate was served")
	}
	if err := pingURL(t.Context(), "redis://"+server.Addr(), func(*redis.Options) {}); err == nil {
		t.Error("a client without TLS was served")
	}
}
