package containers

import (
	"cmp"
	"os"

	"github.com/seed-624411e5/redlock/chaos/masters"
)

// Options say which images the containers are made of. They are pulled when they are missing.
type Options struct {
	// RedisImage is the masters'. Default: $REDIS_IMAGE, or redis:8.0-alpine.
	RedisImage string
	// Server is the program in it. Default: $REDIS_SERVER, or redis-server, which Valkey's images have too.
	Server string
	// ToxiproxyImage is the proxies'. Default: $TOXIPROXY_IMAGE, or ghcr.io/shopify/toxiproxy:2.12.0.
	ToxiproxyImage string
}

func (o Options) withDefaults() Options {
	o.RedisImage = cmp.Or(o.RedisImage, os.Getenv("REDIS_IMAGE"), "redis:8.0-alpine")
	o.Server = cmp.Or(o.Server, os.Getenv("REDIS_SERVER"), "redis-server")
	o.ToxiproxyImage = cmp.Or(o.ToxiproxyImage, os.Getenv("TOXIPROXY_IMAGE"), "ghcr.io/shopify/toxiproxy:2.12.0")
	return o
}

// Registry returns a new registry with the backends of package masters and "containers", with default options.
func Registry() masters.Registry {
	r := masters.Standard()
	r["containers"] = Backend(Options{})
	return r
}
