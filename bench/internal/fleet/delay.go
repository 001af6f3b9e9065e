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
)

// Delayed is a set of proxies in this process, each with a delay on the answers of one master. They share the
// machine's cores with the client, so what they show is how subjects differ, not what a wire of that length would do to
// the microsecond.
type Delayed struct {
	addrs   []string
	proxies []*toxiproxy.Proxy
	stop    func() // of exactTimers
}

// Delay puts a proxy before every address whose delay is not 0. The others are passed on as they are, so a healthy
// master costs what it costs without a proxy. Delays are whole milliseconds, the unit of toxiproxy.
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

// pings is how many answers the median of Pings is taken from.
const pings = 11

// Pings is how long each master takes for a PING when nothing else is going on: what the delay has become by the time
// that proxy and timers have had their share. It is the median of several.
func (d *Delayed) Pings(ctx context.Context) ([]time.Duration, error) {
	out := make([]time.Duration, len(d.addrs))
	for i, addr := range d.addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		var took []float64
		var err error
		for n := 0; n < pings && err == nil; n++ {
			start := time.Now()
			err = rdb.Ping(ctx).Err()
			took = append(took, float64(time.Since(start)))
		}
		if err = errors.Join(err, rdb.Close()); err != nil {
			return nil, fmt.Errorf("fleet: ping %s: %w", addr, err)
		}
		out[i] = time.Duration(measure.SpreadOf(took).Median)
	}
	return out, nil
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
