package redistest

import (
	"context"
	"errors"
	"os"
	"strconv"
)

// Promote ends this server's process and has its replica take its place, with what data the replica has: at this server's
// address, in its directory, behind its Client. What is left of the replica is stopped. It needs Redis 7 or later, whose port can be
// changed. When it fails, this server is down and the replica is stopped; Restart brings this server back with its own data.
//
// No other change of the replica may be under way.
func (s *Server) Promote(ctx context.Context, replica *Server) error {
	return s.change("promote", func() error {
		err := s.proc.Kill()
		if err == nil {
			err = s.adopt(ctx, replica)
		}
		return errors.Join(err, replica.Stop())
	})
}

// adopt makes the replica's process this server's.
func (s *Server) adopt(ctx context.Context, replica *Server) error {
	if err := replica.client.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return err
	}
	if err := replica.client.ConfigSet(ctx, "port", strconv.Itoa(s.Port())).Err(); err != nil {
		return err
	}
	// The process goes on writing into its directory, whatever that is called.
	if err := os.RemoveAll(s.dataDir()); err != nil {
		return err
	}
	if err := os.Rename(replica.dataDir(), s.dataDir()); err != nil {
		return err
	}
	if err := os.Rename(replica.socket(), s.socket()); err != nil {
		return err
	}
	s.proc, replica.proc = replica.proc, s.proc
	return nil
}
