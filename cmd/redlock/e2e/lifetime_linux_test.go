package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// These tests find out how long a command outlives a signal, and how long its lock is kept. A job writes into a log. A
// rival writes into the same log as soon as it has the lock. Each later line of the job is a late write.

// bystanders run a job as other programs and shells do.
var bystanders = map[string][]string{
	"sh -c 'a; b'":    {"sh", "-c", `"$@"; true`, "sh"},
	"a script":        {"sh", "SCRIPT"},
	"bash":            {"bash", "-c", `"$@"; true`, "bash"},
	"set -m":          {"bash", "-c", `set -m; "$@" & wait`, "bash"},
	"timeout":         {"sh", "-c", `timeout 60 "$@"; true`, "sh"},
	"setsid":          {"sh", "-c", `setsid "$@" & wait`, "sh"},
	"double fork":     {"sh", "-c", `(setsid "$@" &); exec sleep 60`, "sh"},
	"environment":     {"sh", "-c", `(env -i setsid "$@" &); sleep 60`, "sh"},
	"cleans up":       nil,
	"ignores signals": {"sh", "-c", `"$@" -stubborn; true`, "sh"},
}

// attack is a way to end a run.
type attack struct {
	around []string // the programs around redlock
	tty    bool
	end    func(l *lifetime)
	kills  bool // redlock itself, so that a job has a grace and no more
}

func signalled(sig syscall.Signal) attack {
	return attack{end: func(l *lifetime) { l.signal(l.redlock, sig) }}
}

// attacks are the signals that terminals, shells, service managers and CI systems send.
var attacks = map[string]attack{
	"TERM":        signalled(syscall.SIGTERM),
	"INT":         signalled(syscall.SIGINT),
	"HUP":         signalled(syscall.SIGHUP),
	"QUIT":        signalled(syscall.SIGQUIT),
	"TERM, group": {end: func(l *lifetime) { l.signal(-l.cmd.Process.Pid, syscall.SIGTERM) }},
	"twice TERM": {end: func(l *lifetime) {
		l.signal(l.redlock, syscall.SIGTERM)
		l.pause()
		l.signal(l.redlock, syscall.SIGTERM)
	}},
	"timeout": {around: []string{"timeout", "60"}, end: func(l *lifetime) {
		l.signal(l.cmd.Process.Pid, syscall.SIGALRM)
	}},
	"no terminal":  {tty: true, end: func(l *lifetime) { must(l.t, l.tty.Close()) }},
	"CI cancelled": {kills: true, end: cancelled},
}

// cancelled sends the signals of a CI system.
func cancelled(l *lifetime) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		l.signal(l.redlock, sig)
		l.pause()
	}
}

const (
	// cleanUp is how long a job goes on writing after a signal.
	cleanUp = time.Second
	// jobTime is the life of a job that ignores signals.
	jobTime = 3 * time.Second
	// killedTTL is short, so that a lock is free soon after its redlock is killed. No busy machine loses one of
	// patientTTL.
	killedTTL, patientTTL = 3 * time.Second, time.Minute
)

// lifetime is one run of a job under a lock.
type lifetime struct {
	*scene
	cmd     *exec.Cmd
	tty     *os.File
	redlock int // its process
}

// inside are the words that run a command as process 1 of a PID namespace; nil if that is not possible here.
func inside() []string {
	for _, words := range [][]string{{"unshare", "-pf", "--mount-proc"}, {"unshare", "-rpf", "--mount-proc"}} {
		if exec.Command(words[0], append(slices.Clone(words[1:]), "true")...).Run() == nil {
			return words
		}
	}
	return nil
}

func (l *lifetime) job() []string {
	return []string{mustFind(l.t, "guarded"), "-cleanup", cleanUp.String(), "-for", jobTime.String(), "-log", l.log}
}

func newLifetime(t *testing.T, master *redistest.Server) *lifetime {
	t.Helper()
	l := &lifetime{scene: &scene{t: t, master: master, key: t.Name(), log: filepath.Join(t.TempDir(), "log")}}
	must(t, os.WriteFile(l.log, nil, 0o666))
	return l
}

