package machine

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// proxyEvery is the interval between the requests that check whether a toxiproxy server gets time to run.
	proxyEvery = 20 * time.Millisecond
	// proxyPatience bounds one question.
	proxyPatience = time.Second
)

// askProxy asks a toxiproxy server for its version, again and again until ctx ends. The other
// checks do not see masters and proxies in containers. If these get no time, no client reaches a
// majority, with or without faults. The proxy itself answers, so a lock that keeps its masters busy
// makes no answer late. A lock that floods the proxy does, as it makes other processes wait.
func (m *Machine) askProxy(ctx context.Context, api string) {
	if !strings.Contains(api, "://") {
		api = "http://" + api
	}
	transport := &http.Transport{MaxIdleConns: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: proxyPatience}
	tick := time.NewTicker(proxyEvery)
	defer tick.Stop()
	answered := m.recorder.Now()
	since, fastest := answered, proxyPatience // it may be far away
	for {
		err := ask(ctx, client, strings.TrimSuffix(api, "/")+"/version")
		now, ended := m.recorder.Now(), ctx.Err() != nil
		took := time.Duration(now - since)
		if err == nil {
			fastest = min(fastest, took)
		}
		// a question and its answer wait once each
		if late := took - fastest; late > 2*m.tolerate && (err == nil || ended) {
			m.stall(answered, now, late, "the toxiproxy server") // it may have gone just after its last answer
		}
		if ended {
			return
		}
		if err == nil {
			answered = now
		}
		select {
		case <-ctx.Done(): // one more request, which fails: a request without an answer at the end is a stall
		case <-tick.C:
		}
		if err == nil {
			since = m.recorder.Now()
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return err
}
