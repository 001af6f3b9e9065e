package promobserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/observe/promobserver"
)

// measured dials masters, counts what happens to locks, and serves the counts at /metrics.
func measured(ctx context.Context, masters []string, mux *http.ServeMux) (*redlock.Locker, error) {
	registry := prometheus.NewRegistry()
	observer, err := promobserver.New(registry)
	if err != nil {
		return nil, err
	}
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return redlock.Dial(ctx, masters, redlock.Options{Observer: observer.Observe})
}

func Example() {
	ctx := context.Background()
	masters, err := embedded.Start(3) // in your program: the URLs of three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	mux := http.NewServeMux()
	locker, err := measured(ctx, masters.URLs(), mux)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(locker.Do(ctx, "orders:42", 10*time.Second, func(context.Context) error { return nil }))
	closing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fmt.Println(locker.Close(closing)) // delivers the last events

	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	fmt.Println(strings.Contains(page.Body.String(), `redlock_acquisitions_total{result="ok"} 1`))
	// Output:
	// <nil>
	// <nil>
	// true
}
