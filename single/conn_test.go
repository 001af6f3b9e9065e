package single_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// A restarted master has closed every connection. Nothing is sent on these connections, so no request is lost.
func TestConnectionsClosedWhileIdleAreReplacedUnseen(t *testing.T) {
	server := redistest.Start(t)
	master, err := single.Dial(server.URL(), single.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := master.Ask(ctx, single.Request{Op: single.Inspect, Keys: []string{"k"}})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	server.Client().Ping(t.Context()) // it takes connections again
	idle := time.NewTimer(60 * time.Millisecond)
	<-idle.C // longer than a connection is trusted without a look
	if err := ask(); err != nil {
		t.Errorf("the first request after a restart: %v", err)
	}
}
