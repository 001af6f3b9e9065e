package e2e_test

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
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// certificates is `certificates authority name...`: makes an authority, and certificates for 127.0.0.1 that it signs.
// Each is in name.pem, its key in name.key.
func certificates(ts *testscript.TestScript, neg bool, args []string) {
	authority, err := newPair(args[0], nil)
	check(ts, neg, err)
	check(ts, neg, authority.save(ts, args[0]))
	for _, name := range args[1:] {
		p, err := newPair(name, authority)
		check(ts, neg, err)
		check(ts, neg, p.save(ts, name))
	}
}

// pair is a certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newPair makes a certificate that the authority signs; without one, an authority.
func newPair(name string, authority *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p := &pair{key: key, certificate: &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{
			net.IPv4(127, 0, 0, 1),
		},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}}
	if authority == nil {
		authority = p
		p.certificate.IsCA, p.certificate.KeyUsage = true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, p.certificate, authority.certificate, &key.PublicKey, authority.key)
	if err != nil {
		return nil, err
	}
	p.certificate, err = x509.ParseCertificate(der)
	return p, err
}

func (p *pair) save(ts *testscript.TestScript, name string) error {
	key, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw})
	if err := os.WriteFile(ts.MkAbs(name+".pem"), cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(ts.MkAbs(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)
}

// startTLSMasters is `tls-masters n authority name password [server-arguments...]`. It does the same as `masters`, with
// TLS. The servers use the certificate with this name, and accept clients that have a certificate of this authority.
func startTLSMasters(ts *testscript.TestScript, neg bool, args []string) {
	startFleet(ts, neg, args[0], redistest.Config{
		TLS: &redistest.TLS{
			CAFile: ts.MkAbs(args[1] + ".pem"), CertFile: ts.MkAbs(args[2] + ".pem"),
			KeyFile: ts.MkAbs(args[2] + ".key"),
		},
		Password: args[3],
		Args:     args[4:],
	})
}

// Go's error quotes the names in a certificate unchanged, and the owner of a certificate may have put anything into it.
func TestANameInACertificateWritesNoLineOfItsOwn(t *testing.T) {
	t.Parallel()
	authority, err := newPair("authority", nil)
	must(t, err)
	server, err := newPair("server", authority)
	must(t, err)
	server.certificate.IPAddresses, server.certificate.DNSNames = nil, []string{"here\nredlock: all is well\x1b[2J"}
	der, err := x509.CreateCertificate(rand.Reader, server.certificate, authority.certificate, &server.key.PublicKey,
		authority.key)
	must(t, err)
	secure := quietServer(http.NotFoundHandler())
	secure.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: server.key}},
		MinVersion:   tls.VersionTLS12,
	}
	secure.StartTLS()
	defer secure.Close()
	_, port, err := net.SplitHostPort(secure.Listener.Addr().String())
	must(t, err)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.certificate.Raw}),
		0o600))
	flags := []string{"-tls-ca", ca, "-masters", "rediss://localhost:" + port}
	for command, rest := range map[string][]string{
		"run": {"-key", "k", "-try", "--", "true"}, "status": {"k"}, "release": {"-force", "-yes", "k"}, "doctor": nil,
	} {
		r := runRedlock(t, append(append([]string{command}, flags...), rest...)...)
		said := r.out + r.err
		if strings.Contains(said, "\nredlock: all is well") || strings.Contains(said, "\x1b") ||
			!strings.Contains(said, "all is well") {
			t.Errorf("%s said %q", command, said)
		}
	}
}
