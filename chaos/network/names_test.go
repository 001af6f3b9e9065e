package network_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/network"
)

// TestANameIsUnknownWhileItIsHidden asks as Go's own resolver does. A name is known, then unknown
// while it is hidden at least once, then known again. The name of another path stays known.
func TestANameIsUnknownWhileItIsHidden(t *testing.T) {
	n := build(t, network.Options{Clients: 2, Upstreams: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	s, err := network.NewNames(n)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.Addr())
	}}
	look := func(l network.Link) error {
		host, port, err := net.SplitHostPort(s.Of(l, "127.0.0.1:40001"))
		if err != nil || port != "40001" {
			t.Fatalf("%s %s, %v", host, port, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		addrs, err := resolver.LookupHost(ctx, host)
		if err == nil && (len(addrs) != 1 || addrs[0] != "127.0.0.1") {
			t.Errorf("%s is at %v", host, addrs)
		}
		return err
	}
	unknown := func(l network.Link) bool {
		err := look(l)
		dns, ok := errors.AsType[*net.DNSError](err)
		if err != nil && (!ok || !dns.IsNotFound) {
			t.Errorf("another error: %v", err)
		}
		return err != nil
	}
	path, other := network.Link{Client: 1, Master: 0}, network.Link{Client: 0, Master: 0}
	if unknown(path) || unknown(other) {
		t.Fatal("not known from the beginning")
	}
	asked, show := s.Hide([]network.Link{path})
	_, showToo := s.Hide([]network.Link{path})
	if asked() != 0 || !unknown(path) || asked() == 0 || unknown(other) {
		t.Errorf("hidden, and asked for %d times", asked())
	}
	show()
	show()
	if !unknown(path) {
		t.Error("it is known before both have shown it")
	}
	showToo()
	if unknown(path) {
		t.Error("it is not known again")
	}
	if !unknown(network.Link{Client: 7, Master: 0}) {
		t.Error("a name of no path is known")
	}
}

// TestHidingANameFailsIfNoClientNotices: a fault without any client that notices it has no effect.
func TestHidingANameFailsIfNoClientNotices(t *testing.T) {
	n := build(t, network.Options{Clients: 1, Upstreams: []string{"127.0.0.1:1"}})
	s, err := network.NewNames(n)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	if _, _, err := n.Unname(t.Context(), s, []network.Link{{}}, 50*time.Millisecond); err == nil {
		t.Error("no client observed it")
	}
}
