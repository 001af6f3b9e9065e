package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/address"
	"github.com/seed-624411e5/redlock/internal/tlsfiles"
	"github.com/seed-624411e5/redlock/single"
)

// masterFlags select the masters and how to reach them. Every command that talks to masters has them.
type masterFlags struct {
	urls, next    []string
	config        string
	password      string
	passwordFile  string
	ca, cert, key string
	guard         time.Duration
	generation    uint64
}

func (m *masterFlags) define(fs *flag.FlagSet) {
	m.defineOld(fs)
	listVar(fs, &m.next, "new-masters", "`URLs` of the new masters, while masters are exchanged: locks then need a "+
		"quorum of both lists")
	numberVar(fs, &m.generation, "generation", 0, single.MaxToken, "`number` of this configuration of masters, one "+
		"more with every step of an exchange; 0: none")
}

// defineOld defines the flags of a command that has one list only.
func (m *masterFlags) defineOld(fs *flag.FlagSet) {
	listVar(fs, &m.urls, "masters", "`URLs` of the masters, separated by commas: redis:// or "+
		"valkey://user:password@host:port, rediss:// or valkeys:// for TLS")
	fs.StringVar(&m.config, "config", "", "`file` with settings, or none (default ~/.config/redlock/config or "+
		"/etc/redlock/config, if there is one)")
	fs.StringVar(&m.passwordFile, "password-file", "", "`file` with the password of masters without one in their "+
		"URL, in one line")
	fs.StringVar(&m.password, "password", "", "the `password` of masters without one in their URL; refused on a "+
		"command line: set REDLOCK_PASSWORD, or a line in the file")
	durationVar(fs, &m.guard, "restart-guard", 0, "keep a restarted master from voting for this `time`, the longest "+
		"ttl in use; for masters without appendfsync always")
	fs.StringVar(&m.ca, "tls-ca", "", "PEM `file` with the authorities that sign the masters' certificates, instead "+
		"of the system's")
	fs.StringVar(&m.cert, "tls-cert", "", "PEM `file` with this client's certificate, for masters that ask for one")
	fs.StringVar(&m.key, "tls-key", "", "PEM `file` with the certificate's key")
}

// fleet is the masters of one list or of two, each master once.
type fleet struct {
	all    []*single.Master // masters of the new list alone come last
	sets   []masterSet
	locker *redlock.Locker // nil if the command only asks
}

// masterSet is one set of masters with its own quorum.
type masterSet struct {
	name string // "" if it is the only one, "old" or "new"
	at   []int  // its masters' positions among all
}

func (s masterSet) quorum() int { return redlock.Quorum(len(s.at)) }

// count returns how many of the set's masters satisfy is.
func (s masterSet) count(is func(i int) bool) int {
	n := 0
	for _, i := range s.at {
		if is(i) {
			n++
		}
	}
	return n
}

func (s masterSet) of(n int) string {
	if s.name == "" {
		return fmt.Sprintf("%d of %d masters", n, len(s.at))
	}
	return fmt.Sprintf("%d of %d %s masters", n, len(s.at), s.name)
}

// counts describes how many masters of each set satisfy is.
func (f *fleet) counts(is func(i int) bool, separator string) string {
	var counts []string
	for _, set := range f.sets {
		counts = append(counts, set.of(set.count(is)))
	}
	return strings.Join(counts, separator)
}

func (f *fleet) joint() bool { return len(f.sets) > 1 }

// short returns a set if fewer of its masters than a quorum satisfy is; nil if there is none.
func (f *fleet) short(is func(i int) bool) *masterSet {
	for i := range f.sets {
		if f.sets[i].count(is) < f.sets[i].quorum() {
			return &f.sets[i]
		}
	}
	return nil
}

// won returns a set if a quorum of its masters satisfies is; nil if there is none.
func (f *fleet) won(is func(i int) bool) *masterSet {
	for i := range f.sets {
		if f.sets[i].count(is) >= f.sets[i].quorum() {
			return &f.sets[i]
		}
	}
	return nil
}

