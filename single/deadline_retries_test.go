package single_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// A request that is sent twice may set its key after the release that followed the first attempt. So it is sent once,
// whatever the client's options say.
func TestARequestIsSentOnceThroughAClientThatRetries(t *testing.T) {
	// for which go-redis tries again
	server := oddServer(t, says(map[string]string{"set": "-LOADING Redis is loading the dataset in memory\r\n"}))
	client := redis.NewClient(&redis.Options{
		Addr: server.addr, MaxRetries: 3, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: time.Millisecond,
	})
	m := over(t, client)
	if _, err := m.Ask(within(t, patience), acquire("key", "me", time.Minute)); err == nil || server.heard("set") != 1 {
		t.Errorf("%v after %d requests, want an error after one", err, server.heard("set"))
	}
	// The control: the client itself does send it again.
	if err := client.Set(within(t, patience), "key", "me", 0).Err(); err == nil || server.heard("set") != 1+4 {
		t.Errorf("%v after %d requests of the client: this test shows nothing", err, server.heard("set")-1)
	}
}

// A client may send a request again. Then a refusal can answer the second attempt while the first is still under way.
// So the key has to be released, and the call counts as sent.
func TestARefusalThroughAClientThatRetriesMayHaveSetTheKey(t *testing.T) {
	server := redistest.Start(t)
	for name, m := range map[string]*single.Master{
		"sends once":        dial(t, server.URL()),
		"may send it again": over(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}})),
	} {
		ask(t, m, acquire("key", "other", time.Minute))
		c := send(t, m, patience, acquire("key", "me", time.Minute))[0]
		if again := name != "sends once"; c.Err != nil || c.Reply.Outcome != single.Refused || c.Sent != again {
			t.Errorf("through a client that %s: %+v, %v, sent %t", name, c.Reply, c.Err, c.Sent)
		}
	}
}

// A client may hold back a request past its deadline and send it any time. Until it has dropped the request, nothing
// overtakes it.
func TestNothingOvertakesARequestThatAClientHoldsBack(t *testing.T) {
	goOn := make(chan struct{})
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "set" && words[1] == "slow" {
			<-goOn
		}
		return ""
	})
	m := over(t, redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": server.addr}, MaxRetries: -1, ReadTimeout: patience, PoolTimeout: patience,
	}))
	first := send(t, m, short, acquire("slow", "me", time.Minute))[0]
	if first.Err == nil || !first.Unsure() {
		t.Errorf("a request without an answer: %v, unsure %t", first.Err, first.Unsure())
	}
	second := send(t, m, patience, release("slow", "me"))[0]
	if second.Err == nil || second.Sent || errors.Is(second.Err, redis.Nil) {
		t.Errorf("a release behind it: %v, sent %t, want that it was not sent", second.Err, second.Sent)
	}
	if n := server.heard("evalsha") + server.heard("eval"); n != 0 {
		t.Errorf("%d releases have overtaken the acquisition", n)
	}
	close(goOn)
	redistest.Eventually(t, patience, func() bool {
		_, err := m.Ask(within(t, patience), release("slow", "me"))
		return err == nil
	}, "requests to be sent again")
}
