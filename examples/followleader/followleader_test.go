package followleader_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/examples/followleader"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/leader"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is one server, reachable.
type node struct {
	url  string
	stop func()
}

func start(t *testing.T, servers []*redistest.Server, name string) *node {
	t.Helper()
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	server, err := followleader.New(locker, "leader", web.URL,
		func(w http.ResponseWriter, _ *http.Request, _ *leader.Term) {
			_, _ = fmt.Fprint(w, name)
		})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/", server)
	mux.Handle("/healthz", server.Health())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	stopped := false
	n := &node{url: web.URL}
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-done //nolint:errcheck // ctx's error
		web.Close()
		shutdown, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := locker.Close(shutdown); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(n.stop)
	return n
}

// get sends a request to n, follows redirections, and returns the status and the body of the answer.
func get(t *testing.T, n *node, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error() // of a leader that has just stopped
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, strings.TrimSpace(string(text))
}

func TestEveryServerRedirectsToTheLeader(t *testing.T) {
	servers := redistest.StartN(t, 3)
	first := start(t, servers, "first")
	redistest.Eventually(t, 30*time.Second, func() bool { _, text := get(t, first, "/"); return text == "first" },
		"the first to lead")
	second := start(t, servers, "second")
	redistest.Eventually(t, 30*time.Second, func() bool {
		_, text := get(t, second, "/page?x=1")
		return text == "first"
	}, "the second to know the first")
	for n, want := range map[*node]string{first: "leading", second: "following"} {
		if status, text := get(t, n, "/healthz"); status != http.StatusOK || text != want {
			t.Errorf("health: %d %q, want %q", status, text, want)
		}
	}
	first.stop()
	redistest.Eventually(t, 30*time.Second, func() bool { _, text := get(t, second, "/"); return text == "second" },
		"the second to lead")
}
