package benchmark_test

import (
	"math"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
)

func TestLimitsProtectMastersUnlessTheyAreLifted(t *testing.T) {
	for word, change := range map[string]func(*benchmark.Config){
		"-ops 1001":      func(c *benchmark.Config) { c.Ops = 1001 },
		"-workers 17":    func(c *benchmark.Config) { c.Workers = 17 },
		"-contenders 17": func(c *benchmark.Config) { c.Contenders = 17 },
		"-rounds":        func(c *benchmark.Config) { c.Rounds = 31 },
	} {
		c := config
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), word) ||
			!strings.Contains(err.Error(), "-unlimited") {
			t.Errorf("%s: %v", word, err)
		}
		c.Unlimited = true
		if err := c.Check(); err != nil {
			t.Errorf("%s with -unlimited: %v", word, err)
		}
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	for word, change := range map[string]func(*benchmark.Config){
		"-rounds 0": func(c *benchmark.Config) { c.Rounds = 0 }, "-window": func(c *benchmark.Config) { c.Window = 0 },
		"-pause":     func(c *benchmark.Config) { c.Pause = -1 },
		"-workers 0": func(c *benchmark.Config) { c.Workers = 0 }, "-contenders 1": func(c *benchmark.Config) {
			c.Contenders = 1
		},
		"-ttl": func(c *benchmark.Config) { c.TTL = 0 }, "-rate NaN": func(c *benchmark.Config) { c.Rate = math.NaN() },
		"-ops 0": func(c *benchmark.Config) { c.Ops = 0 }, "are two operations": func(c *benchmark.Config) {
			c.Rate = 501
		},
	} {
		c := config
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	for word, j := range map[string]benchmark.Judgement{
		"-worse": {Quantiles: []string{"p50"}}, "-judge: there are": {Quantiles: []string{"p95"}, Worse: 1},
		"twice": {Quantiles: []string{"p50", "p50"}, Worse: 1},
	} {
		if err := j.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	if err := config.Check(); err != nil {
		t.Error(err)
	}
}
