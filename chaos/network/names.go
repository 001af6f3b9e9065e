package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Names is a name server on the loopback network. It resolves the names that clients use for
// masters, and can make a name unknown. Its methods are safe for concurrent use.
type Names struct {
	conn  net.PacketConn
	group sync.WaitGroup

	mu    sync.Mutex
	addrs map[string]netip.Addr
	gone  map[string]int // how many times each name was hidden
	asked map[string]int // how often a client asked for it while hidden
}

// domain is reserved for tests, so that no other name server knows it. The dot at the end keeps clients from trying
// other domains.
const domain = ".redlock-chaos.test."

// NewNames starts one, for the paths of the network.
func NewNames(n *Network) (*Names, error) {
	s := &Names{addrs: make(map[string]netip.Addr), gone: make(map[string]int), asked: make(map[string]int)}
	for c := range n.proxies {
		for m, addr := range n.Addrs(c) {
			at, err := netip.ParseAddrPort(addr)
			if err != nil || !at.Addr().Is4() {
				return nil, fmt.Errorf("network: names: a proxy is at %s, which is no address of version 4", addr)
			}
			s.addrs[name(Link{c, m})] = at.Addr()
		}
	}
	var err error
	if s.conn, err = net.ListenPacket("udp4", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("network: names: %w", err)
	}
	s.group.Go(s.serve)
	return s, nil
}

func name(l Link) string { return fmt.Sprintf("client-%d-master-%d%s", l.Client, l.Master, domain) }

// Addr is the server's UDP address.
func (s *Names) Addr() string { return s.conn.LocalAddr().String() }

// Of is the address at addr by the path's name.
func (s *Names) Of(l Link, addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(name(l), port)
}

// Hide makes the paths' names unknown until show is called. asked counts the clients that have
// received that answer since.
func (s *Names) Hide(links []Link) (asked func() int, show func()) {
	change := func(by int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range links {
			s.gone[name(l)] += by
		}
	}
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, l := range links {
			n += s.asked[name(l)]
		}
		return n
	}
	before := count()
	change(1)
	return func() int { return count() - before }, sync.OnceFunc(func() { change(-1) })
}

func (s *Names) serve() {
	buffer := make([]byte, 1<<12)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a client that has gone
		}
		if reply := s.answer(buffer[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from) // who does not get it asks again
		}
	}
}

const (
	headerSize  = 12
	typeA       = 1
	noSuchName  = 3
	flagReply   = 0x8480 // a reply, authoritative, recursion is available
	flagDesired = 0x0100 // the query asked for recursion, and the reply repeats this
)

// answer is the reply to a query with one question; nil for anything else.
func (s *Names) answer(query []byte) []byte {
	if len(query) < headerSize || binary.BigEndian.Uint16(query[4:]) != 1 {
		return nil
	}
	var labels strings.Builder
	at := headerSize
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if query[at] > 63 || end >= len(query) {
			return nil
		}
		labels.Write(query[at+1 : end])
		labels.WriteByte('.')
		at = end
	}
	if at+5 > len(query) {
		return nil
	}
	kind, question := binary.BigEndian.Uint16(query[at+1:]), query[headerSize:at+5]
	addr, known := s.lookUp(strings.ToLower(labels.String()))

	flags := uint16(flagReply) | binary.BigEndian.Uint16(query[2:])&flagDesired
	answers := uint16(0)
	switch {
	case !known:
		flags |= noSuchName
	case kind == typeA:
		answers = 1
	}
	reply := append([]byte(nil), query[:2]...)
	for _, n := range []uint16{flags, 1, answers, 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, n)
	}
	reply = append(reply, question...)
	if answers == 1 {
		// The name of the question, then an Internet address with a time to live of zero.
		reply = append(reply, 0xc0, headerSize, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, addr.AsSlice()...)
	}
	return reply
}

func (s *Names) lookUp(name string) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr, known := s.addrs[name]
	if s.gone[name] > 0 {
		s.asked[name]++
		return addr, false
	}
	return addr, known
}

// Close ends it.
func (s *Names) Close() error {
	err := s.conn.Close()
	s.group.Wait()
	return err
}

// Unname makes the names of paths unknown and closes their connections. It returns after a client
// has received the answer that the name does not exist; otherwise it fails.
func (n *Network) Unname(ctx context.Context, s *Names, links []Link, within time.Duration) (told int, show func(),
	err error,
) {
	asked, show := s.Hide(links)
	open, err := n.Add(ctx, links, Down())
	if err == nil {
		err = open()
	}
	if err != nil {
		show()
		return 0, show, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if told = asked(); told > 0 {
			return told, show, nil
		}
		select {
		case <-ctx.Done():
			show()
			return 0, show, errors.New("network: names: no client asked for a hidden name")
		case <-tick.C:
		}
	}
}
