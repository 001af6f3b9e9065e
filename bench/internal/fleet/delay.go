package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/parallel"
)

// Delayed is a set of proxies in this process. Each delays the answers of one master. The proxies share the machine's
// cores with the client. So results show how subjects differ, but are not accurate to the microsecond for a real wire
// of that length.
type Delayed struct {
	addrs   []string
	proxies []*toxiproxy.Proxy
	stop    func() // of exactTimers
}

// Delay puts a proxy before every address with a delay other than 0. It returns the other addresses unchanged, so a
// healthy master costs the same as without a proxy. Delays are whole milliseconds, the unit of toxiproxy.
func Delay(addrs []string, delays []time.Duration) (*Delayed, error) {
	if len(addrs) != len(delays) {
		return nil, fmt.Errorf("fleet: %d delays for %d masters", len(delays), len(addrs))
	}
	d := &Delayed{stop: exactTimers()}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	for i, addr := range addrs {
		if delays[i] == 0 {
			d.addrs = append(d.addrs, addr)
			continue
		}
		proxy := toxiproxy.NewProxy(server, fmt.Sprintf("master-%d", i), "127.0.0.1:0", addr)
		if err := proxy.Start(); err != nil {
			return nil, errors.Join(fmt.Errorf("fleet: proxy for %s: %w", addr, err), d.Close())
		}
		d.proxies = append(d.proxies, proxy)
		toxic := fmt.Sprintf(`{"name":"delay","type":"latency","stream":"downstream","attributes":{"latency":%d}}`,
			delays[i].Milliseconds())
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return nil, errors.Join(fmt.Errorf("fleet: delay for %s: %w", addr, err), d.Close())
		}
		d.addrs = append(d.addrs, proxy.Listen)
	}
	return d, nil
}

// Addrs are the addresses to use instead of those given to Delay, in the same order.
func (d *Delayed) Addrs() []string { return append([]string(nil), d.addrs...) }

const (
	// pings is the least number of answers for the median of Pings.
	pings = 11
	// pingEvery is the time between them.
	pingEvery = 5 * time.Millisecond
)

// Pings measures how long each master takes for a PING, which includes the delay and the time of proxy, server and
// timers. Each figure is the median of several PINGs, and of more if there is time before during ends. With nil, Pings
// sends the least number.
func (d *Delayed) Pings(ctx context.Context, during <-chan struct{}) ([]time.Duration, error) {
	out := make([]time.Duration, len(d.addrs))
	return out, parallel.Each(len(out), func(i int) (err error) {
		out[i], err = ping(ctx, d.addrs[i], during)
		return err
	})
}

func ping(ctx context.Context, addr string, during <-chan struct{}) (time.Duration, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	var took []float64
	var err error
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for n := 0; err == nil && (n < pings || goesOn(during)); n++ {
		start := time.Now()
		err = rdb.Ping(ctx).Err() // also says that ctx has ended
		took = append(took, float64(time.Since(start)))
		<-tick.C
	}
	if err = errors.Join(err, rdb.Close()); err != nil {
		return 0, fmt.Errorf("fleet: ping %s: %w", addr, err)
	}
	return time.Duration(measure.SpreadOf(took).Median), nil
}

// goesOn reports whether a channel is still open; nil counts as closed.
func goesOn(during <-chan struct{}) bool {
	select {
	case <-during:
		return false
	default:
		return during != nil
	}
}

// Close ends the proxies and their connections. Close the clients first: they would try to connect again.
func (d *Delayed) Close() error {
	for _, p := range d.proxies {
		p.Stop()
	}
	d.proxies = nil
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
	return nil
}
