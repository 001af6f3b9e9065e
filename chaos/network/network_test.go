package network_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/internal/toxileak"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, toxileak.Known()...)
}

// master echoes lines and counts those it received.
type master struct {
	net.Listener
	lines  atomic.Int64
	pieces atomic.Int64
	closed chan time.Time // when a connection was seen to end
}

func startMaster(t *testing.T) *master {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	m := &master{Listener: l, closed: make(chan time.Time, 64)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go m.serve(conn)
		}
	}()
	return m
}

func (m *master) serve(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			m.closed <- time.Now()
			return
		}
		m.pieces.Add(1)
		m.lines.Add(int64(strings.Count(string(buf[:n]), "\n")))
		if _, err := conn.Write(buf[:n]); err != nil {
			return
		}
	}
}

// pair is a network of one client and one master.
func pair(t *testing.T) (*network.Network, *master) {
	t.Helper()
	m := startMaster(t)
	return build(t, network.Options{Clients: 1, Upstreams: []string{m.Addr().String()}}), m
}

func build(t *testing.T, o network.Options) *network.Network {
	t.Helper()
	n, err := network.New(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, n.Close()) })
	return n
}

type wire struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t: t, Conn: conn, r: bufio.NewReader(conn)}
}

// ask sends a line and waits for its echo.
func (w *wire) ask(line string, within time.Duration) (time.Duration, error) {
	w.t.Helper()
	start := time.Now()
	_ = w.SetDeadline(start.Add(within))
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		return 0, err
	}
	got, err := w.r.ReadString('\n')
	if err == nil && got != line+"\n" {
		w.t.Errorf("echo of %d bytes came back as %d", len(line), len(got))
	}
	return time.Since(start), err
}

func (w *wire) mustAsk(line string) time.Duration {
	w.t.Helper()
	d, err := w.ask(line, 5*time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func add(t *testing.T, n *network.Network, toxic network.Toxic) (remove func()) {
	t.Helper()
	f, err := n.Add(t.Context(), []network.Link{{}}, toxic)
	must(t, err)
	return func() {
		t.Helper()
		must(t, f())
	}
}

func TestASlowPathDelaysAnOpenConnectionUntilItIsMended(t *testing.T) {
	for _, tt := range []struct {
		toxic   network.Toxic
		line    string
		atLeast time.Duration
	}{
		{network.Latency(network.Both, 100*time.Millisecond, 0), "x", 195 * time.Millisecond},
		{network.Latency(network.Replies, 150*time.Millisecond, 0), "x", 145 * time.Millisecond},
		{network.Bandwidth(network.Requests, 100), strings.Repeat("x", 30_000), 250 * time.Millisecond},
	} {
		n, _ := pair(t)
		w := dial(t, n.Addrs(0)[0])
		if d := w.mustAsk(tt.line); d > tt.atLeast/2 {
			t.Fatalf("an exchange takes %v without any toxic", d)
		}
		remove := add(t, n, tt.toxic)
		if d := w.mustAsk(tt.line); d < tt.atLeast {
			t.Errorf("%s: an exchange took %v, want at least %v", tt.toxic, d, tt.atLeast)
		}
		remove()
		if d := w.mustAsk(tt.line); d > tt.atLeast/2 {
			t.Errorf("an exchange takes %v after %s was removed", d, tt.toxic)
		}
	}
}

func TestASlicerSendsARequestInPieces(t *testing.T) {
	n, m := pair(t)
	w := dial(t, n.Addrs(0)[0])
	w.mustAsk(strings.Repeat("x", 100))
	before := m.pieces.Load()
	add(t, n, network.Slicer(network.Requests, 10, 2*time.Millisecond))
	w.mustAsk(strings.Repeat("x", 100))
	if pieces := m.pieces.Load() - before; pieces < 5 {
		t.Errorf("100 bytes came in %d pieces", pieces)
	}
}

func TestJitterMakesDelaysDiffer(t *testing.T) {
	n, _ := pair(t)
	w := dial(t, n.Addrs(0)[0])
	add(t, n, network.Latency(network.Requests, 30*time.Millisecond, 30*time.Millisecond))
	var took []time.Duration
	for range 10 {
		took = append(took, w.mustAsk("x"))
	}
	if spread := slices.Max(took) - slices.Min(took); spread < 10*time.Millisecond {
		t.Errorf("ten exchanges took %v", took)
	}
}

func TestSilenceOfRequestsKeepsThemFromTheMaster(t *testing.T) {
	n, m := pair(t)
	w := dial(t, n.Addrs(0)[0])
	w.mustAsk("x")
	remove := add(t, n, network.Silence(network.Requests))
	if _, err := w.ask("x", 100*time.Millisecond); !isTimeout(err) {
		t.Errorf("a silenced exchange ended with %v", err)
	}
	if got := m.lines.Load(); got != 1 {
		t.Errorf("the master received %d lines, want the first only", got)
	}
	remove()
	dial(t, n.Addrs(0)[0]).mustAsk("again")
}

func TestSilenceOfRepliesLetsRequestsThrough(t *testing.T) {
	n, m := pair(t)
	w := dial(t, n.Addrs(0)[0])
	add(t, n, network.Silence(network.Replies))
	if _, err := w.ask("x", 100*time.Millisecond); !isTimeout(err) {
		t.Errorf("a silenced exchange ended with %v", err)
	}
	if got := m.lines.Load(); got != 1 {
		t.Errorf("the master received %d lines, want 1", got)
	}
}

func TestTimeoutClosesConnections(t *testing.T) {
	n, _ := pair(t)
	w := dial(t, n.Addrs(0)[0])
	add(t, n, network.Timeout(network.Replies, 50*time.Millisecond))
	if d, err := w.ask("x", 2*time.Second); err == nil || isTimeout(err) {
		t.Errorf("after %v: %v, want a closed connection", d, err)
	}
}

func TestResetPeerResetsConnections(t *testing.T) {
	n, _ := pair(t)
	add(t, n, network.ResetPeer(network.Replies, 0))
	_, err := dial(t, n.Addrs(0)[0]).ask("x", 2*time.Second)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v, want a reset", err)
	}
}

func TestLimitDataClosesAConnectionAfterItsBytes(t *testing.T) {
	n, _ := pair(t)
	add(t, n, network.LimitData(network.Replies, 10))
	w := dial(t, n.Addrs(0)[0])
	w.mustAsk("12345678")
	if _, err := w.ask("12345678", 2*time.Second); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v, want the end", err)
	}
}

