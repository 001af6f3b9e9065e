package redistest

import (
	"context"
	"errors"
	"os"
	"strconv"
)

// Promote ends this server's process and puts its replica in its place, with the replica's data: at this server's
// address, in its directory, behind its Client. The rest of the replica is stopped. It needs Redis 7 or later, which
// can change a server's port. If it fails, this server is down and the replica is stopped; Restart brings this server
// back with its own data.
//
// No other change of the replica may run at the same time.
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
	// The process goes on writing into its directory under any name.
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
