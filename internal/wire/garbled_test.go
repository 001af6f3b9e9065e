package wire_test

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/seed-624411e5/redlock/internal/garble"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/internal/wire"
)

// allocated is how much memory this process has allocated until now. Large pieces, as a believed length would take,
// count at once; small ones a little later. Unlike runtime.ReadMemStats it stops no goroutine.
func allocated(sample []metrics.Sample) uint64 {
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// exactly returns how much memory reading raw takes.
func exactly(raw []byte, expect *wire.Expect) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = wire.Parse(raw, expect)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestGarbledReplies is FuzzReply from a seed, in one process, as often as there is time for.
func TestGarbledReplies(t *testing.T) {
	const seed = 1
	source, n := garble.New(seed, replies), soak.Or(20_000, 10_000_000)
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	kinds := make(map[wire.Kind]int)
	for i := range n {
		raw, expect := source.Next(), expectations[source.IntN(len(expectations))]
		before := allocated(sample)
		reply := wire.Parse(raw, &expect)
		if took := allocated(sample) - before; took > taken(raw, &expect) { // or earlier memory is counted only now
			if took = exactly(raw, &expect); took > taken(raw, &expect) {
				t.Errorf("seed %d, %d: %d bytes for %q", seed, i, took, raw)
			}
		}
		kinds[reply.Kind()]++
		whole := inPieces(t, raw, source.IntN(7)+1, &expect)
		if fault := wrong(raw, &reply, &whole, &expect); fault != "" {
			t.Errorf("seed %d, %d: %s", seed, i, fault)
		}
		if t.Failed() {
			return
		}
	}
	for _, k := range []wire.Kind{
		wire.Status, wire.Number, wire.Text, wire.Null, wire.Array, wire.Refusal, wire.Failure,
	} {
		if kinds[k] < n/4000 {
			t.Errorf("%d of %d were %v: this shows little", kinds[k], n, k)
		}
	}
	t.Logf("%d replies, by what they were taken for: %v", n, kinds)
}

// TestControlWrongRepliesAreNoticed is the control: replies that were read of something else.
func TestControlWrongRepliesAreNoticed(t *testing.T) {
	read := func(raw string, expect *wire.Expect) *wire.Reply {
		reply := wire.Parse([]byte(raw), expect)
		return &reply
	}
	ok, number, nothing := &wire.ExpectOK, &wire.Expect{Kinds: wire.Of(wire.Number)}, read("", &wire.ExpectAny)
	for _, tt := range []struct {
		what    string
		raw     string
		is, got *wire.Reply
		expect  *wire.Expect
	}{
		{"nothing was read", "+OK\r\n", nothing, nothing, ok},
		{"not what was expected", "+OK\r\n", read("+OK\r\n", ok), read("+OK\r\n", ok), number},
		{
			"another status", "+QUEUED\r\n", read("+QUEUED\r\n", &wire.ExpectAny), read("+QUEUED\r\n", &wire.ExpectAny),
			&wire.Expect{Kinds: wire.Of(wire.Status), Status: "OK"},
		},
		{"not OK", "+NO\r\n", read("+OK\r\n", ok), read("+OK\r\n", ok), ok},
		{"another in pieces", ":1\r\n", read(":1\r\n", number), read(":2\r\n", number), number},
	} {
		if wrong([]byte(tt.raw), tt.is, tt.got, tt.expect) == "" {
			t.Errorf("%s, and nothing is said", tt.what)
		}
	}
	if fault := wrong([]byte(":1\r\n"), read(":1\r\n", number), read(":1\r\n", number), number); fault != "" {
		t.Errorf("nothing is wrong, and yet: %s", fault)
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	before := allocated(sample)
	believed = make([]byte, 536870912>>4)
	if took := allocated(sample) - before; took <= taken([]byte("$536870912\r\n"), &expectations[1]) {
		t.Errorf("%d bytes pass", took)
	}
	believed = nil
}

// believed is the memory that a parser would take if it believed a length.
var believed []byte
