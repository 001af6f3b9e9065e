package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
)

// addressesVariable in the environment is read where neither -addrs nor -addrs-file is given: a command line is seen by
// everybody on the machine.
const addressesVariable = "REDLOCK_CHAOS_ADDRS"

// addresses are the masters of the external backend.
type addresses struct {
	list, file string
	tls        endpoint.TLS
}

func (a *addresses) flags(f *flag.FlagSet) {
	f.StringVar(&a.list, "addrs", "", "masters of the external backend, separated by commas: host:port, or `URLs` as "+
		"redis://user:password@host:port/db, "+
		"rediss:// for TLS, or valkey:// and valkeys://; passwords are better kept in -addrs-file or "+
		addressesVariable)
	f.StringVar(&a.file, "addrs-file", "", "`file` with those masters, one a line; # begins a comment")
	f.StringVar(&a.tls.CA, "tls-ca", "", "PEM `file` with the authorities that sign those masters' certificates, "+
		"instead of the system's; with it host:port speaks TLS")
	f.StringVar(&a.tls.Cert, "tls-cert", "", "PEM `file` with the clients' certificate, for masters that ask for one")
	f.StringVar(&a.tls.Key, "tls-key", "", "PEM `file` with the certificate's key")
}

// apply says where the masters are. Errors quote no address, which may hold a password.
func (a *addresses) apply(cfg *chaos.Config, backend string) error {
	list := strings.Split(a.list, ",")
	switch {
	case a.list != "" && a.file != "":
		return fmt.Errorf("-addrs and -addrs-file say the same: give one of them")
	case backend != "external":
		if a.list != "" || a.file != "" || a.tls != (endpoint.TLS{}) {
			return fmt.Errorf("-addrs, -addrs-file and the -tls flags are for -backend external, and it is %s", backend)
		}
		return nil
	case a.file != "":
		raw, err := os.ReadFile(a.file)
		if err != nil {
			return fmt.Errorf("-addrs-file: %w", err)
		}
		list = nil
		for line := range strings.Lines(string(raw)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, line)
			}
		}
	case a.list == "":
		list = strings.Split(os.Getenv(addressesVariable), ",")
	}
	for i, one := range list {
		if list[i] = strings.TrimSpace(one); list[i] == "" && len(list) > 1 {
			return fmt.Errorf("address %d of %d is empty", i+1, len(list))
		}
	}
	if len(list) == 1 && list[0] == "" {
		list = nil
	}
	cfg.Options.Addrs, cfg.Options.TLS = list, a.tls
	return nil
}

// redacted is a list of addresses without passwords.
func redacted(list string) string {
	all := strings.Split(list, ",")
	for i, one := range all {
		all[i] = endpoint.Redacted(strings.TrimSpace(one))
	}
	return strings.Join(all, ",")
}
