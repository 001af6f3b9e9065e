package masters

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// serverName is the only name in the certificates of a run's own masters. No address is valid, so a
// client must know the name of its master, even if it connects through a proxy.
const serverName = "master.redlock-chaos.test"

// certificates are the files, in one directory, with the certificates of a run's own masters and their clients.
type certificates struct {
	dir    string
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey // the authority's
	server *ecdsa.PrivateKey // of the valid certificate and of the expired one
}

// newCertificates makes an authority, a certificate for the clients, and for the masters one that is valid and one that
// has expired.
func newCertificates(dir string) (*certificates, error) {
	c := &certificates{dir: dir}
	var err error
	if c.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if c.server, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	client, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	const year = 365 * 24 * time.Hour // more than any clock in a run is set wrong by
	if err := c.issue("ca", c.key, now.Add(10*year)); err != nil {
		return nil, err
	}
	return c, errors.Join(c.issue("client", client, now.Add(10*year)), c.issue("server", c.server, now.Add(10*year)),
		c.issue("expired", c.server, now.Add(-time.Hour)))
}

// issue writes a certificate and its key.
func (c *certificates) issue(name string, key *ecdsa.PrivateKey, until time.Time) error {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "redlock-chaos " + name},
		NotBefore: time.Now().Add(-365 * 24 * time.Hour), NotAfter: until, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{serverName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent := c.ca
	if parent == nil {
		parent = template
		template.IsCA, template.KeyUsage, template.DNSNames = true, x509.KeyUsageCertSign, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, c.key)
	if err != nil {
		return err
	}
	if c.ca == nil {
		if c.ca, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(c.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(c.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600),
	)
}

func (c *certificates) file(name string) string { return filepath.Join(c.dir, name) }

// ofServer are the files of a master that is as it should be.
func (c *certificates) ofServer() *redistest.TLS {
	return &redistest.TLS{CertFile: c.file("server.pem"), KeyFile: c.file("server.key"), CAFile: c.file("ca.pem")}
}

// reach is how a client reaches a master at addr.
func (c *certificates) reach(addr string) endpoint.Endpoint {
	return endpoint.Endpoint{Addr: addr, TLS: &endpoint.TLS{
		ServerName: serverName, CA: c.file("ca.pem"), Cert: c.file("client.pem"), Key: c.file("client.key"),
	}}
}

// greet makes a connection to a master as a client would, and closes it.
func greet(ctx context.Context, reach endpoint.Endpoint) error {
	opt, err := endpoint.Options(reach)
	if err != nil {
		return err
	}
	conn, err := (&tls.Dialer{Config: opt.TLSConfig}).DialContext(ctx, "tcp", reach.Addr)
	if err != nil {
		return fmt.Errorf("a new connection fails: %w", err)
	}
	return conn.Close()
}