// live runs the job and attacks it. It returns how often the job wrote after the rival had the lock, and how often the
// job had reached its end before.
func live(t *testing.T, master *redistest.Server, around, job []string, a attack, flags ...string) (late, ends int) {
	t.Helper()
	l := newLifetime(t, master)
	script := l.log + ".sh"
	must(t, os.WriteFile(script, []byte("\"$@\"\necho done\n"), 0o600))
	ttl := patientTTL
	if a.kills {
		ttl = killedTTL
	}
	args := append(slices.Clone(a.around), around...)
	args = append(args, mustFind(t, "redlock"), "run", "-quiet", "-masters", master.URL(), "-key", l.key, "-ttl",
		ttl.String())
	args = append(append(args, flags...), "--")
	for _, word := range job {
		args = append(args, strings.Replace(word, "SCRIPT", script, 1))
	}
	l.begin(append(args, l.job()...), a.tty)
	for l.redlock = l.cmd.Process.Pid; commandOf(l.redlock) != "redlock"; { // below timeout and unshare
		below := childrenOf(t, l.redlock, false)
		if len(below) != 1 {
			t.Fatalf("%d has the children %v", l.redlock, below)
		}
		l.redlock = below[0]
	}
	return l.endure(a)
}

// endure returns the job's fate under an attack.
func (l *lifetime) endure(a attack) (late, ends int) {
	l.t.Helper()
	rival := make(chan error, 1)
	go func() { rival <- l.takeOver(0) }()
	a.end(l)
	must(l.t, <-rival)
	l.untilNobodyWrites()
	late = l.late()
	before, _, _ := strings.Cut(l.read(), "RIVAL\n")
	l.t.Logf("late writes: %d of %d", late, late+strings.Count(before, "works "))
	return late, strings.Count(before, "cleaned") + strings.Count(before, "over")
}

func (l *lifetime) begin(args []string, tty bool) {
	l.t.Helper()
	l.cmd = exec.Command(args[0], args[1:]...)
	if tty {
		var err error
		l.tty, err = pty.Start(l.cmd)
		must(l.t, err)
	} else {
		l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		said, err := os.Create(l.log + ".err")
		must(l.t, err)
		defer said.Close()
		l.cmd.Stderr = said
		must(l.t, l.cmd.Start())
	}
	l.t.Cleanup(func() {
		l.signal(l.redlock, syscall.SIGKILL)
		_ = l.cmd.Process.Kill()
		_ = l.cmd.Wait()
	})
	if !wait(func() bool { return strings.Count(l.read(), "works ") > 3 }) {
		l.t.Fatalf("the job does not begin: %q", readFile(l.t, l.log+".err"))
	}
}

func (l *lifetime) signal(pid int, sig syscall.Signal) {
	if pid != 0 { // 0 would be this test's group
		_ = syscall.Kill(pid, sig) // the process may be gone
	}
}

// pause gives the signalled processes time to act: half of the time that a clean-up takes.
func (l *lifetime) pause() { <-time.After(cleanUp / 2) }

// untilNobodyWrites waits for the lock on the log, which a job has for as long as it lives.
func (l *lifetime) untilNobodyWrites() {
	l.t.Helper()
	f, err := os.Open(l.log)
	must(l.t, err)
	defer f.Close()
	l.until("the job has ended", func() bool {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
}

// Every ordinary run of the tests tries each attack on one job and one attack on each job; REDLOCK_SOAK=1 tries all.
func TestHazard118NothingOfACommandOutlivesItsLock(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	ways := map[string][]string{"direct": nil, "as process 1": inside()}
	if exec.Command("systemd-run", "--scope", "-q", "true").Run() == nil {
		ways["systemd"] = []string{"systemd-run", "--scope", "-q"}
	}
	for how, around := range ways {
		if how != "direct" && around == nil {
			t.Log("NOT TRIED: no PID namespace can be made here")
			continue
		}
		for what, a := range attacks {
			for who, job := range bystanders {
				sample := what == "TERM" && (how == "direct" || who == "set -m") || who == "sh -c 'a; b'" &&
					how == "direct"
				if !sample && !soaking {
					continue
				}
				t.Run(strings.Join([]string{how, what, who}, ", "), func(t *testing.T) {
					t.Parallel()
					late, ends := live(t, master, around, job, a)
					if late > 0 {
						t.Errorf("%d writes after another holder had the lock", late)
					}
					if !a.kills && ends != 1 {
						t.Errorf("%d jobs have come to their end, want 1: it had no time to clean up", ends)
					}
				})
			}
		}
	}
}

// The oracle must be able to fail.
func TestWithLeaderOnlyOtherProcessesWriteUnderAnotherHolder(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	for _, who := range []string{"sh -c 'a; b'", "set -m", "timeout", "setsid", "double fork"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			for range 4 { // on a busy machine the job may have ended before the other holder starts
				if late, _ := live(t, master, nil, bystanders[who], attacks["TERM"], "-leader-only"); late > 0 {
					return
				}
			}
			t.Error("with -leader-only, too, nothing was written late: this shows nothing")
		})
	}
}

