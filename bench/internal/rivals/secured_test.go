package rivals_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestRedsyncLogsInAndSpeaksTLS(t *testing.T) {
	files := redistest.SelfSigned(t).Files
	var all []endpoint.Endpoint
	for _, s := range redistest.StartN(t, 3, redistest.WithTLS(files), redistest.WithPassword("hush")) {
		all = append(all, endpoint.Endpoint{
			Addr: s.Addr(), Password: "hush",
			TLS: &endpoint.TLS{CA: files.CAFile, Cert: files.CertFile, Key: files.KeyFile},
		})
	}
	locker, err := workload.Open(t.Context(), rivals.Redsync(), all)
	must(t, err)
	hold, err := locker.Acquire(t.Context(), workload.Request{Key: "k", TTL: time.Minute, Once: true})
	must(t, err)
	must(t, hold.Release(t.Context()))
	must(t, locker.Close(t.Context()))
}
