//go:build unix

package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestHazard76And120AnUnknownVariableIsAnErrorUnlessKubernetesMakesIt(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	command := []string{"run", "-masters", master.URL(), "-key", "k", "--", "true"}
	for _, service := range []string{"REDLOCK", "REDLOCK_0", "REDLOCK_MASTERS", "REDLOCK_KEY", "REDLOCK_TTL_2"} {
		variables := []string{ // as the kubelet makes them
			"_SERVICE_HOST=10.0.0.1", "_SERVICE_PORT=6379", "_SERVICE_PORT_REDIS=6379", "_PORT=tcp://10.0.0.1:6379",
			"_PORT_6379_TCP=tcp://10.0.0.1:6379",
			"_PORT_6379_TCP_PROTO=tcp", "_PORT_6379_TCP_PORT=6379", "_PORT_6379_TCP_ADDR=10.0.0.1",
		}
		for i := range variables {
			variables[i] = service + variables[i]
		}
		runRedlock(t, append(variables, command...)...).want(t, 0, "")
	}
	for _, slip := range []string{
		"REDLOCK_TLL", "REDLOCK_FORCE", "REDLOCK_MASTER", "REDLOCK_SERVICE", "REDLOCK_PORTS", "REDLOCK_PORT_1",
		"REDLOCK_0",
	} {
		runRedlock(t, append([]string{slip + "=1"}, command...)...).want(t, 64, "there is no setting "+slip)
	}
}

func TestHazard127AHintOnUsageFollowsRedlocksOwnErrors(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	r := runRedlock(t, "run", "-masters", master.URL(), "-key", "k", "--", "sh", "-c",
		"echo of the command >&2; exit 64")
	if r.status != 64 || r.err != "of the command\n" {
		t.Errorf("status %d, and it said %q", r.status, r.err)
	}
	runRedlock(t, "run", "-masters", master.URL(), "--", "true").want(t, 64, "redlock run -h says how it is used")
	runRedlock(t, "run", "-masters", "redis://127.0.0.1:1", "-try", "-key", "k", "--", "true").
		want(t, 69, "redlock doctor, with the same masters, says why")
}

func TestHazard127EveryUsualFlagPrintsTheVersion(t *testing.T) {
	t.Parallel()
	want := runRedlock(t, "version")
	for _, flag := range []string{"-v", "-V", "-version", "--version"} {
		if got := runRedlock(t, flag); got.status != 0 || got.out != want.out {
			t.Errorf("%s: status %d, %q %q", flag, got.status, got.out, got.err)
		}
	}
}

func TestHazard127APasswordComesFromAFileOrAVariable(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.WithPassword("open/sesame@"))
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	masters := "redis://" + master.Addr()
	run := func(words ...string) result {
		return runRedlock(t, append(words, "-masters", masters, "-key", "k", "-try", "--", "echo", "ran")...)
	}
	run("run", "-password-file", file("good", "open/sesame@\n")).want(t, 0, "ran")
	run("REDLOCK_PASSWORD_FILE="+file("windows", "open/sesame@\r\n"), "run").want(t, 0, "ran")
	run("REDLOCK_PASSWORD=open/sesame@", "run").want(t, 0, "ran")
	run("REDLOCK_PASSWORD=stale", "run", "-password-file", file("nearer", "open/sesame@")).want(t, 0, "ran")
	run("run", "-config", file("conf", "password = open/sesame@\n")).want(t, 0, "ran")
	run("run", "-password-file", file("empty", "\n")).want(t, 64, "does not hold one line with a password")
	run("run", "-password-file", file("two", "open/sesame@\nmore\n")).
		want(t, 64, "does not hold one line with a password")
	run("run", "-password-file", filepath.Join(dir, "none")).want(t, 64, "no such file")
	run("run").want(t, 69, "the server asks for a password, and this client has none")
	if r := run("run", "-password", "open/sesame@"); r.status != 64 || strings.Contains(r.err, "sesame") {
		t.Errorf("status %d, and it said %q", r.status, r.err)
	}
}

// Every command that asks masters says why it can't use one.
func TestHazard127EveryCommandSaysWhyAMasterCantBeUsed(t *testing.T) {
	t.Parallel()
	locked := "redis://" + redistest.Start(t, redistest.WithPassword("sesame")).Addr()
	plain := strings.Replace(redistest.Start(t).URL(), "redis://", "rediss://", 1)
	for _, command := range []string{
		"status k", "list", "members", "bench", "release -force k", "doctor", "run -key k -try -- true",
		"hold -key k -wait 1s", "acquire -key k -ttl 1m -try -out " + filepath.Join(t.TempDir(), "lock"),
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			for masters, want := range map[string]string{locked: "password", plain: "TLS"} {
				words := strings.Fields(command)
				r := runRedlock(t, append([]string{words[0], "-masters", masters}, words[1:]...)...)
				r.want(t, 69, want)
				if strings.Contains(r.out+r.err, "***") {
					t.Errorf("it hides what is no password: %q %q", r.out, r.err)
				}
			}
		})
	}
}