func TestSlowCloseDelaysTheEnd(t *testing.T) {
	n, m := pair(t)
	add(t, n, network.SlowClose(150*time.Millisecond))
	w := dial(t, n.Addrs(0)[0])
	w.mustAsk("x")
	start := time.Now()
	_ = w.Close()
	if d := (<-m.closed).Sub(start); d < 140*time.Millisecond {
		t.Errorf("the master saw the end after %v", d)
	}
}

func TestADownPathRefusesUntilAllItsFaultsAreRemoved(t *testing.T) {
	n, _ := pair(t)
	w := dial(t, n.Addrs(0)[0])
	w.mustAsk("x")
	first, second := add(t, n, network.Down()), add(t, n, network.Down())
	if _, err := w.ask("x", time.Second); err == nil || isTimeout(err) {
		t.Errorf("an open connection ended with %v", err)
	}
	first()
	if _, err := net.DialTimeout("tcp", n.Addrs(0)[0], time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling: %v, want refused", err)
	}
	second()
	second()
	dial(t, n.Addrs(0)[0]).mustAsk("x")
}

func TestDroppedSYNsLetDiallingHang(t *testing.T) {
	n, _ := pair(t)
	if err := n.Can(network.SynDrop()); err != nil {
		redistest.NothingTested(t, err)
	}
	w := dial(t, n.Addrs(0)[0])
	w.mustAsk("x")
	refused, silent, again := add(t, n, network.Down()), add(t, n, network.SynDrop()), add(t, n, network.SynDrop())
	if _, err := w.ask("x", time.Second); err == nil || isTimeout(err) {
		t.Errorf("an open connection ended with %v", err)
	}
	hangs := func() {
		t.Helper()
		if _, err := net.DialTimeout("tcp", n.Addrs(0)[0], 100*time.Millisecond); err == nil || !isTimeout(err) {
			t.Errorf("dialling: %v, want no answer", err)
		}
	}
	hangs()
	silent()
	hangs()
	again()
	if _, err := net.DialTimeout("tcp", n.Addrs(0)[0], time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling: %v, want refused", err)
	}
	refused()
	dial(t, n.Addrs(0)[0]).mustAsk("x")
}

