// Package limit measures the machine's limit: redis-benchmark, a program in C, sends the two commands of a lock cycle
// to all masters at once. It uses deep pipelines, and does no work with the answers.
package limit

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/bench/internal/parallel"
)

// ErrNotInstalled means that there is no redis-benchmark on PATH.
var ErrNotInstalled = errors.New("limit: redis-benchmark is not installed")

const (
	connections = 8   // of each redis-benchmark to its master
	pipeline    = 128 // requests under way on each connection

	// sounding is the number of requests in the first, short run. From its rate follows how many requests fill the
	// wanted time.
	sounding = 20_000

	script = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`
	owner  = "0123456789abcdef0123456789abcdef" // as long as a real one: 128 bits in hex
)

// Rates are commands a second of one master, the mean over the masters, while all masters were loaded.
type Rates struct {
	// Set is SET NX PX, Drop is EVALSHA of a compare-and-delete.
	Set, Drop float64
}

// Cycles returns the possible acquire-and-release cycles a second: a cycle needs one of each on every master.
func (r Rates) Cycles() float64 {
	if r.Set <= 0 || r.Drop <= 0 {
		return 0
	}
	return 1 / (1/r.Set + 1/r.Drop)
}

// Measure runs each of the two commands for about d. It draws keys at random from as many as there are requests. So
// most SETs store, and about every other delete finds a key. redis-benchmark can't remember the keys that it set, so
// this is the closest that it comes to real cycles. The limit is a little higher than real cycles could reach, never
// lower. All keys expire within ten seconds.
func Measure(ctx context.Context, addrs []string, prefix string, d time.Duration) (Rates, error) {
	bin, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return Rates{}, fmt.Errorf("%w: %v", ErrNotInstalled, err)
	}
	sha, err := load(ctx, addrs)
	if err != nil {
		return Rates{}, err
	}
	key := prefix + "__rand_int__"
	var r Rates
	if r.Set, err = average(ctx, bin, addrs, d/2, "SET", key, owner, "NX", "PX", "10000"); err != nil {
		return Rates{}, err
	}
	r.Drop, err = average(ctx, bin, addrs, d/2, "EVALSHA", sha, "1", key, owner)
	return r, err
}

func load(ctx context.Context, addrs []string) (sha string, err error) {
	for _, addr := range addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		sha, err = rdb.ScriptLoad(ctx, script).Result()
		if err = errors.Join(err, rdb.Close()); err != nil {
			return "", fmt.Errorf("limit: load the script on %s: %w", addr, err)
		}
	}
	return sha, nil
}

// average returns the mean rate of a command over the masters, all loaded at the same time for about d.
func average(ctx context.Context, bin string, addrs []string, d time.Duration, command ...string) (float64, error) {
	rate, err := together(ctx, bin, addrs, sounding, command)
	if err != nil {
		return 0, err
	}
	return together(ctx, bin, addrs, max(sounding, int(rate*d.Seconds())), command)
}

func together(ctx context.Context, bin string, addrs []string, requests int, command []string) (float64, error) {
	rates := make([]float64, len(addrs))
	err := parallel.Each(len(addrs), func(i int) (err error) {
		rates[i], err = one(ctx, bin, addrs[i], requests, command)
		return err
	})
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum / float64(len(rates)), nil
}

func one(ctx context.Context, bin, addr string, requests int, command []string) (float64, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, fmt.Errorf("limit: address %q: %w", addr, err)
	}
	n := strconv.Itoa(requests)
	args := append([]string{
		"-h", host, "-p", port, "-n", n, "-r", n,
		"-c", strconv.Itoa(connections), "-P", strconv.Itoa(pipeline), "--csv",
	}, command...)
	out, err := exec.CommandContext(ctx, bin, args...).Output()
	if err != nil {
		return 0, fmt.Errorf("limit: redis-benchmark on %s: %w", addr, err)
	}
	return parse(string(out))
}

// parse reads the rate from redis-benchmark's --csv output: a header line with the column rps and one line of values.
func parse(out string) (float64, error) {
	records, err := csv.NewReader(strings.NewReader(strings.TrimSpace(out))).ReadAll()
	if err != nil || len(records) < 2 {
		return 0, fmt.Errorf("limit: redis-benchmark said %q, which is no table (%v)", out, err)
	}
	for i, name := range records[0] {
		if name == "rps" {
			rate, err := strconv.ParseFloat(records[len(records)-1][i], 64)
			if err != nil {
				return 0, fmt.Errorf("limit: redis-benchmark's rate: %w", err)
			}
			return rate, nil
		}
	}
	return 0, fmt.Errorf("limit: redis-benchmark said %q, which has no column rps", out)
}
