//go:build unix

package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// The servers quote commands in errors, from the start or from a moment at which a lock is held. No subcommand may
// print an owner value.
func TestHazard119NoSubcommandPrintsAnOwnerThatAServerQuotes(t *testing.T) {
	t.Parallel()
	const holder = "someone:1/00112233445566778899aabbccddeeff"
	var mu sync.Mutex
	secrets, quotes := map[string]bool{holder[len("someone:1/"):]: true}, ""
	random := regexp.MustCompile(`(?:^|[^0-9a-f])([0-9a-f]{32})(?:$|[^0-9a-f])`)
	script := func(step oddserver.Step) oddserver.Act {
		mu.Lock()
		defer mu.Unlock()
		for _, word := range step.Args {
			if found := random.FindStringSubmatch(word); found != nil && !strings.HasPrefix(word, "redlock:") {
				secrets[found[1]] = true
			}
		}
		if !strings.Contains(quotes, " "+step.Name+" ") {
			return oddserver.Pass()
		}
		words := strings.Join(step.Args, "' '")
		return oddserver.Say("-ERR unknown command '" + strings.ToLower(step.Name) + "', with args beginning with: '" +
			words[max(0, len(words)-200):] + "'\r\n")
	}
	quote := func(commands string) {
		mu.Lock()
		defer mu.Unlock()
		quotes = commands
	}
	server := redistest.Start(t)
	url := "redis://" + oddserver.Start(t, server.Addr(), script).Addr()
	must(t, server.Client().Set(t.Context(), "held", holder, time.Hour).Err())
	dir := t.TempDir()
	ticket := filepath.Join(dir, "ticket")
	must(t, os.WriteFile(ticket, []byte(`{"form": "redlock-ticket-1", "keys": ["aGVsZA=="], "owner": "`+holder+`"}`),
		0o600))
	quoted := 0
	judge := func(name string, r result) {
		if strings.Contains(r.out+r.err, "…") {
			quoted++
		}
		mu.Lock()
		defer mu.Unlock()
		for s := range secrets {
			for i := range len(s) - 7 {
				if strings.Contains(r.out+r.err, s[i:i+8]) {
					t.Errorf("%s shows %s: %s%s", name, s, r.out, r.err)
					return
				}
			}
		}
	}
	for _, commands := range []string{" SET EVALSHA EVAL ", " EVALSHA EVAL "} {
		quote(commands)
		for _, args := range [][]string{
			{"run", "-key", "free", "-wait", "300ms", "-log", "json", "--", "true"},
			{"run", "-key", "free", "-fenced", "-wait", "300ms", "-log", "json", "--", "true"},
			{"run", "-key", "held", "-wait", "300ms", "-log", "json", "--", "true"},
			{"hold", "-key", "free", "-wait", "300ms"},
			{"acquire", "-key", "free", "-ttl", "1m", "-wait", "300ms", "-out", filepath.Join(dir, "free")},
			{"release", "-in", ticket},
			{"status", "held"},
			{"status", "-json", "held"},
			{"list"},
			{"doctor"},
			{"doctor", "-json"},
			{"release", "-force", "-yes", "held"},
			{"members"},
			{"members", "-announce", "7", "-yes"},
		} {
			judge(commands+strings.Join(args, " "),
				runRedlock(t, append([]string{"REDLOCK_MASTERS=" + url}, args...)...))
		}
		must(t, server.Client().Set(t.Context(), "held", holder, time.Hour).Err())
	}
	quote("")
	time.AfterFunc(time.Second, func() { quote(" EVALSHA EVAL SET ") })
	judge("a job whose lock is lost",
		runRedlock(t, "REDLOCK_MASTERS="+url, "run", "-key", "job", "-ttl", "2s", "-grace", "200ms", "-log", "json",
			"--", "sleep", "10"))
	if len(secrets) < 10 || quoted < 10 {
		t.Errorf("%d secrets were sent, and %d outputs quote something: this shows nothing", len(secrets), quoted)
	}
}
