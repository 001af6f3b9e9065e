package redistest_test

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
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// selfSigned writes a certificate for 127.0.0.1 that is its own authority, and returns the files and what a client needs.
func selfSigned(tb testing.TB) (redistest.TLS, *tls.Config) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(tb, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(tb, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	dir := tb.TempDir()
	files := redistest.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	files.CAFile = files.CertFile
	must(tb, os.WriteFile(files.CertFile, certPEM, 0o600))
	must(tb, os.WriteFile(files.KeyFile, keyPEM, 0o600))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	must(tb, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return files, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

func TestTLSIsSpokenByThePortAndNotNeededByTheClient(t *testing.T) {
	files, config := selfSigned(t)
	server := redistest.Start(t, redistest.WithTLS(files))
	must(t, server.Client().Ping(t.Context()).Err())
	must(t, pingURL(t.Context(), server.URL(), func(o *redis.Options) { o.TLSConfig = config }))

	stranger := config.Clone()
	stranger.Certificates = nil
	if err := pingURL(t.Context(), server.URL(), func(o *redis.Options) { o.TLSConfig = stranger }); err == nil {
		t.Error("a client without a certificate was served")
	}
	if err := pingURL(t.Context(), "redis://"+server.Addr(), func(*redis.Options) {}); err == nil {
		t.Error("a client without TLS was served")
	}
}