// A process that a command has left, and that gets no signal, keeps the lock. A waiter for the lock sees the reason.
func TestHazard118ProcessesThatACommandLeavesKeepTheLock(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	leave := attack{end: func(*lifetime) {}}
	for how, script := range map[string]string{
		"in the background":    `"$@" & until [ -s "$LOG" ]; do sleep 0.05; done`,
		"in a session":         `setsid "$@" & until [ -s "$LOG" ]; do sleep 0.05; done`,
		"without its mark":     `env -i setsid "$@" & until [ -s "$LOG" ]; do sleep 0.05; done`,
		"of nobody's, by exec": `setsid sh -c '"$@" & exec true' sh "$@"; until [ -s "$LOG" ]; do sleep 0.05; done`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			script = `for LOG; do :; done; ` + script
			if late, _ := live(t, master, nil, []string{"sh", "-c", script, "sh"}, leave); late > 0 {
				t.Errorf("%d late writes", late)
			}
		})
	}
}

func TestHazard118ProcessesThatKeepTheLockAreNamedOnce(t *testing.T) {
	t.Parallel()
	l := newLifetime(t, redistest.Start(t))
	said, err := os.Create(l.log + ".err")
	must(t, err)
	defer said.Close()
	cmd := exec.Command("redlock", "run", "-masters", l.master.URL(), "-key", "told", "-c",
		`until [ -e "$GO" ]; do sleep 0.1; done & exit 3`)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GO="+l.log+".go"), said
	must(t, cmd.Start())
	const told = `keeping the lock on "told" until these processes have ended too: `
	ok := wait(func() bool { return strings.Contains(readFile(t, said.Name()), told) })
	must(t, os.WriteFile(l.log+".go", nil, 0o600))
	_ = cmd.Wait()
	if got := readFile(t, said.Name()); !ok || strings.Count(got, told) != 1 || !strings.Contains(got, "sh (") {
		t.Errorf("it says %q", got)
	}
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("status %d, want that of the command, 3", got)
	}
}

// A command leaves more processes than redlock may open files. They keep the lock, and end with it.
func TestProcessesThatACommandLeavesMayBeMoreThanRedlockMayOpenFiles(t *testing.T) {
	t.Parallel()
	l := newLifetime(t, redistest.Start(t))
	const leaves = `for i in $(seq 60); do setsid sh -c 'echo $$ >>"$LOG"; exec sleep 600' & done
		until [ "$(wc -l <"$LOG")" = 60 ]; do sleep 0.1; done`
	for how, end := range map[string]func(*exec.Cmd){
		"asked to end": func(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) },
		"lost":         func(*exec.Cmd) { must(t, l.master.Client().FlushAll(t.Context()).Err()) },
	} {
		said, err := os.Create(l.log + ".err")
		must(t, err)
		must(t, os.WriteFile(l.log, nil, 0o600))
		cmd := exec.Command("sh", "-c", `ulimit -n 40; exec redlock run "$@"`, "sh", "-masters", l.master.URL(),
			"-key", "many", "-ttl", "3s", "-c", leaves)
		cmd.Env, cmd.Stderr = append(os.Environ(), "LOG="+l.log), said
		must(t, cmd.Start())
		if !wait(func() bool { return strings.Contains(readFile(t, said.Name()), "keeping the lock") }) {
			t.Errorf("%s: the lock is not kept: %s", how, readFile(t, said.Name()))
		}
		end(cmd)
		_ = cmd.Wait()
		must(t, said.Close())
		pids := strings.Fields(readFile(t, l.log))
		for _, word := range pids {
			pid, err := strconv.Atoi(word)
			must(t, err)
			if !wait(func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }) {
				t.Errorf("%s: process %d is left", how, pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if len(pids) != 60 {
			t.Errorf("%s: %d processes were left", how, len(pids))
		}
	}
}

// A shell has a job in the background and becomes redlock. A process that the job leaves is not counted.
func TestWhatOlderJobsLeaveDoesNotKeepTheLock(t *testing.T) {
	t.Parallel()
	l := newLifetime(t, redistest.Start(t))
	cmd := exec.Command("sh", "-c", `(until [ -s "$LOG" ]; do sleep 0.05; done; sleep 600 & echo $! >"$LOG.left") &
		exec redlock run "$@"`, "sh", "-masters", l.master.URL(), "-key", "older", "-ttl", "3s", "-c",
		`echo begun >"$LOG"; until [ -s "$LOG.left" ]; do sleep 0.05; done; sleep 0.2; exit 5`)
	cmd.Env = append(os.Environ(), "LOG="+l.log)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("status %d, want that of the command, 5", got)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, l.log+".left")))
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL)) // it runs on
}
