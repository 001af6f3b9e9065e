// Package embedded runs masters inside this process, over miniredis, for the demo and for tests that need no
// redis-server on the machine. They speak the protocol on real sockets of 127.0.0.1, and they can be stopped, paused
// and restarted.
//
// Like Redis, time moves by itself (keys expire, TIME advances), stops while a script runs, and continues while a
// master is stopped. A restart brings a new run_id and an empty script cache.
//
// Unlike Redis, there is no replication and no eviction. Expiry takes time in proportion to the number of keys (fine
// for thousands). Only miniredis's commands exist. Timing under load says nothing about Redis; use real servers for
// that.
package embedded

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/localport"
)

// ErrClosed is returned by methods of a master after Close.
var ErrClosed = errors.New("embedded: master is closed")

// Master is one in-process Redis. All methods may be called concurrently.
type Master struct {
	port *localport.Port
	gate gate // shut while paused

	mu       sync.Mutex
	closed   bool
	engine   *Engine
	listener net.Listener // nil while stopped
	accept   sync.WaitGroup
}

// New starts a master on a free port of 127.0.0.1. Close ends it.
func New() (*Master, error) {
	port, err := localport.Reserve()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	m := &Master{port: port}
	if err := m.Restart(); err != nil {
		return nil, errors.Join(err, port.Release())
	}
	return m, nil
}

// Addr is host:port, the same for the master's whole life.
func (m *Master) Addr() string { return m.port.Addr() }

// URL is the address for clients.
func (m *Master) URL() string { return "redis://" + m.Addr() }

// Running reports whether connections are accepted, which is also true while the master is paused.
func (m *Master) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listener != nil
}

// Stop cuts every connection and refuses new ones until Restart. The data is kept and its time continues: keys may
// expire before the master returns. Stop does nothing to a stopped master.
func (m *Master) Stop() error { return m.stop(false) }

// StopLosingData is Stop for a master that loses its memory: Restart brings it back empty.
func (m *Master) StopLosingData() error { return m.stop(true) }

func (m *Master) stop(losing bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	err := m.shutLocked()
	if losing && m.engine != nil {
		m.engine.Close()
		m.engine = nil
	}
	return err
}

// shutLocked ends listening and all connections, and waits until their goroutines are gone.
func (m *Master) shutLocked() error {
	if m.listener == nil {
		return nil
	}
	err := m.listener.Close()
	m.accept.Wait() // after this no connection is added during Disconnect
	m.engine.Disconnect()
	m.listener = nil
	return err
}

// Restart stops the master if it runs and brings it back at the same address: with its data, unless StopLosingData took
// it. A paused master comes back unpaused. After an error (another program took the port) it stays stopped.
func (m *Master) Restart() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if err := m.shutLocked(); err != nil {
		return err
	}
	if m.engine == nil {
		fresh, err := NewEngine(time.Now)
		if err != nil {
			return err
		}
		m.engine = fresh
	}
	listener, err := localport.Listen(m.Addr())
	if err != nil {
		return fmt.Errorf("embedded: restart: %w", err)
	}
	m.gate.open()
	m.engine.reborn(m.port.Number())
	m.listener = listener
	engine := m.engine
	m.accept.Go(func() { m.serve(listener, engine) })
	return nil
}

func (m *Master) serve(listener net.Listener, engine *Engine) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		engine.Serve(newTimedConn(conn, &m.gate, engine))
	}
}

// Pause stops answering like a stopped process (SIGSTOP): connections stay open and new ones are accepted, but
// commands get their replies only after Resume. Pause does nothing to a paused master.
func (m *Master) Pause() { m.gate.shut() }

// Resume continues a paused master. It does nothing to any other master.
func (m *Master) Resume() { m.gate.open() }

// Close ends the master permanently: it cuts its connections, ends its goroutines and releases its port. Calling it
// again does nothing.
func (m *Master) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	err := m.shutLocked()
	if m.engine != nil {
		m.engine.Close()
	}
	m.closed = true
	return errors.Join(err, m.port.Release())
}

// Cluster is several independent masters; they know nothing of each other.
type Cluster struct {
	// Masters are in the order of their creation. The slice is not changed by this package.
	Masters []*Master
}

// Start starts n masters. If one fails, the others are closed.
func Start(n int) (*Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("embedded: %d masters asked for, want at least 1", n)
	}
	c := &Cluster{}
	for range n {
		m, err := New()
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.Masters = append(c.Masters, m)
	}
	return c, nil
}

// URLs are the masters' URLs.
func (c *Cluster) URLs() []string {
	urls := make([]string, len(c.Masters))
	for i, m := range c.Masters {
		urls[i] = m.URL()
	}
	return urls
}

// Close closes every master. Calling it again does nothing.
func (c *Cluster) Close() error {
	var err error
	for _, m := range c.Masters {
		err = errors.Join(err, m.Close())
	}
	return err
}
