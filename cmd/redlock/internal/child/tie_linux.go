package child

import "syscall"

func tieToParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
