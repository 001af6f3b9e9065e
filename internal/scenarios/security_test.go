package scenarios_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	Must(tb, err)
	cert, err := x509.ParseCertificate(der)
	Must(tb, err)
	return &authority{key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue makes a certificate for servers at ip and for clients.
func (a *authority) issue(tb testing.TB, ip string) (certPEM, keyPEM []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: ip}, IPAddresses: []net.IP{
			net.ParseIP(ip),
		},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	Must(tb, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	Must(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// client returns the configuration of a client that trusts a and has a certificate from a.
func (a *authority) client(tb testing.TB) *tls.Config {
	tb.Helper()
	pair, err := tls.X509KeyPair(a.issue(tb, "127.0.0.1"))
	Must(tb, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// servers starts masters that a has certified for ip, and that ask a certificate of their clients.
func (a *authority) servers(tb testing.TB, ip string, n int) []*redistest.Server {
	tb.Helper()
	cert, key := a.issue(tb, ip)
	dir := tb.TempDir()
	files := redistest.TLS{
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
		CAFile: filepath.Join(dir, "ca.pem"),
	}
	for name, content := range map[string][]byte{files.CertFile: cert, files.KeyFile: key, files.CAFile: a.pem} {
		Must(tb, os.WriteFile(name, content, 0o600))
	}
	return redistest.StartN(tb, n, redistest.WithTLS(files))
}

// secured makes a Locker over servers as docs/operate/security.md shows it; nil speaks no TLS.
func secured(tb testing.TB, servers []*redistest.Server, config *tls.Config) *redlock.Locker {
	tb.Helper()
	masters := make([]*redis.Options, len(servers))
	for i, s := range servers {
		masters[i] = &redis.Options{Addr: s.Addr(), TLSConfig: config}
	}
	locker, err := redlock.Open(masters, redlock.Options{RequestTimeout: 2 * time.Second}) // handshakes take a while
	Must(tb, err)
	tb.Cleanup(func() { CloseLocker(tb, locker) })
	return locker
}

func TestEveryKindOfLockWorksOverMutualTLS(t *testing.T) {
	ca := newAuthority(t)
	servers := ca.servers(t, "127.0.0.1", 3)
	locker := secured(t, servers, ca.client(t))
	for name, opts := range map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "shared": {redlock.Shared()}, "exclusive": {redlock.Exclusive()},
		"reentrant": {redlock.Reentrant("job")}, "several keys": {redlock.AndKeys("b", "c")}, "renewed": {
			redlock.AutoRenew(),
		},
	} {
		lock := Take(t, locker, name, LongTTL, opts...)
		Must(t, lock.Extend(Within(t, Promptly), LongTTL))
		Must(t, lock.Release(t.Context()))
	}
	lock := Acquire(t, locker, LongTTL)
	next := Wait(t, Within(t, Promptly), locker, Key, LongTTL)
	Give(t, lock)
	Give(t, next.Get(t))
}

func TestTLSIsVerifiedInBothDirections(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	servers := ca.servers(t, "127.0.0.1", 1)
	trusting := ca.client(t)
	stranger := trusting.Clone()
	stranger.Certificates = nil
	for name, c := range map[string]struct {
		servers []*redistest.Server
		config  *tls.Config
		says    string
	}{
		"an authority that is not ours": {
			servers, newAuthority(t).client(t), "certificate signed by unknown authority",
		},
		"a name that is not the host's": {
			ca.servers(t, "127.0.0.2", 1), trusting, "certificate is valid for 127.0.0.2",
		},
		"no certificate of the client": {servers, stranger, ""},
		"no TLS at all":                {servers, nil, ""},
	} {
		locker := secured(t, c.servers, c.config)
		_, err := locker.TryAcquire(Within(t, Promptly), Key, 3*time.Second) // what can't be released lapses
		Is(t, err, redlock.ErrNoQuorum)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.says)
		}
		if n := Holders(t, c.servers, ""); n > 0 {
			t.Errorf("%s: the key was set", name)
		}
	}
	Must(t, Try(t, secured(t, servers, trusting), Key))
}

func TestARedissURLVerifiesTheServersCertificate(t *testing.T) {
	ca := newAuthority(t)
	servers := ca.servers(t, "127.0.0.1", 1) // by an authority that the system does not know
	locker := Dial(t, servers, redlock.Options{RequestTimeout: 2 * time.Second})
	_, err := locker.TryAcquire(Within(t, Promptly), Key, LongTTL)
	Is(t, err, redlock.ErrNoQuorum)
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v, want it to say why the certificate is refused", err)
	}
}
