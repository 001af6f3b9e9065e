// Package followleader is an HTTP server that runs in several processes. One process leads and serves requests; the
// others redirect clients to it.
//
// The leader publishes its address with its term. The others read the address from the masters, so the processes need
// no list of each other. A redirection may reach a process that no longer leads; that process redirects again. If two
// leaders must not do the same work, carry the term's fencing token to the resource that checks it (package fence).
package followleader

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/leader"
)

// Server is one process of the group, an http.Handler.
type Server struct {
	candidate *leader.Candidate
	serve     func(w http.ResponseWriter, r *http.Request, term *leader.Term)
	known     atomic.Pointer[leader.Report] // the leader last reported
}

// every is the interval at which Run asks the masters who leads.
const every = time.Second

// New returns a server with the address url, such as http://10.0.0.1:8080. serve answers requests while the server
// leads.
func New(locker *redlock.Locker, key, url string,
	serve func(w http.ResponseWriter, r *http.Request, term *leader.Term),
) (*Server, error) {
	candidate, err := leader.New(locker, leader.Config{Key: key, TTL: 10 * time.Second, Value: url})
	if err != nil {
		return nil, err
	}
	return &Server{candidate: candidate, serve: serve}, nil
}

// Run campaigns and follows the current leader until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		s.follow(ctx)
	}()
	defer func() {
		stop()
		<-followed
	}()
	return s.candidate.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		<-ctx.Done() // ServeHTTP does the leader's work; a leader with background work does it here
		return ctx.Err()
	})
}

func (s *Server) follow(ctx context.Context) {
	for term, err := range s.candidate.Observe(ctx, every) {
		if err != nil {
			return // Run's campaign fails for the same reason and returns the error
		}
		s.known.Store(&term)
	}
}

// Health is for probes, at /healthz.
func (s *Server) Health() http.Handler { return s.candidate }

// ServeHTTP serves the request, or redirects it to the leader.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	term := s.candidate.Term()
	if term.Err() == nil {
		w.Header().Set("X-Term", strconv.FormatUint(term.Token(), 10))
		s.serve(w, r, term)
		return
	}
	if known := s.known.Load(); known != nil && known.Led() && known.ID != term.ID() {
		//nolint:gosec // what candidates publish, and the path behind it
		http.Redirect(w, r, known.Value+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "there is no leader", http.StatusServiceUnavailable)
}
