package hazards_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// quoting makes servers answer requests by quoting them, in one of several forms, and remembers the secrets in the
// requests.
type quoting struct {
	form func(command string, words []string) string

	mu      sync.Mutex
	steps   []string // which commands are answered so
	secrets map[string]bool
}

// secret matches the random part of an owner value, and the ID of a waiter. A script's digest is longer.
var secret = regexp.MustCompile(`(?:^|[^0-9a-f])([0-9a-f]{32})(?:$|[^0-9a-f])`)

func (q *quoting) script(step oddserver.Step) oddserver.Act {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, word := range step.Args {
		if strings.HasPrefix(word, single.ReservedPrefix) { // a key
			continue
		}
		for _, found := range secret.FindAllStringSubmatch(word, -1) {
			q.secrets[found[1]] = true
		}
	}
	if !slices.Contains(q.steps, step.Name) {
		return oddserver.Pass()
	}
	return oddserver.Say(q.form(strings.ToLower(step.Name), step.Args))
}

// quotes are the forms.
var quotes = map[string]func(command string, words []string) string{
	// As Redis does: in all 128 bytes of words, the last one cut short.
	"unknown command": func(command string, words []string) string {
		var b strings.Builder
		for _, word := range words {
			if room := 128 - b.Len(); room > 0 {
				fmt.Fprintf(&b, "'%.*s' ", room, word)
			}
		}
		return "-ERR unknown command '" + command + "', with args beginning with: " + b.String() + "\r\n"
	},
	"upper case": func(command string, words []string) string {
		return "-ERR NO SUCH COMMAND " + strings.ToUpper(command+" "+strings.Join(last(words, 4), " ")) + "\r\n"
	},
	"the end alone": func(_ string, words []string) string {
		all := strings.Join(words, " ")
		return "-NOPERM …" + all[max(0, len(all)-100):] + "\r\n"
	},
	"half of each word": func(_ string, words []string) string {
		var b strings.Builder
		for _, word := range last(words, 6) {
			b.WriteString(word[:len(word)-len(word)/3] + " ")
		}
		return "-LOADING " + b.String() + "\r\n"
	},
	"a status": func(_ string, words []string) string { return "+" + strings.Join(last(words, 4), " ") + "\r\n" },
	"no reply": func(_ string, words []string) string { return strings.Join(last(words, 2), " ") + "\r\n" },
	"a number": func(_ string, words []string) string { return ":" + strings.Join(last(words, 3), " ") + "\r\n" },
	"a RESP3 error": func(_ string, words []string) string {
		text := "ERR " + strings.Join(last(words, 5), " ")
		return fmt.Sprintf("!%d\r\n%s\r\n", len(text), text)
	},
}

// last are the last n words that are no source of a script.
func last(words []string, n int) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(word, "\n") })
	return words[max(0, len(words)-n):]
}

// shownOf returns a secret if the text contains eight digits in a row from it, and "" otherwise.
func (q *quoting) shownOf(text string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	text = strings.ToLower(text)
	for s := range q.secrets {
		for i := range len(s) - 7 {
			if strings.Contains(text, s[i:i+8]) {
				return s
			}
		}
	}
	return ""
}

// quote makes servers quote the named commands, separated by spaces, from now on.
func (q *quoting) quote(steps string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.steps = strings.Fields(steps)
}

// requests lists the commands that carry owner values.
const requests = "SET ZADD EVALSHA EVAL"

