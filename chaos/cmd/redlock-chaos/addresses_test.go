package main

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// TestPasswordsComeByFileOrEnvironmentAndAreNotShown runs on masters with a password and TLS, which are named in each
// way.
func TestPasswordsComeByFileOrEnvironmentAndAreNotShown(t *testing.T) {
	const password = "hush/hush 1"
	t.Setenv(addressesVariable, "")
	files := redistest.SelfSigned(t).Files
	var urls []string
	for _, s := range redistest.StartN(t, 3, redistest.WithPassword(password), redistest.WithTLS(files)) {
		u := url.URL{Scheme: "rediss", Host: s.Addr(), User: url.UserPassword("default", password)}
		urls = append(urls, u.String())
	}
	file := filepath.Join(t.TempDir(), "masters")
	must(t, os.WriteFile(file, []byte("# ours\n"+strings.Join(urls, "\n")+"\n"), 0o600))
	list := strings.Join(urls, ",")
	for name, tt := range map[string]struct {
		args       []string
		env, shows string
	}{
		"flag":        {[]string{"-addrs", list}, "", "-addrs rediss://default:xxxxx@127.0.0.1:"},
		"file":        {[]string{"-addrs-file", file}, "", "-addrs-file " + file},
		"environment": {nil, list, "-backend external"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.env == "" {
				t.Parallel() // but after the others
			} else {
				t.Setenv(addressesVariable, tt.env)
			}
			dir := t.TempDir()
			args := append([]string{
				"run", "-backend", "external", "-scenario", "calm", "-duration", "1s", "-ttl", "10s", "-dir", dir,
				"-tls-ca", files.CAFile, "-tls-cert", files.CertFile, "-tls-key", files.KeyFile,
			}, tt.args...)
			status, stdout, stderr := execute(t.Context(), t, args...)
			if status == exitUsage || status == exitSetup || !strings.Contains(stdout, tt.shows) ||
				!strings.Contains(stdout, "-tls-ca "+files.CAFile) {
				t.Errorf("status %d: %s%s", status, stdout, stderr)
			}
			written := stdout + stderr
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					var raw []byte
					raw, err = os.ReadFile(path)
					written += string(raw)
				}
				return err
			})
			if err != nil || strings.Contains(written, "hush") {
				t.Errorf("the password is shown, or %v", err)
			}
		})
	}
}

func TestMistakesInAddressesAreNamedAndNotQuoted(t *testing.T) {
	t.Setenv(addressesVariable, "")
	external := []string{"-backend", "external"}
	for name, tt := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"both":    {append(external, "-addrs", "a:1", "-addrs-file", "f"), exitUsage, "give one of them"},
		"no file": {append(external, "-addrs-file", "none-there"), exitUsage, "none-there"},
		"another backend": {
			[]string{"-backend", "embedded", "-addrs", "redis://:hushhush@a:1"}, exitUsage, "-backend external",
		},
		"a comma": {append(external, "-addrs", "redis://jobs:123,hushhush@a:1"), exitSetup, "address 2 of 2"},
		"a blank": {
			append(external, "-addrs", "redis://jobs:a@a:1,", "redis://jobs:hushhush@b:1"), exitUsage,
			"has to be quoted",
		},
		"an empty one": {append(external, "-addrs", "a:1,,b:1"), exitUsage, "address 2 of 3 is empty"},
		"one twice": {
			append(external, "-addrs", "a:1,b:1,redis://:hushhush@a:1"), exitSetup, "address 3 of 3 is that of " +
				"address 1",
		},
		"a proxy": {
			[]string{"-backend", "process", "-proxy", "http://127.0.0.1:1"}, exitUsage, "-proxy is for -backend " +
				"external",
		},
		"none": {external, exitSetup, "needs addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := execute(t.Context(), t,
				append([]string{"run", "-quiet", "-dir", t.TempDir(), "-scenario", "calm"}, tt.args...)...)
			if status != tt.status || !strings.Contains(stderr, tt.says) || strings.Contains(stdout+stderr, "hush") {
				t.Errorf("status %d, want %d: %s%s", status, tt.status, stdout, stderr)
			}
		})
	}
}
