package redistest

import (
	"context"
	"crypto/tls"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-624411e5/redlock/internal/localport"
)

// isOurs asks the server at the port for its process id. If another program took the port, the error matches
// localport.ErrTaken. Otherwise tests would use that program's server.
func (s *Server) isOurs(ctx context.Context) error {
	opts := &redis.Options{
		Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, ContextTimeoutEnabled: true,
		PoolSize:                 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	opts.Username, opts.Password = s.cfg.credentials()
	if s.cfg.TLS != nil {
		pair, err := tls.LoadX509KeyPair(s.cfg.TLS.CertFile, s.cfg.TLS.KeyFile)
		if err != nil {
			return err
		}
		// The process id identifies the server, so its certificate need not be verified.
		//nolint:gosec // see above
		opts.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
	}
	client := redis.NewClient(opts)
	defer client.Close()
	info, err := client.InfoMap(ctx, "server").Result()
	if redis.HasErrorPrefix(err, "NOAUTH") && s.cfg.Password == "" {
		return nil // Args may set a password, which is not known here
	}
	if err != nil {
		return fmt.Errorf("%w: who listens on %s does not say which process it is: %w", localport.ErrTaken, s.Addr(),
			err)
	}
	if id := info["Server"]["process_id"]; id != strconv.Itoa(s.proc.Pid()) {
		return fmt.Errorf("%w: the server on %s is process %s, not %d, which was started here", localport.ErrTaken,
			s.Addr(), id, s.proc.Pid())
	}
	return nil
}
