package program

import (
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// request is a line to the program.
type request struct {
	ID      uint64   `json:"id"`
	Op      string   `json:"op"`
	Masters []string `json:"masters,omitempty"`
	URLs    []string `json:"urls,omitempty"`
	TLS     *secure  `json:"tls,omitempty"`
	Key     string   `json:"key,omitempty"`
	TTL     float64  `json:"ttl_ms,omitempty"`
	Once    bool     `json:"once,omitempty"`
	Renew   bool     `json:"renew,omitempty"`
	Fenced  bool     `json:"fenced,omitempty"`
	Hold    string   `json:"hold,omitempty"`
	Of      uint64   `json:"of,omitempty"`
}

// secure is how to speak TLS with the masters: PEM files, and the names that the masters' certificates must have.
type secure struct {
	CA    string   `json:"ca,omitempty"`
	Cert  string   `json:"cert,omitempty"`
	Key   string   `json:"key,omitempty"`
	Names []string `json:"names"`
}

// opening asks for a client of these masters.
func opening(masters []endpoint.Endpoint) request {
	r := request{Op: "open", Masters: endpoint.Addrs(masters)}
	for i, m := range masters {
		r.URLs = append(r.URLs, m.URL())
		if m.TLS == nil {
			continue
		}
		if r.TLS == nil {
			r.TLS = &secure{CA: m.TLS.CA, Cert: m.TLS.Cert, Key: m.TLS.Key, Names: make([]string, len(masters))}
		}
		r.TLS.Names[i] = m.TLS.ServerName
	}
	return r
}

// reply is a line from the program: the answer to a request, or, with Event, news of a hold.
type reply struct {
	ID      uint64  `json:"id"`
	Error   string  `json:"error"`
	Message string  `json:"message"`
	Hold    string  `json:"hold"`
	Owner   string  `json:"owner"`
	Token   uint64  `json:"token"`
	Valid   float64 `json:"valid_ms"`
	// In the answer to open: whether it has fencing tokens, renews holds, tells of lost holds, waits for keys by
	// itself.
	Tokens bool `json:"tokens"`
	Renews bool `json:"renews"`
	Lost   bool `json:"lost"`
	Waits  bool `json:"waits"`
	// Secured reports that the program logs in and uses TLS as the request says.
	Secured bool   `json:"secured"`
	Event   string `json:"event"`
}

// words are the errors of the protocol.
var words = map[string]error{
	"held": workload.ErrHeld, "no-quorum": workload.ErrNoQuorum, "expired": workload.ErrExpired,
	"lost":        workload.ErrLost,
	"unsupported": workload.ErrUnsupported,
}

func (r *reply) err() error {
	if r.Error == "" {
		return nil
	}
	if word, ok := words[r.Error]; ok {
		return fmt.Errorf("%w: %s", word, r.Message)
	}
	return fmt.Errorf("program: %s: %s", r.Error, r.Message)
}
