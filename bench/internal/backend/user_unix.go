//go:build unix

package backend

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// notAsRoot gives the directory to the user postgres if this program runs as root. It returns a function that has a
// command run as that user.
func notAsRoot(dir string) (func(*exec.Cmd), error) {
	if os.Geteuid() != 0 {
		return func(*exec.Cmd) {}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w: it does not run as root, and there is no user postgres: %w",
			ErrNotInstalled, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	as := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as} },
		os.Chown(dir, int(uid), int(gid))
}
