package virtual_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/virtual"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// Opening a lock takes time if it asks its masters. Faults do not wait for that.
func TestAFaultMayMeetAClientThatIsBeingOpened(t *testing.T) {
	slow := virtual.Lock("slow to open", func(masters []*redis.Options) virtual.Client {
		<-time.After(time.Second)
		return ours(masters)
	})
	const ms = time.Millisecond
	s := &virtual.Schedule{
		Seed: 1, Masters: []virtual.Master{{}}, Clients: make([]virtual.Process, 2), MaxDelay: ms,
		Faults: []virtual.Fault{
			{Kind: virtual.Pause, At: ms, For: ms, Client: 1},
			{Kind: virtual.Kill, At: 2 * ms, Client: 1},
			{Kind: virtual.Crash, At: 3 * ms, For: ms, Client: -1, Masters: []int{0}},
		},
	}
	r, err := virtual.Run(slow, s)
	must(t, err)
	if len(r.Violations) > 0 {
		t.Errorf("violations: %v", r.Violations)
	}
}

// A lock that dials by itself may find a real server. Then the masters of the run see nothing of it.
func TestALockThatDialsByItselfIsNoPass(t *testing.T) {
	addr := redistest.Start(t).Addr()
	own := virtual.Lock("by itself", func(masters []*redis.Options) virtual.Client {
		masters[0].Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		return ours(masters)
	})
	profile, err := virtual.FindProfile("calm")
	must(t, err)
	b := &virtual.Batch{Subject: own, Profile: profile, N: 3, First: 1, Masters: 1, Workers: 1}
	out, err := b.Run(t.Context())
	must(t, err)
	if reasons := strings.Join(out.Unknown(b), "; "); !strings.Contains(reasons, "no command reached a master") {
		t.Errorf("reasons: %q", reasons)
	}
}

func TestABatchThatCannotRunIsAnError(t *testing.T) {
	for want, b := range map[string]*virtual.Batch{
		"no subject": {N: 1},
		"-3 masters": {N: 1, Subject: virtual.Lock("ours", ours), Masters: -3},
		"10 masters": {N: 1, Subject: virtual.Lock("ours", ours), Masters: 10},
	} {
		if _, err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