// everyOperation does whatever a Locker and its locks can, first with servers that quote all requests, and then with
// locks that were got before. It returns the errors.
func everyOperation(t *testing.T, q *quoting, l, other *redlock.Locker) (errs []error) {
	t.Helper()
	ctx := context.Background()
	short := func() context.Context { return Within(t, 100*time.Millisecond) }
	kinds := map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "shared": {redlock.Shared()}, "exclusive": {redlock.Exclusive()},
		"reentrant": {redlock.Reentrant("me")},
		"several":   {redlock.AndKeys("more", "still more")}, "kept": {redlock.MinHold(time.Second)}, "published": {
			redlock.Published("here"),
		},
	}
	for name, opts := range kinds {
		q.quote(requests)
		_, tried := l.TryAcquire(short(), name, LongTTL, opts...)
		_, waited := l.Acquire(short(), name, LongTTL, opts...)
		q.quote("")
		errs = append(errs, tried, waited)
		var lock *redlock.Lock
		redistest.Eventually(t, Promptly, func() bool {
			var err error
			lock, err = l.TryAcquire(ctx, name, LongTTL, opts...)
			return err == nil
		}, "a lock")
		_, refused := other.TryAcquire(short(), name, LongTTL)
		q.quote(requests)
		_, held := other.Acquire(short(), name, LongTTL, opts...)
		errs = append(errs, refused, held, lock.Extend(short(), LongTTL), lock.Verify(short()))
		_, holder := other.Holder(short(), name)
		errs = append(errs, holder)
		if h, err := lock.Handover(); err == nil {
			_, attached := other.Attach(short(), h, LongTTL)
			errs = append(errs, attached)
		} else {
			errs = append(errs, err, lock.Release(short()))
		}
		errs = append(errs, lock.Err())
		q.quote("")
	}
	q.quote(requests)
	report, err := l.Check(ctx)
	if report != nil {
		err = errors.Join(err, errors.New(report.String()))
	}
	return append(errs, err)
}

// A server quotes a command that it does not know. Sentinels, proxies and servers with renamed commands do so, too.
// An owner value is enough to release a lock, so no error and no event may show one.
func TestHazard119NoErrorShowsAnOwnerThatAServerQuotes(t *testing.T) {
	for name, form := range quotes {
		for _, brought := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, brought %t", name, brought), func(t *testing.T) {
				t.Parallel()
				q := &quoting{form: form, secrets: make(map[string]bool)}
				var masters, others []redlock.Master
				for _, s := range redistest.StartN(t, 1) {
					odd := oddserver.Start(t, s.Addr(), q.script)
					for _, to := range []*[]redlock.Master{&masters, &others} {
						m, err := single.Dial("redis://"+odd.Addr(), single.Options{})
						Must(t, err)
						t.Cleanup(func() { _ = m.Close() })
						if brought {
							c := redis.NewClient(&redis.Options{Addr: odd.Addr(), MaxRetries: -1})
							t.Cleanup(func() { _ = c.Close() })
							m, err = single.New(c, single.Options{})
							Must(t, err)
						}
						*to = append(*to, m)
					}
				}
				var mu sync.Mutex
				var told []string
				opts := redlock.Options{RequestTimeout: 2 * time.Second, Observer: func(e redlock.Event) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, fmt.Sprintf("%v %+v", e.Err, e))
				}}
				l, err := redlock.New(masters, opts)
				Must(t, err)
				other, err := redlock.New(others, opts)
				Must(t, err)
				errs := everyOperation(t, q, l, other)
				q.quote(requests)
				for _, l := range []*redlock.Locker{l, other} {
					errs = append(errs, l.Close(Within(t, time.Second)))
				}
				mu.Lock()
				defer mu.Unlock()
				quoted := 0
				for _, err := range errs {
					var reply redis.Error
					if errors.As(err, &reply) {
						told = append(told, reply.Error())
					}
					if votes, is := errors.AsType[*redlock.QuorumError](err); is {
						for _, r := range votes.Nodes {
							told = append(told, fmt.Sprintf("%v %+v %#v", r.Err, r.Err, r.Err))
							if errors.As(r.Err, &reply) {
								told = append(told, reply.Error())
							}
						}
					}
					told = append(told, fmt.Sprintf("%v %+v", err, err))
				}
				for _, text := range told {
					if s := q.shownOf(text); s != "" {
						t.Errorf("the secret %s is shown: %s", s, text)
					}
					if strings.Contains(text, "…") {
						quoted++
					}
				}
				if len(q.secrets) < 10 || quoted == 0 && name != "a number" && name != "no reply" {
					t.Errorf("%d secrets were sent, and %d of %d texts quote something: this shows nothing",
						len(q.secrets), quoted, len(told))
				}
			})
		}
	}
}

// The oracle notices a secret in every form in which servers quote it.
func TestControlAShownSecretIsNoticed(t *testing.T) {
	q := &quoting{secrets: map[string]bool{"0123456789abcdef0123456789abcdef": true}}
	for _, text := range []string{"0123456789abcdef0123456789abcdef", "…89ABCDEF'", "me/01234567"} {
		if q.shownOf(text) == "" {
			t.Errorf("%q passes", text)
		}
	}
	if q.shownOf("me/0123456 …") != "" {
		t.Error("seven digits are taken for the secret")
	}
}
