// Package tlsfiles makes a client's TLS settings from PEM files, which the -tls flags of the commands name.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files are paths of PEM files. An empty path names no file.
type Files struct {
	// CA has the authorities that sign the servers' certificates, instead of the system's.
	CA string
	// Cert is this client's certificate, and Key its key: both or neither.
	Cert, Key string
}

// Config reads the files. It is nil if no file is named. Errors name the flags.
func (f Files) Config() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil //nolint:nilnil // no TLS settings are not an error
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("-tls-cert and -tls-key belong together: give both or neither")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("-tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("-tls-ca: %s holds no certificate", f.CA)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("-tls-cert and -tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
