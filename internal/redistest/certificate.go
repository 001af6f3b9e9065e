package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificate is a self-signed certificate for localhost and 127.0.0.1, for servers and clients. It is valid for an
// hour.
type Certificate struct {
	Files TLS // for WithTLS; they are removed when the test ends
	Pair  tls.Certificate
	Roots *x509.CertPool
}

// SelfSigned makes a Certificate.
func SelfSigned(tb TB) *Certificate {
	tb.Helper()
	dir, err := os.MkdirTemp("", "redistest-tls-")
	if err == nil {
		tb.Cleanup(func() { _ = os.RemoveAll(dir) })
		var c *Certificate
		if c, err = selfSigned(dir); err == nil {
			return c
		}
	}
	tb.Fatalf("make a certificate: %v", err)
	return nil
}

func selfSigned(dir string) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	c := &Certificate{Roots: x509.NewCertPool()}
	c.Files = TLS{
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
		CAFile: filepath.Join(dir, "cert.pem"),
	}
	c.Roots.AppendCertsFromPEM(certPEM)
	c.Pair, err = tls.X509KeyPair(certPEM, keyPEM)
	return c,
		errors.Join(err, os.WriteFile(c.Files.CertFile, certPEM, 0o600), os.WriteFile(c.Files.KeyFile, keyPEM, 0o600))
}

// Client returns the configuration of a client that trusts the certificate and presents it.
func (c *Certificate) Client() *tls.Config {
	return &tls.Config{
		RootCAs: c.Roots, Certificates: []tls.Certificate{c.Pair}, ServerName: "localhost",
		MinVersion: tls.VersionTLS12,
	}
}

// Server returns the configuration of a server with the certificate.
func (c *Certificate) Server() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.Pair}, MinVersion: tls.VersionTLS12}
}
