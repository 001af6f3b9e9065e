package redistest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// pingURL dials the way a user would, by URL.
func pingURL(ctx context.Context, url string, change func(*redis.Options)) error {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	opts.MaxRetries = -1
	change(opts)
	client := redis.NewClient(opts)
	return errors.Join(client.Ping(ctx).Err(), client.Close())
}

func TestAStartedServerAnswersByURL(t *testing.T) {
	server := redistest.Start(t)
	must(t, pingURL(t.Context(), server.URL(), noChange))
	if want := "127.0.0.1:" + strconv.Itoa(server.Port()); server.Addr() != want {
		t.Errorf("Addr is %s, want %s", server.Addr(), want)
	}
}

func TestPasswordIsAskedOverTCPAndKnownToURLAndClient(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("s3cret/ @:"))
	must(t, pingURL(t.Context(), server.URL(), noChange))
	must(t, server.Client().Ping(t.Context()).Err())
	err := pingURL(t.Context(), server.URL(), func(o *redis.Options) { o.Password = "" })
	if err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without the password: %v, want NOAUTH", err)
	}
}

func TestArgsReachTheServerAndWin(t *testing.T) {
	server := redistest.Start(t, redistest.WithArgs("--maxmemory", "10mb"), redistest.WithArgs("--appendonly", "yes"))
	for name, want := range map[string]string{"maxmemory": "10485760", "appendonly": "yes", "save": ""} {
		got, err := server.Client().ConfigGet(t.Context(), name).Result()
		must(t, err)
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestBinaryAndEnvironmentReachTheProcess(t *testing.T) {
	redistest.Need(t)
	dir := t.TempDir()
	seen, script := filepath.Join(dir, "seen"), filepath.Join(dir, "wrapper")
	must(t, redistest.WriteProgram(script,
		[]byte("#!/bin/sh\necho \"$REDISTEST_PROBE\" >"+seen+"\nexec redis-server \"$@\"\n"), 0o700))
	server := redistest.Start(t, redistest.WithBinary(script), redistest.WithEnv("REDISTEST_PROBE=through"))
	must(t, server.Client().Ping(t.Context()).Err())
	got, err := os.ReadFile(seen)
	must(t, err)
	if string(got) != "through\n" {
		t.Errorf("the process saw %q, want %q", got, "through\n")
	}
}

func TestAFixedPortThatIsTakenIsAnError(t *testing.T) {
	redistest.Need(t)
	rival, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := rival.Addr().(*net.TCPAddr).Port
	if _, err := redistest.Run(t.Context(), redistest.Config{Port: port}); !errors.Is(err, localport.ErrTaken) {
		t.Errorf("got %v, want ErrTaken", err)
	}
	must(t, rival.Close())
	server := redistest.Start(t, redistest.WithPort(port))
	if server.Port() != port {
		t.Errorf("port is %d, want %d", server.Port(), port)
	}
	if _, err := redistest.RunN(t.Context(), 2, redistest.Config{Port: port}); err == nil {
		t.Error("two servers were given one port")
	}
}

func TestAPortThatAnotherProgramTakesFirstIsNotUsed(t *testing.T) {
	redistest.Need(t)
	temp := t.TempDir()
	var rival net.Listener
	var tried []int
	server, err := redistest.RunWith(t.Context(), redistest.Config{TempDir: temp}, func() (*localport.Port, error) {
		port, err := localport.Reserve()
		if err == nil && rival == nil {
			rival, err = net.Listen("tcp", port.Addr())
		}
		if err == nil {
			tried = append(tried, port.Number())
		}
		return port, err
	})
	must(t, err)
	defer func() { must(t, errors.Join(server.Stop(), rival.Close())) }()
	if len(tried) != 2 || server.Port() != tried[1] {
		t.Errorf("tried ports %v and runs on %d; want the second of two", tried, server.Port())
	}
	must(t, pingURL(t.Context(), server.URL(), noChange))
	if entries, err := os.ReadDir(temp); err != nil || len(entries) != 1 {
		t.Errorf("directories left: %v, %v; want the running server's alone", entries, err)
	}
}

func TestAServerThatDoesNotStartSaysWhyAndLeavesNothing(t *testing.T) {
	redistest.Need(t)
	temp := t.TempDir()
	_, err := redistest.Run(t.Context(), redistest.Config{TempDir: temp, Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want the server's own words", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := redistest.Run(ctx, redistest.Config{TempDir: temp}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v, want context.Canceled", err)
	}
	if _, err := redistest.RunN(t.Context(), 2,
		redistest.Config{TempDir: temp, Args: []string{"--maxmemory", "much"}}); err == nil {
		t.Error("two servers started with a bad setting")
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestATemporaryDirectoryWithALongNameWillDo(t *testing.T) {
	redistest.Need(t)
	temp := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must(t, os.Mkdir(temp, 0o700))
	server, err := redistest.Run(t.Context(), redistest.Config{TempDir: temp})
	must(t, err)
	socket := server.Client().Options().Addr
	must(t, errors.Join(server.Client().Ping(t.Context()).Err(), server.Stop()))
	for _, path := range []string{server.Dir(), filepath.Dir(socket)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
}

func BenchmarkStartFive(b *testing.B) {
	for b.Loop() {
		servers, err := redistest.RunN(b.Context(), 5, redistest.Config{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		for _, server := range servers {
			if err := server.Stop(); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
	}
}

// While one goroutine writes a program and runs it, others start processes.
func TestAProgramThatWasWrittenCanBeRun(t *testing.T) {
	redistest.Meanwhile(t, func() { _ = exec.Command("true").Run() })
	for i := range 100 {
		program := filepath.Join(t.TempDir(), "program")
		must(t, redistest.WriteProgram(program, []byte("#!/bin/sh\n"), 0o700))
		if err := exec.Command(program).Run(); err != nil {
			t.Fatalf("program %d: %v", i, err)
		}
	}
}

func noChange(*redis.Options) {}
