package e2e_test

import (
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/cli"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
)

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"redlock": func() { os.Exit(cli.Main(os.Args[1:])) },
		"guarded": guardedMain,
	})
}

// suite runs this package's tests with settings for programs that are started by the hundred.
type suite struct{ *testing.M }

func (s suite) Run() int {
	redistest.AtOnce(12)                // they wait until locks end
	if signal.Ignored(syscall.SIGHUP) { // as under nohup: started programs would ignore it too
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", noSleep) // its name is valid
	}
	_ = os.Unsetenv("REDLOCK_SOAK") // this is no setting of redlock
	dir, err := os.MkdirTemp("", "redlock-e2e")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = emptyConfig(dir)
	}
	if err != nil {
		log.Print(err)
		return 1
	}
	_ = os.Setenv("XDG_CONFIG_HOME", dir)
	return s.M.Run()
}

// emptyConfig makes a configuration file without settings. The command reads it in place of the tester's own file.
func emptyConfig(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "redlock"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "redlock", "config"), nil, 0o600)
}

// soaking reports whether the tests have the time for all of their cases.
var soaking = soak.On()

// noSleep lets a program built with -race end at once instead of a second later.
const noSleep = "atexit_sleep_ms=0"

func TestTheCommandDoesWhatTheScriptsSay(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata")
}

// On a busy machine TLS handshakes take longer than a request may take. So scripts with TLS do not run at the same time
// as the others.
func TestTheCommandDoesWhatTheScriptsSayOverTLS(t *testing.T) { runScripts(t, "testdata/tls") }

func runScripts(t *testing.T, dir string) {
	t.Helper()
	redistest.Need(t)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"masters":      startMasters,
			"tls-masters":  startTLSMasters,
			"certificates": certificates,
			"master":       changeMaster,
			"keys":         keys,
			"redis":        redisCommand,
			"redis-at":     redisAt,
			"eventual":     eventual,
			"status":       status,
			"dead":         dead,
			"asked":        asked,
		},
	})
}

// setup removes the tester's settings from the environment.
func setup(env *testscript.Env) error {
	env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
	env.Setenv("LANG", "C")
	env.Setenv("GORACE", os.Getenv("GORACE"))
	env.Values[fleetKey{}] = &fleet{}
	env.Defer(func() {
		f := env.Values[fleetKey{}].(*fleet)
		for _, s := range f.servers {
			if err := s.Stop(); err != nil {
				env.T().Log("stop:", err)
			}
		}
	})
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "tmp"))
	if err := os.MkdirAll(filepath.Join(env.WorkDir, "tmp"), 0o700); err != nil {
		return err
	}
	return emptyConfig(filepath.Join(env.WorkDir, "tmp"))
}

type fleetKey struct{}

type fleet struct{ servers []*redistest.Server }

func fleetOf(ts *testscript.TestScript) *fleet { return ts.Value(fleetKey{}).(*fleet) }
