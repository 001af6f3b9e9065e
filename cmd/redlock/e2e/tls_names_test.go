package e2e_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