// TestAProxyWhoseRemovalHangsIsReplaced makes toxiproxy's issue 558 happen: the client stops reading, so data piles up
// before the toxic and its removal waits for ever.
func TestAProxyWhoseRemovalHangsIsReplaced(t *testing.T) {
	n, _ := pair(t)
	addr := n.Addrs(0)[0]
	remove := add(t, n, network.Slicer(network.Replies, 1000, 0))
	w := dial(t, addr)
	flood := make(chan struct{})
	go func() {
		defer close(flood)
		chunk := make([]byte, 1<<16)
		for {
			_ = w.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}()
	<-flood
	start := time.Now()
	remove()
	if d := time.Since(start); d > 6*time.Second {
		t.Errorf("the removal took %v", d)
	}
	if n.Replaced() != 1 {
		t.Errorf("%d proxies were replaced, want 1", n.Replaced())
	}
	dial(t, addr).mustAsk("x")
}

func TestAPartitionCutsItsPathsOnly(t *testing.T) {
	var addrs []string
	for range 3 {
		addrs = append(addrs, startMaster(t).Addr().String())
	}
	n := build(t, network.Options{Clients: 2, Upstreams: addrs})
	matrix := network.IsolateClients(2, 3, []int{1})
	heal, err := n.Add(t.Context(), matrix.Links(), network.Silence(network.Both))
	must(t, err)
	for c := range 2 {
		for m, addr := range n.Addrs(c) {
			_, err := dial(t, addr).ask("x", 150*time.Millisecond)
			if (err != nil) != matrix[c][m] {
				t.Errorf("client %d, master %d: %v", c, m, err)
			}
		}
	}
	must(t, heal())
	for _, addr := range n.Addrs(1) {
		dial(t, addr).mustAsk("x")
	}
}

func TestAddRefusesPathsThatDoNotExist(t *testing.T) {
	n, _ := pair(t)
	remove, err := n.Add(t.Context(), []network.Link{{Client: 0, Master: 1}}, network.Down())
	if err == nil || remove() != nil {
		t.Errorf("error %v", err)
	}
}

func TestARemoteToxiproxyDoesTheSame(t *testing.T) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	api := httptest.NewServer(server.Routes())
	t.Cleanup(api.Close)
	m := startMaster(t)
	n := build(t, network.Options{Clients: 1, Upstreams: []string{m.Addr().String()}, API: api.URL})
	w := dial(t, n.Addrs(0)[0])
	w.mustAsk("x")
	remove := add(t, n, network.Latency(network.Both, 300*time.Millisecond, 0))
	if d := w.mustAsk("x"); d < 550*time.Millisecond {
		t.Errorf("an exchange took %v", d)
	}
	remove()
	if d := w.mustAsk("x"); d > 300*time.Millisecond {
		t.Errorf("an exchange took %v after removal", d)
	}
	if err := n.Can(network.SynDrop()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("syn-drop there: %v", err)
	}
	if _, err := n.Add(t.Context(), []network.Link{{}}, network.SynDrop()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("syn-drop there was done: %v", err)
	}
	remove = add(t, n, network.Down())
	if _, err := net.DialTimeout("tcp", n.Addrs(0)[0], time.Second); err == nil {
		t.Error("a connection was accepted")
	}
	remove()
	dial(t, n.Addrs(0)[0]).mustAsk("x")
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func TestPlacesThatAreTooFewAreAnError(t *testing.T) {
	_, err := network.New(t.Context(), network.Options{
		Clients: 2, Upstreams: []string{"127.0.0.1:1"}, API: "http://127.0.0.1:1",
		Places: []network.Place{{Listen: "127.0.0.1:0", Addr: "127.0.0.1:1"}},
	})
	if err == nil || !strings.Contains(err.Error(), "need 2 proxies") {
		t.Errorf("error %v", err)
	}
}

// TestAProxyIsWhereNoClientIsGivenItsPort: while a proxy is down, the kernel may give a port of its ephemeral range to
// any connection, and the proxy could not come back.
func TestAProxyIsWhereNoClientIsGivenItsPort(t *testing.T) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		redistest.NothingTested(t, err)
	}
	var lowest, highest int
	if _, err := fmt.Sscan(string(raw), &lowest, &highest); err != nil {
		t.Fatal(err)
	}
	m := startMaster(t)
	n := build(t, network.Options{Upstreams: []string{m.Addr().String()}, Clients: 8})
	for client := range 8 {
		_, text, _ := net.SplitHostPort(n.Addrs(client)[0])
		if port, err := strconv.Atoi(text); err != nil || port >= lowest && port <= highest {
			t.Errorf("a proxy has port %s, %v; connections are given %d to %d", text, err, lowest, highest)
		}
	}
}
