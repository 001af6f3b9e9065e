package single_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// hanging is a credentials provider that does not return.
type hanging struct {
	release      chan struct{}
	mu           sync.Mutex
	called, most int
}

func (h *hanging) credentials() (user, password string) {
	h.mu.Lock()
	h.called++
	h.most = max(h.most, h.called)
	h.mu.Unlock()
	<-h.release
	h.mu.Lock()
	h.called--
	h.mu.Unlock()
	return "default", "password"
}

// A hanging credentials provider costs a bounded number of goroutines, and delays only its own connections.
func TestAHangingCredentialsProviderCostsABoundedNumberOfGoroutines(t *testing.T) {
	const size, abandoned = 3, 4
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(0)}
		h := &hanging{release: make(chan struct{})}
		m := f.master(t, redis.Options{PoolSize: size, CredentialsProvider: h.credentials})
		var last error
		for range 1000 {
			_, last = tryFor(t, m, "key", 20*time.Millisecond)
		}
		if h.most > size+abandoned || last == nil || !strings.Contains(last.Error(), "credentials provider") {
			t.Errorf("%d concurrent calls of the hanging provider; the last error is %v", h.most, last)
		}
		close(h.release)
		synctest.Wait()
		if ok, err := tryFor(t, m, "key", time.Second); !ok {
			t.Errorf("when the provider returns again: %v", err)
		}
		must(t, m.Close())
	})
	synctest.Test(t, func(t *testing.T) { // Close, while it hangs
		f := &far{takes: after(0)}
		h := &hanging{release: make(chan struct{})}
		m := f.master(t, redis.Options{CredentialsProvider: h.credentials})
		_, _ = tryFor(t, m, "key", 20*time.Millisecond)
		began := time.Now()
		must(t, m.Close())
		if took := time.Since(began); took > 0 {
			t.Errorf("Close took %v", took)
		}
		close(h.release)
	})
}
