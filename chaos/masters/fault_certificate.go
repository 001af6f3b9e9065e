package masters

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
)

// ExpiredCertificate gives a master that speaks TLS a certificate which has expired, and closes all client connections:
// no client that checks certificates can make a new one. Heal gives it back the one it had.
const ExpiredCertificate Action = "expired-certificate"

var expiredCertificate = Fault{
	Action: ExpiredCertificate, Text: "the server's certificate has expired and its connections are closed",
	Needs: Server | Consent | Process | Secure, Lasts: true, process: expireCertificate,
}

func expireCertificate(ctx context.Context, m *process, _ Params) (Injection, error) {
	show := func(ctx context.Context, name string) error {
		return m.client.ConfigSet(ctx, "tls-cert-file", m.certificates.file(name)).Err()
	}
	reach := m.certificates.reach(m.Addr())
	heal := func(ctx context.Context) error {
		if err := show(ctx, "server.pem"); err != nil {
			return err
		}
		return greet(ctx, reach)
	}
	if err := show(ctx, "expired.pem"); err != nil {
		return Injection{}, errors.Join(err, heal(ctx))
	}
	n, err := m.client.ClientKillByFilter(ctx, "TYPE", "normal", "USER", User).Result()
	if err != nil {
		return Injection{}, errors.Join(err, heal(ctx))
	}
	err = greet(ctx, reach)
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); !ok || invalid.Reason != x509.Expired {
		return Injection{}, errors.Join(fmt.Errorf("a client got the error %w", orAsUsual(err)), heal(ctx))
	}
	return seen(heal, "%d connections closed, and %v", n, err), nil
}

// orAsUsual returns the error, or a text that says there is none.
func orAsUsual(err error) error {
	if err == nil {
		return errAsUsual
	}
	return err
}
