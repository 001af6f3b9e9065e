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

// Config describes a server. The zero value persists nothing and is open to every client on loopback.
type Config struct {
	// Binary is the program to run. Default: redis-server from PATH, else valkey-server.
	Binary string
	// AOF writes every command to an append-only file and fsyncs it before the reply, so confirmed data survives Kill
	// and Restart. Default: nothing is persisted.
	AOF bool
	// Port fixes the port. Default: a free port, and another one if a different program takes the first.
	Port int
	// Password is required from every TCP client (requirepass). Default: none.
	Password string
	// User has the rights of TCP clients, as rules of Redis's ACL: "~orders:*", "+set". Server.Client keeps all
	// rights. Default: the rules in the environment variable REDISTEST_USER, which runs a whole test suite with fewer
	// rights; all rights if it is empty.
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

// WithAOF makes confirmed data survive Kill and Restart; see Config.AOF.
func WithAOF() Option { return func(c *Config) { c.AOF = true } }

// WithPort fixes the port. StartN does not accept it, because servers cannot share a port.
func WithPort(port int) Option { return func(c *Config) { c.Port = port } }

// WithPassword requires a password from every TCP client.
func WithPassword(password string) Option { return func(c *Config) { c.Password = password } }

// WithUser allows TCP clients only the commands and keys of these ACL rules.
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

// credentials returns user and password for Server.Client.
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
