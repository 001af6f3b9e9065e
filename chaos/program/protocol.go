package program

import (
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

// request is a line to the program.
type request struct {
	ID      uint64   `json:"id"`
	Op      string   `json:"op"`
	Masters []string `json:"masters,omitempty"`
	Key     string   `json:"key,omitempty"`
	TTL     float64  `json:"ttl_ms,omitempty"`
	Once    bool     `json:"once,omitempty"`
	Renew   bool     `json:"renew,omitempty"`
	Fenced  bool     `json:"fenced,omitempty"`
	Hold    string   `json:"hold,omitempty"`
	Of      uint64   `json:"of,omitempty"`
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
	// In the answer to open: whether it has fencing tokens, tells of lost holds, waits for keys by itself.
	Tokens bool   `json:"tokens"`
	Lost   bool   `json:"lost"`
	Waits  bool   `json:"waits"`
	Event  string `json:"event"`
}

// words are the errors of the protocol.
var words = map[string]error{
	"held": workload.ErrHeld, "no-quorum": workload.ErrNoQuorum, "expired": workload.ErrExpired, "lost": workload.ErrLost,
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
