package workload

import (
	"bufio"
	"encoding/json"
	"sync"
)

// registerMark begins a line of a child that is no event: it asks for a register, which is in the process that started
// it. One that is stopped asks when it goes on.
const registerMark = "register "

// registerRequest is a child's request, and registerReply the line that answers it.
type registerRequest struct {
	ID      uint64 `json:"id"`
	Checked bool   `json:"checked,omitempty"`
	Write   bool   `json:"write,omitempty"`
	Attempt uint64 `json:"attempt"`
	Client  int    `json:"client"`
	Key     string `json:"key"`
	Token   uint64 `json:"token,omitempty"`
	Value   int64  `json:"value,omitempty"`
}

type registerReply struct {
	ID    uint64 `json:"id"`
	Value int64  `json:"value"`
	OK    bool   `json:"ok"`
}

// serve answers a request of the child's.
func (c *Child) serve(line []byte) {
	var r registerRequest
	if json.Unmarshal(line, &r) != nil {
		return // the half line of a killed process
	}
	resource := c.plain
	if r.Checked {
		resource = c.checked
	}
	reply := registerReply{ID: r.ID}
	switch {
	case resource == nil:
	case r.Write:
		reply.OK = resource.Write(r.Attempt, r.Client, r.Key, r.Token, r.Value)
	default:
		reply.Value, reply.OK = resource.Read(r.Attempt, r.Client, r.Key, r.Token)
	}
	if text, err := json.Marshal(reply); err == nil {
		_, _ = c.stdin.Write(append(text, '\n')) // one that has been killed reads nothing
	}
}

// parentRegisters are, in a child, the registers of the process that started it.
type parentRegisters struct {
	sink *lineSink
	wall WallClock // the child's time of day, if the harness sets it

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan registerReply
	ended   bool
}

func newParentRegisters(sink *lineSink) *parentRegisters {
	return &parentRegisters{sink: sink, waiting: make(map[uint64]chan registerReply)}
}

// read takes the answers, and settings of the clock, until the parent wants the child to end. Who still waits then is
// refused.
func (p *parentRegisters) read(lines *bufio.Reader) {
	scanner := bufio.NewScanner(lines)
	for scanner.Scan() {
		var said struct {
			registerReply
			Clock *ClockSetting `json:"clock"`
		}
		switch err := json.Unmarshal(scanner.Bytes(), &said); {
		case err != nil:
		case said.Clock != nil:
			p.setClock(*said.Clock)
		default:
			p.answer(said.registerReply)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for id, got := range p.waiting {
		got <- registerReply{}
		delete(p.waiting, id)
	}
}

func (p *parentRegisters) answer(reply registerReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.waiting[reply.ID]; got != nil {
		got <- reply
		delete(p.waiting, reply.ID)
	}
}

func (p *parentRegisters) ask(r registerRequest) registerReply {
	got := make(chan registerReply, 1)
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return registerReply{}
	}
	p.last++
	r.ID = p.last
	p.waiting[r.ID] = got
	p.mu.Unlock()
	p.sink.mu.Lock()
	p.sink.writeLocked(registerMark, r)
	p.sink.mu.Unlock()
	return <-got
}

// of returns the register that checks tokens, or the register that does not.
func (p *parentRegisters) of(checked bool) Resource { return parentRegister{p, checked} }

type parentRegister struct {
	all     *parentRegisters
	checked bool
}

func (r parentRegister) Read(attempt uint64, client int, key string, token uint64) (value int64, ok bool) {
	reply := r.all.ask(registerRequest{Checked: r.checked, Attempt: attempt, Client: client, Key: key, Token: token})
	return reply.Value, reply.OK
}

func (r parentRegister) Write(attempt uint64, client int, key string, token uint64, value int64) bool {
	return r.all.ask(registerRequest{
		Checked: r.checked, Write: true, Attempt: attempt, Client: client, Key: key, Token: token, Value: value,
	}).OK
}
