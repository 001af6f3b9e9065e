// Package followleader is an HTTP server of which several run and one leads: the leader serves, the others send clients to it.
//
// The leader's address is what it publishes with its term, and the others learn it from the masters, so nothing else has to know who
// they are. A redirection may lead to somebody who does not lead any more: that one redirects again. What must not be done by two
// leaders carries the term's fencing token to where it can be checked (package fence).
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

// Server is one of them, an http.Handler.
type Server struct {
	candidate *leader.Candidate
	serve     func(w http.ResponseWriter, r *http.Request, term *redlock.Leadership)
	known     atomic.Pointer[leader.Term] // who leads, as it was told last
}

// every is how often the masters are asked who leads.
const every = time.Second

// New makes a server that is reached at url, such as http://10.0.0.1:8080. serve answers requests while it leads.
func New(locker *redlock.Locker, key, url string, serve func(w http.ResponseWriter, r *http.Request, term *redlock.Leadership)) (*Server, error) {
	candidate, err := leader.New(locker, leader.Config{Key: key, TTL: 10 * time.Second, Value: url})
	if err != nil {
		return nil, err
	}
	return &Server{candidate: candidate, serve: serve}, nil
}

// Run campaigns, and follows whoever leads, until ctx is done.
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
	return s.candidate.Run(ctx, func(ctx context.Context, _ *redlock.Leadership) error {
		<-ctx.Done() // requests are served elsewhere; a leader with work of its own does it here
		return ctx.Err()
	})
}

func (s *Server) follow(ctx context.Context) {
	for term, err := range s.candidate.Observe(ctx, every) {
		if err != nil {
			return // Run's campaign fails for the same reason, and says so
		}
		s.known.Store(&term)
	}
}

// Health is for probes, at /healthz.
func (s *Server) Health() http.Handler { return s.candidate }

// ServeHTTP serves, or says who does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	term := s.candidate.Term()
	if term.Err() == nil {
		w.Header().Set("X-Term", strconv.FormatUint(term.Token(), 10))
		s.serve(w, r, term)
		return
	}
	if known := s.known.Load(); known != nil && known.Led() && known.ID != term.ID() {
		http.Redirect(w, r, known.Value+r.URL.RequestURI(), http.StatusTemporaryRedirect) //nolint:gosec // what candidates publish, and the path behind it
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "nobody leads", http.StatusServiceUnavailable)
}
