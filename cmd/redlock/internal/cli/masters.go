package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"io/fs"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// masterFlags say which masters there are and how to reach them; every command that talks to masters has them.
type masterFlags struct {
	urls          list
	config        string
	ca, cert, key string
	guard         time.Duration
}

func (m *masterFlags) define(fs *flag.FlagSet) {
	fs.Var(&m.urls, "masters", "`URLs` of the masters, separated by commas: redis://user:password@host:port, rediss:// for TLS")
	fs.StringVar(&m.config, "config", "", "`file` with settings")
	durationVar(fs, &m.guard, "restart-guard", 0, "let a master that restarted not vote for this `time`, the longest ttl in use; for masters that do not fsync always")
	fs.StringVar(&m.ca, "tls-ca", "", "PEM `file` with the authorities that sign the masters' certificates, instead of the system's")
	fs.StringVar(&m.cert, "tls-cert", "", "PEM `file` with this client's certificate, for masters that ask for one")
	fs.StringVar(&m.key, "tls-key", "", "PEM `file` with the certificate's key")
}

// open connects to nothing yet; the error says which URL is bad, without its password.
func (m *masterFlags) open() ([]*single.Master, error) {
	if len(m.urls) == 0 {
		return nil, usage("no masters: give -masters, REDLOCK_MASTERS or a configuration file")
	}
	secure, err := m.tls()
	if err != nil {
		return nil, err
	}
	masters := make([]*single.Master, 0, len(m.urls))
	for i, url := range m.urls {
		master, err := m.openOne(url, secure)
		if err != nil {
			closeMasters(masters)
			return nil, usage("master %d of %d: %w", i+1, len(m.urls), bare{err})
		}
		masters = append(masters, master)
	}
	return masters, nil
}

func (m *masterFlags) openOne(url string, secure *tls.Config) (*single.Master, error) {
	options := single.Options{RestartGuard: m.guard}
	master, err := single.Dial(url, options) // which also says what is wrong with a URL without quoting it
	if err != nil || secure == nil {
		return master, err
	}
	if err := master.Close(); err != nil {
		return nil, err
	}
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("bad URL")
	}
	if opt.TLSConfig == nil {
		return nil, errors.New("it is not a rediss:// URL, but -tls flags are given") // the address may be half a password
	}
	opt.TLSConfig.RootCAs, opt.TLSConfig.Certificates = secure.RootCAs, secure.Certificates
	return single.Open(opt, options)
}

// tls returns what the -tls flags ask for, nil for nothing.
func (m *masterFlags) tls() (*tls.Config, error) {
	if m.ca == "" && m.cert == "" && m.key == "" {
		return nil, nil //nolint:nilnil // no TLS settings are not an error
	}
	if (m.cert == "") != (m.key == "") {
		return nil, usage("-tls-cert and -tls-key belong together: give both or neither")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.ca != "" {
		pem, err := os.ReadFile(m.ca)
		if err != nil {
			return nil, usage("-tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usage("-tls-ca: %s holds no certificate", m.ca)
		}
	}
	if m.cert != "" {
		pair, err := tls.LoadX509KeyPair(m.cert, m.key)
		if err != nil {
			return nil, usage("-tls-cert and -tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// locker makes a Locker; done closes its connections after it.
func (m *masterFlags) locker() (l *redlock.Locker, done func(), err error) {
	masters, err := m.open()
	if err != nil {
		return nil, nil, err
	}
	l, err = newLocker(masters, m.guard)
	if err != nil {
		closeMasters(masters)
		return nil, nil, err
	}
	return l, func() { closeMasters(masters) }, nil
}

// newLocker takes masters that were opened with the guard.
func newLocker(masters []*single.Master, guard time.Duration) (*redlock.Locker, error) {
	voters := make([]redlock.Master, len(masters))
	for i, master := range masters {
		voters[i] = master
	}
	return redlock.New(voters, redlock.Options{RestartGuard: guard})
}

func closeMasters(masters []*single.Master) {
	for _, m := range masters {
		_ = m.Close() // of a client that nobody uses any more
	}
}

// statusOf is the exit status for an error of the library.
func statusOf(err error) int {
	switch {
	case errors.Is(err, redlock.ErrInvalid):
		return statusUsage
	case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrExpired):
		return statusNoQuorum
	case errors.Is(err, redlock.ErrHeld):
		return statusHeld
	case errors.Is(err, redlock.ErrNotHeld):
		return statusLost
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Op == "write" {
		return statusWrite // not 1, which would be an answer
	}
	return statusNo
}
