package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// holders are scripts that take a lock by redlock hold, and work under it.
func holders(t *testing.T) map[string]string {
	t.Helper()
	shown := regexp.MustCompile("(?s)```bash\n(coproc .*?)```").
		FindStringSubmatch(readFile(t, "../../../docs/operate/command.md"))
	if shown == nil {
		t.Fatal("the manual shows no script")
	}
	return map[string]string{
		"a pipe": shown[1],
		"a pipe, by number": strings.Replace(strings.Replace(shown[1], "-fd 0", "-fd 9", 1), "redlock hold",
			"9<&0 </dev/null redlock hold", 1),
		"a process": `redlock hold -key deploy -pid $$ >"$OUT" </dev/null &
until [ -s "$OUT" ]; do sleep 0.02; done
./deploy.sh`,
	}
}

// under are a script's words, with the job in the place of deploy.sh.
func (l *lifetime) under(script string) []string {
	script = strings.ReplaceAll(script, "redlock hold -key deploy", "redlock hold -masters "+l.master.URL()+
		" -ttl 3s -key '"+l.key+"'")
	path := l.log + ".sh"
	must(l.t, os.WriteFile(path, []byte(strings.ReplaceAll(script, "./deploy.sh", `"$@"; true`)), 0o600))
	return append([]string{"env", "OUT=" + l.log + ".out", "bash", path}, l.job()...)
}

func TestHazard122AHeldLockOutlivesAScriptThatIsKilled(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	for how, script := range holders(t) {
		for what, a := range map[string]attack{
			"killed":       {end: func(l *lifetime) { l.signal(l.cmd.Process.Pid, syscall.SIGKILL) }},
			"TERM, group":  attacks["TERM, group"],
			"Ctrl-C":       {end: func(l *lifetime) { l.signal(-l.cmd.Process.Pid, syscall.SIGINT) }},
			"at its end":   {end: func(*lifetime) {}},
			"CI cancelled": {end: cancelledGroup},
		} {
			t.Run(how+", "+what, func(t *testing.T) {
				t.Parallel()
				l := newLifetime(t, master)
				l.begin(l.under(script), false)
				if late, ends := l.endure(a); late > 0 || ends != 1 {
					t.Errorf("%d writes after another holder had the lock; %d jobs came to their end", late, ends)
				}
			})
		}
	}
}

// cancelledGroup does the same as a CI system that kills only the script itself.
func cancelledGroup(l *lifetime) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		l.signal(-l.cmd.Process.Pid, sig)
		l.pause()
	}
	l.signal(l.cmd.Process.Pid, syscall.SIGKILL)
}

// The negative control: a script whose processes do not inherit the pipe.
func TestAScriptThatKeepsThePipeToItselfIsNotProtected(t *testing.T) {
	t.Parallel()
	l := newLifetime(t, redistest.Start(t))
	l.begin(l.under(`coproc LOCK { redlock hold -key deploy; }
read -r line <&"${LOCK[0]}"
./deploy.sh`), false)
	late, _ := l.endure(attack{end: func(l *lifetime) { l.signal(l.cmd.Process.Pid, syscall.SIGKILL) }})
	if late == 0 {
		t.Error("nothing was written late: this shows nothing")
	}
}

func TestHoldRefusesProcessesAndDescriptorsThatItCantWaitFor(t *testing.T) {
	t.Parallel()
	base := []string{"hold", "-masters", "redis://127.0.0.1:1", "-key", "k"}
	for said, args := range map[string][]string{
		"leads neither a session nor a process group": {"-pid", "$$"},
		"process already finished":                    {"-pid", "999999999"},
		"-fd 77 is no pipe":                           {"-fd", "77"},
		"exclude each other":                          {"-fd", "0", "-pid", "1"},
		"-pid 0 is no process":                        {"-pid", "0"},
		"-pid -1 is no process":                       {"-pid", "-1"},
		"-fd -1 is no pipe":                           {"-fd", "-1"},
		"want a number":                               {"-pid", "abc"},
	} {
		line := "redlock " + strings.Join(append(base, args...), " ") + "; exit $?"
		runRedlock(t, "run", "-masters", redistest.Start(t).URL(), "-key", "o", "--", "sh", "-c",
			"sh -c '"+line+"'; exit $?").want(t, 64, said)
	}
}