// A program that changes the user may leave HOME as it was.
func TestAHomeOfAnotherUserHasNoSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	must(t, os.MkdirAll(filepath.Join(home, ".config", "redlock"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".config", "redlock", "config"), []byte("ttl = 1s\n"), 0o600))
	program := filepath.Join(dir, "redlock")
	copyFile(t, mustFind(t, "redlock"), program, 0o755)
	cmd := exec.Command(program, "run", "-key", "k", "-v", "-try", "-masters", redistest.Start(t).URL(), "--", "true")
	cmd.Dir, cmd.Env = "/", []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	if os.Getuid() == 0 {
		must(t, os.Chmod(filepath.Dir(dir), 0o755)) // the directory of this whole test
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		must(t, os.Chmod(home, 0))
		t.Cleanup(func() { must(t, os.Chmod(home, 0o700)) })
	}
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), home) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestHazard127AnImpossiblePortIsBadUsage(t *testing.T) {
	t.Parallel()
	for _, port := range []string{"99999", "65536", "0", "99999999999999999999"} {
		runRedlock(t, "status", "-masters", "redis://:hushhush@127.0.0.1:"+port, "k").
			want(t, 64, "the port is not a number from 1 to 65535")
	}
}

func TestHazard115TheCommandTakesAValkeyURL(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	runRedlock(t, "run", "-masters", strings.Replace(master.URL(), "redis", "valkey", 1), "-key", "k", "--", "true").
		want(t, 0, "")
}

func TestHazard127AKeyOfManyBytesLeavesAListReadable(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	long := strings.Repeat("k", 20_000)
	for _, key := range []string{long, "short"} {
		must(t, master.Client().Set(t.Context(), key, "somebody", time.Hour).Err())
	}
	r := runRedlock(t, "list", "-masters", master.URL())
	r.want(t, 0, "kkk…(20000 bytes)")
	for line := range strings.Lines(r.out) {
		if len(line) > 160 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
	runRedlock(t, "list", "-json", "-masters", master.URL()).want(t, 0, long)
	r = runRedlock(t, "run", "-masters", master.URL(), "-key", long, "-wait", "1ms", "--", "true")
	r.want(t, 75, `kkk"…(20000 bytes)`)
	if len(r.err) > 1000 {
		t.Errorf("a message has %d bytes", len(r.err))
	}
}

func namesIn(value any, found map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			namesIn(each, found)
		}
	case map[string]any:
		for name, each := range v {
			if found[name] = true; v["who"] == nil { // a user's masters are counted by the names of sets
				namesIn(each, found)
			}
		}
	}
}

func TestHazard127JSONHasTheSameNamesInAllSubcommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operate/command.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## JSON\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := make(map[string]bool)
	for _, name := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(section, -1) {
		documented[name[1]] = true
	}
	master := redistest.Start(t)
	masters := "REDLOCK_MASTERS=" + master.URL()
	must(t, master.Client().Set(t.Context(), "held", "somebody", time.Hour).Err())
	must(t, master.Client().HSet(t.Context(), "hash", "field", "value").Err())
	found := make(map[string]bool)
	for _, args := range [][]string{
		{"status", "-json", "held"},
		{"status", "-json", "free"},
		{"status", "-json", "hash"},
		{"list", "-json"},
		{"doctor", "-json"},
		{"doctor", "-probe", "-json"},
		{"members", "-json"},
		{"version", "-json"},
		{"hold", "-json", "-key", "h", "-max-hold", "500ms"},
		{"run", "-log", "json", "-v", "-key", "r", "--", "true"},
		{"run", "-log", "json", "-key", "held", "-wait", "1s", "--", "true"},
		{"status", "-json", "-new-masters", master.URL(), "held"},
		{"members", "-json", "-new-masters", master.URL()},
	} {
		r := runRedlock(t, append([]string{masters}, args...)...)
		documents := json.NewDecoder(strings.NewReader(r.out + r.err[:strings.LastIndex(r.err, "}")+1]))
		for documents.More() {
			var value any
			if err := documents.Decode(&value); err != nil {
				t.Fatalf("%v: %v: %q %q", args, err, r.out, r.err)
			}
			namesIn(value, found)
		}
	}
	if len(found) < 50 {
		t.Errorf("only %d names were seen: this shows little", len(found))
	}
	for name := range found {
		if !documented[name] {
			t.Errorf("docs/operate/command.md has no %q under JSON", name)
		}
	}
	if documented["owner"] || documented["name"] {
		t.Error("a name that others have replaced is documented")
	}
}
