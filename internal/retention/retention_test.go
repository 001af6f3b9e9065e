package retention_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/growth"
	"github.com/seed-624411e5/redlock/internal/retention"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKeysAreForgottenInTimeAndNotBefore(t *testing.T) {
	const early, late = 12 * time.Hour, 36 * time.Hour
	had := 0
	rapid.Check(t, func(t *rapid.T) {
		var r retention.Keys
		noted := make(map[string]time.Duration)
		now := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "start"))
		for range rapid.IntRange(60, 120).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(50*time.Hour)).Draw(t, "passes"))
			k := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "note") {
				r.Note(k, now)
				noted[k] = now
				continue
			}
			at, ever := noted[k]
			has := r.Has(k, now)
			if has && (!ever || now-at > late) {
				t.Fatalf("%s is retained %v after it was noted: %t", k, now-at, ever)
			}
			if !has && ever && now-at < early {
				t.Fatalf("%s is forgotten %v after it was noted", k, now-at)
			}
			if has {
				had++
			}
		}
	})
	if had < 100 {
		t.Errorf("a key was retained %d times: too few to show anything", had)
	}
}

func TestTheNumberAndSizeOfKeysAreBounded(t *testing.T) {
	var r retention.Keys
	for n := range 5 * retention.MaxKeys {
		r.Note(fmt.Sprint("key", n), 0)
		if r.Size() > 2*retention.MaxKeys {
			t.Fatalf("after %d keys there is room for %d", n, r.Size())
		}
	}
	if last := fmt.Sprint("key", 5*retention.MaxKeys-1); !r.Has(last, 0) {
		t.Error("the last one is forgotten")
	}
	huge := strings.Repeat("k", retention.MaxKeySize+1)
	if r.Note(huge, 0); r.Has(huge, 0) {
		t.Error("a huge key takes memory")
	}
}

// BenchmarkGrowthRetention notes n keys and looks each up. The number of kept keys is bounded, so heap bytes per item
// fall.
func BenchmarkGrowthRetention(b *testing.B) {
	growth.Run(b, func(n int) any {
		r := new(retention.Keys)
		for i := range n {
			r.Note(fmt.Sprint("key-", i), time.Duration(i))
		}
		for i := range n {
			r.Has(fmt.Sprint("key-", i), time.Duration(n))
		}
		return r
	})
}
