package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/containers"
)

// containerFlags are the flags about containers.
type containerFlags struct {
	compose, redisImage, toxiproxyImage string
}

func (c *containerFlags) flags(f *flag.FlagSet) {
	f.StringVar(&c.compose, "compose", "", "compose file that has started the masters and toxiproxy of the external "+
		"backend")
	f.StringVar(&c.redisImage, "redis-image", "", "image of the containers backend's masters (default $REDIS_IMAGE "+
		"or redis:8.0-alpine)")
	f.StringVar(&c.toxiproxyImage, "toxiproxy-image", "",
		"image of the containers backend's proxies (default $TOXIPROXY_IMAGE or ghcr.io/shopify/toxiproxy:2.12.0)")
}

// apply puts the backends for containers into a configuration.
func (c *containerFlags) apply(cfg *chaos.Config) {
	cfg.Backends = containers.Registry()
	cfg.Backends["containers"] = containers.Backend(containers.Options{
		RedisImage: c.redisImage, ToxiproxyImage: c.toxiproxyImage,
	})
	cfg.ReplayFlags = c.replay()
	if c.compose != "" {
		cfg.Backend = "external"
		cfg.Backends[cfg.Backend] = containers.Compose(c.compose)
	}
}

// replay are the flags to repeat for the same run.
func (c *containerFlags) replay() string {
	var flags strings.Builder
	for _, f := range [][2]string{
		{"compose", c.compose}, {"redis-image", c.redisImage}, {"toxiproxy-image", c.toxiproxyImage},
	} {
		if f[1] != "" {
			fmt.Fprintf(&flags, " -%s %s", f[0], f[1])
		}
	}
	return flags.String()
}
