package redistest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// ErrNoServer is matched by the error of Run when neither redis-server nor valkey-server is on PATH.
var ErrNoServer = errors.New("redistest: no redis-server or valkey-server on PATH")

// Config says what a server is like. The zero value is a server with nothing persisted, open to everybody on loopback.
type Config struct {
	// Binary is the program to run. Default: redis-server from PATH, else valkey-server.
	Binary string
	// AOF writes every command to an append-only file and fsyncs it before answering, so that what was answered
	// survives Kill and Restart. Default: nothing is persisted.
	AOF bool
	// Port fixes the port. Default: a free one, and another free one if somebody is quicker.
	Port int
	// Password is asked of every TCP client (requirepass). Default: none.
	Password string
	// User is what TCP clients may do, as rules of Redis's ACL: "~orders:*", "+set". Server.Client keeps all rights.
	// Default: the rules in the environment variable REDISTEST_USER, so that a whole suite of tests can be run with fewer
	// rights; all rights where that is empty.
	User []string
	// TLS makes the port speak TLS only. Default: plain TCP.
	TLS *TLS
	// Args are appended to the command line, so they win over everything above: "--maxmemory", "10mb".
	Args []string
	// Env is appended to this process's environment, each "NAME=value".
	Env []string
	// TempDir is where the server's directory is made. Default: os.TempDir.
	TempDir string
}

// TLS names PEM files. Clients must present a certificate that CA signed; Args{"--tls-auth-clients", "no"} lifts that.
type TLS struct {
	CertFile, KeyFile, CAFile string
}

// Option changes the Config of Start and StartN.
type Option func(*Config)

// WithAOF makes what was answered survive Kill and Restart; see Config.AOF.
func WithAOF() Option { return func(c *Config) { c.AOF = true } }

// WithPort fixes the port. It is not for StartN, whose servers can't share one.
func WithPort(port int) Option { return func(c *Config) { c.Port = port } }

// WithPassword asks a password of every TCP client.
func WithPassword(password string) Option { return func(c *Config) { c.Password = password } }

// WithUser lets TCP clients do only what these rules of Redis's ACL permit.
func WithUser(rules ...string) Option { return func(c *Config) { c.User = rules } }

// WithTLS makes the port speak TLS only.
func WithTLS(files TLS) Option { return func(c *Config) { c.TLS = &files } }

// WithArgs appends to the server's command line, for instance "--maxmemory", "10mb".
func WithArgs(args ...string) Option { return func(c *Config) { c.Args = append(c.Args, args...) } }

// WithEnv appends to the server's environment, each "NAME=value".
func WithEnv(env ...string) Option { return func(c *Config) { c.Env = append(c.Env, env...) } }

// WithBinary runs this program instead of the one found on PATH.
func WithBinary(path string) Option { return func(c *Config) { c.Binary = path } }

// binary finds the program to run.
func (c Config) binary() (string, error) {
	candidates := []string{"redis-server", "valkey-server"}
	if c.Binary != "" {
		candidates = []string{c.Binary}
	}
	var failures []string
	for _, name := range candidates {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, nil
		}
		failures = append(failures, err.Error())
	}
	return "", fmt.Errorf("%w [%s]", ErrNoServer, strings.Join(failures, "; "))
}

// arguments is the command line for one start. The server always listens on a unix socket too: readiness and inspection
// go through it, so they need neither password, nor certificate, nor a network that a test has broken.
func (c Config) arguments(port int, dataDir, socket string) []string {
	args := []string{
		"--bind", "127.0.0.1", "--protected-mode", "no",
		"--unixsocket", socket, "--unixsocketperm", "700",
		"--dir", dataDir, "--logfile", "", "--loglevel", "warning",
		"--daemonize", "no", "--save", "",
	}
	if c.TLS == nil {
		args = append(args, "--port", strconv.Itoa(port))
	} else {
		args = append(args, "--port", "0", "--tls-port", strconv.Itoa(port), "--tls-cert-file", c.TLS.CertFile,
			"--tls-key-file", c.TLS.KeyFile, "--tls-ca-cert-file", c.TLS.CAFile)
	}
	if c.AOF {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	} else {
		args = append(args, "--appendonly", "no")
	}
	if c.Password != "" {
		args = append(args, "--requirepass", c.Password)
	}
	if rules := c.user(); len(rules) > 0 {
		password := "nopass"
		if c.Password != "" {
			password = ">" + c.Password
		}
		args = append(args, "--user", inspector, "on", "nopass", "~*", "&*", "+@all")
		args = append(append(args, "--user", "default", "on", password), rules...)
	}
	return append(args, c.Args...)
}

// inspector is the user of Server.Client where the default user may not do everything.
const inspector = "redistest-inspector"

// credentials are those of Server.Client.
func (c Config) credentials() (username, password string) {
	if len(c.user()) > 0 {
		username = inspector // without a password, so any will do
	}
	return username, cmp.Or(c.Password, username)
}

func (c Config) user() []string {
	if len(c.User) > 0 {
		return c.User
	}
	return strings.Fields(os.Getenv("REDISTEST_USER"))
}