// setsOf names the sets of master i.
func (f *fleet) setsOf(i int) string {
	var names []string
	for _, s := range f.sets {
		if slices.Contains(s.at, i) {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

// open makes no connection yet. The error names a bad URL without its password.
func (m *masterFlags) open() (*fleet, error) {
	if len(m.urls) == 0 {
		return nil,
			usage("no masters: give -masters, REDLOCK_MASTERS or a configuration file such as /etc/redlock/config")
	}
	secure, err := tlsfiles.Files{CA: m.ca, Cert: m.cert, Key: m.key}.Config() // nil: none of these is set
	if err != nil {
		return nil, usage("%w", err)
	}
	if err := m.readPassword(); err != nil {
		return nil, err
	}
	f, byURL := &fleet{}, make(map[string]int)
	names := map[bool]string{false: "", true: "old"}
	err = m.openSet(f, byURL, masterSet{name: names[len(m.next) > 0]}, m.urls, secure)
	if err == nil && len(m.next) > 0 {
		err = m.openSet(f, byURL, masterSet{name: "new"}, m.next, secure)
	}
	if err == nil && f.joint() {
		err = f.checkNames()
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// openSet opens the masters of one list that have not been opened yet.
func (m *masterFlags) openSet(f *fleet, byURL map[string]int, set masterSet, urls []string, secure *tls.Config) error {
	of := ""
	if set.name == "new" {
		of = " of -new-masters"
	}
	for i, url := range urls {
		at, seen := byURL[url]
		if !seen || slices.Contains(set.at, at) {
			master, err := m.openOne(url, secure)
			if err != nil {
				return usage("master %d of %d%s: %w", i+1, len(urls), of, bare{err})
			}
			at, byURL[url] = len(f.all), len(f.all)
			f.all = append(f.all, master)
		}
		set.at = append(set.at, at)
	}
	f.sets = append(f.sets, set)
	return nil
}

// checkNames refuses a list that would count one server twice. It also serves commands that make no Locker.
func (f *fleet) checkNames() error {
	seen := make(map[string]bool)
	for _, m := range f.all {
		name := address.Fold(m.Name())
		if seen[name] {
			return usage("%s is named twice: a master of both lists must have the same URL in both, and be in each "+
				"of them once", m.Name())
		}
		seen[name] = true
	}
	return nil
}

func (f *fleet) close() {
	if f.locker != nil {
		closeSoon(f.locker, confirmedTimeout)
	}
	for _, m := range f.all {
		_ = m.Close() // the client is not used any more
	}
}

func (m *masterFlags) openOne(url string, secure *tls.Config) (*single.Master, error) {
	opt, err := single.ParseURL(url) // the error explains what is wrong without quoting the URL
	if err != nil {
		return nil, err
	}
	if opt.Password == "" {
		opt.Password = m.password
	}
	switch {
	case secure != nil && opt.TLSConfig == nil:
		// The error does not quote the address, which may be half a password.
		return nil, errors.New("it is not a rediss:// URL, but -tls flags are given")
	case secure != nil:
		opt.TLSConfig.RootCAs, opt.TLSConfig.Certificates = secure.RootCAs, secure.Certificates
	}
	return single.Open(opt, single.Options{RestartGuard: m.guard})
}

func (m *masterFlags) readPassword() error {
	if m.passwordFile == "" {
		return nil
	}
	content, err := readSmall(m.passwordFile, maxFile)
	if err != nil {
		return usage("-password-file: %w", err)
	}
	line := strings.TrimRight(string(content), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return usage("-password-file: %s does not hold one line with a password", m.passwordFile)
	}
	m.password = line
	return nil
}

// openLocker is open with a Locker, which has an observer unless that is nil.
func (m *masterFlags) openLocker(observe func(redlock.Event)) (*fleet, error) {
	f, err := m.open()
	if err != nil {
		return nil, err
	}
	opts := redlock.Options{RestartGuard: m.guard, Generation: m.generation, Observer: observe}
	if f.joint() {
		f.locker, err = redlock.NewJoint(f.voters(0), f.voters(1), opts)
	} else {
		f.locker, err = redlock.New(f.voters(0), opts)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// silent adds the likely reason if rediss:// masters did not answer in time and the error has no reason yet: a server
// without TLS waits for the rest of a line.
func (m *masterFlags) silent(err error) error {
	text := err.Error()
	if !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(text, "no answer in time") ||
		strings.Contains(text, "TLS") || !slices.ContainsFunc(slices.Concat(m.urls, m.next), func(url string) bool {
		return strings.HasPrefix(url, "rediss:") || strings.HasPrefix(url, "valkeys:")
	}) {
		return err
	}
	return fmt.Errorf("%w; a port without TLS (redis://) does not answer a rediss:// client", err)
}

func (f *fleet) voters(set int) []redlock.Master {
	voters := make([]redlock.Master, len(f.sets[set].at))
	for i, at := range f.sets[set].at {
		voters[i] = f.all[at]
	}
	return voters
}

// reach returns the error of a master that can't be used at all. It names the cause, such as a forgotten password; the
// errors of a master's Client do not. A user who may not run this one request may still run others.
func reach(ctx context.Context, m *single.Master) error {
	_, err := m.Ask(ctx, single.Request{Op: single.Inspect, Keys: []string{probeKey}})
	if isOfOneCommand(err) || redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil
	}
	return err
}

// statusOf returns the exit status for an error of the library.
func statusOf(err error) int {
	switch {
	case errors.Is(err, redlock.ErrInvalid):
		return statusUsage
	case errors.Is(err, redlock.ErrOutdated):
		return statusOutdated
	case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrExpired):
		return statusNoQuorum
	case errors.Is(err, redlock.ErrHeld):
		return statusHeld
	case errors.Is(err, redlock.ErrContended):
		return statusContended
	case errors.Is(err, redlock.ErrNotHeld):
		return statusLost
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Op == "write" {
		return statusWrite // not 1, because 1 would be an answer
	}
	return statusNo
}

// askAll asks each of n, such as masters, in parallel, and returns all answers. ctx ends after timeout.
func askAll[T any](ctx context.Context, n int, timeout time.Duration, ask func(ctx context.Context, i int) T) []T {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make([]T, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i] = ask(ctx, i) })
	}
	all.Wait()
	return answers
}
