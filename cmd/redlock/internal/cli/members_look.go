package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// scanPage is the number of keys in one request to a master, scanMost the greatest number of keys to look at.
	scanPage, scanMost = 500, 20_000
	// looksAtMost is how often the command looks at the masters before it reports that a user uses one list alone.
	// lookAgain is the pause before the second look; each later pause is twice as long. One look is not enough: a lock
	// or a connection that comes or goes is on only some of its masters for a moment. A short job that has its quorum
	// may also end before it is connected to the other masters.
	looksAtMost, lookAgain = 6, 100 * time.Millisecond
	// oftenEnough is a number of looks. A lock must be only on masters of one list that often. Then its holder counts
	// as a user of that list alone.
	oftenEnough = 3
	// freshness is how long a process may go on before it learns of a new generation.
	freshness = 10 * time.Second
)

// member has the facts that one master reports about itself and its users.
type member struct {
	err        error
	role       string
	generation uint64
	unread     error          // why the generation could not be read
	clients    map[string]int // connections of others, by source; nil if the master does not list them
	owners     map[string]int // locks, by the identity of the holder
	locks      int
	longest    time.Duration // the longest ttl of a lock
	partly     bool          // there are more keys than were read
}

// membership has the answers of all masters.
type membership struct {
	fleet   *fleet
	members []member
	// oldAlone and newAlone are the users that seem to use one list of two alone.
	oldAlone, newAlone []*user
}

// observe looks at all masters, and again while a user seems to use one list alone.
func observe(ctx context.Context, look func() *membership) *membership {
	old, later := make(suspects), make(suspects)
	for n, pause := 1, lookAgain; ; n, pause = n+1, 2*pause {
		s := look()
		if s.fleet.joint() {
			old.see(s, 0, 1)
			later.see(s, 1, 0)
		}
		s.oldAlone, s.newAlone = old.accused(n), later.accused(n)
		if n == looksAtMost || len(old)+len(later) == 0 {
			return s
		}
		select {
		case <-ctx.Done():
			return s
		case <-time.After(pause):
		}
	}
}

// suspects are the users that some look found on one list alone, and that no look found on the other list.
type suspects map[string]*user

// see adds the users that this look finds on one list alone. It clears users that it finds on a master that only the
// other list has. Nothing else clears a user: a master that does not answer proves nothing, and a job that comes and
// goes may be absent just now.
func (m suspects) see(s *membership, set, other int) {
	others := s.apart(other, set)
	for _, u := range s.users() {
		if slices.ContainsFunc(others, func(i int) bool { return u.on[i] }) {
			delete(m, u.Who)
		}
	}
	for _, u := range s.onlyIn(set, other) {
		if m[u.Who] == nil {
			m[u.Who] = u
		}
		m[u.Who].times++
	}
}

// accused returns the suspects after so many looks. A suspect known only by its locks must have had them in several
// looks, because a lock that is seen less often may be one that was just being acquired or released.
func (m suspects) accused(looks int) (found []*user) {
	for _, who := range slices.Sorted(maps.Keys(m)) {
		if u := m[who]; u.Connections > 0 || u.times >= min(looks, oftenEnough) {
			found = append(found, u)
		}
	}
	return found
}

func lookAtMembers(ctx context.Context, f *fleet) *membership {
	return &membership{fleet: f, members: askAll(ctx, len(f.all), askTimeout, func(ctx context.Context, i int) member {
		return lookAtMember(ctx, f.all[i])
	})}
}

func lookAtMember(ctx context.Context, master *single.Master) (m member) {
	if m.err = reach(ctx, master); m.err != nil {
		return m
	}
	c := master.Client()
	role, err := c.Do(ctx, "ROLE").Slice()
	switch {
	case err == nil && len(role) > 0:
		m.role, _ = role[0].(string)
	case err != nil && !isOfOneCommand(err):
		m.err = err
		return m
	}
	m.generation, m.unread = toldGeneration(ctx, c)
	own := ownConnections(ctx, master)
	if list, err := c.Do(ctx, "CLIENT", "LIST").Text(); err == nil {
		m.clients = connections(list, own)
	}
	m.owners = make(map[string]int)
	done, _ := scanLocks(ctx, c, "", scanMost, func(lock lookalike) { // an error leaves keys unread
		m.owners[lock.who]++
		m.locks++
		m.longest = max(m.longest, lock.ttl)
	})
	m.partly = !done
	return m
}

// toldGeneration returns the greatest generation that a master knows; 0 if none.
func toldGeneration(ctx context.Context, c redis.UniversalClient) (uint64, error) {
	known, err := c.Get(ctx, single.GenerationKey).Uint64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return known, err
}

// isReply reports whether err is an answer of the server, and not a failure to get one.
func isReply(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}

// isOfOneCommand reports whether the server refused only this command: the user may not run it, or the server does not
// know it.
func isOfOneCommand(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command")
}

// ownConnections returns the ids of this process's connections to a master. They must not pass for those of a program
// on this machine. The connection that asks for the list is missing.
func ownConnections(ctx context.Context, master *single.Master) (ids []string) {
	note := func(id any, err error) {
		if err == nil {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	if q, err := master.Questions(ctx); err == nil { // on the connection that reach has used
		note(q.Ask(ctx, "CLIENT", "ID"))
		defer q.Close()
	}
	p := master.Client().Pipeline() // pipelines have connections of their own
	id := p.ClientID(ctx)
	_, err := p.Exec(ctx)
	note(id.Val(), err)
	return ids
}

// asking are the last commands of connections that ask for the list, or for their id, which may be refused. Old servers
// leave out the second word. A program's idle connection may show another, such as client|setinfo.
var asking = []string{"client|list", "client|id", "client"}

// connections counts the connections in CLIENT LIST by source, without this process's own and without replicas.
func connections(list string, own []string) map[string]int {
	n := make(map[string]int)
	for line := range strings.Lines(list) {
		field := make(map[string]string)
		for word := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(word, "=")
			field[name] = value
		}
		host, _, err := net.SplitHostPort(field["addr"])
		if err != nil || slices.Contains(own, field["id"]) || slices.Contains(asking, field["cmd"]) ||
			strings.ContainsAny(field["flags"], "MS") {
			continue
		}
		if field["name"] != "" {
			host += " (" + field["name"] + ")"
		}
		n[host]++
	}
	return n
}

// globs makes a Redis pattern match exactly a text.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// scanLocks scans this many keys of a master, with any prefix, and calls found for those with this prefix that look
// like locks. done means that it has scanned all keys.
func scanLocks(ctx context.Context, c redis.UniversalClient, prefix string, most int, found func(lookalike)) (done bool,
	err error,
) {
	var cursor uint64
	for seen := 0; seen < most; seen += scanPage {
		keys, next, err := c.Scan(ctx, cursor, globs.Replace(prefix)+"*", scanPage).Result()
		if err != nil {
			return false, err
		}
		locks, err := lookLikeLocks(ctx, c, slices.DeleteFunc(keys, single.Reserved))
		for _, lock := range locks {
			found(lock)
		}
		if err != nil && !isReply(err) { // a reply is about single keys
			return false, err
		}
		if cursor = next; cursor == 0 {
			return true, nil
		}
	}
	return false, nil
}

type lookalike struct {
	key, who string
	ttl      time.Duration
}

// holdsMark is the member that distinguishes a set of holds from other sorted sets, like HOLDS in single/lua/kind.lua.
const holdsMark = "redlock:holds"

// valueStart and valueEnd are the bytes of a value that tell a lock from data. An owner may publish 4 kB between them.
const valueStart, valueEnd = 256, 34

// lookLikeLocks returns the keys that look like locks. An error about single keys is a reply of the server.
func lookLikeLocks(ctx context.Context, c redis.UniversalClient, keys []string) (locks []lookalike, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	ttls := make([]*redis.DurationCmd, len(keys))
	starts, ends := make([]*redis.StringCmd, len(keys)), make([]*redis.StringCmd, len(keys))
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			// For a set of holds the second and the third command fail.
			ttls[i], starts[i] = p.PTTL(ctx, key), p.GetRange(ctx, key, 0, valueStart-1)
			ends[i] = p.GetRange(ctx, key, -valueEnd, -1)
		}
		return nil
	})
	var sets []lookalike
	for i, key := range keys {
		ttl, err := ttls[i].Result()
		if err != nil {
			continue
		}
		value, err := starts[i].Result()
		if len(value) == valueStart { // the middle, of a published text, does not matter
			value += ends[i].Val()
		}
		_, isHold := single.HoldOf(value)
		switch {
		case redis.HasErrorPrefix(err, "WRONGTYPE") && ttl > 0:
			sets = append(sets, lookalike{key, "(shared or reentrant)", ttl})
		case isHold && ttl > 0:
			locks = append(locks, lookalike{key, "(shared or reentrant)", ttl})
		case err != nil || !isLock(ttl, value):
			continue
		default:
			who := owner.Show(value)
			if strings.HasPrefix(who, "#") {
				who = "(of another library)"
			}
			locks = append(locks, lookalike{key, who, ttl})
		}
	}
	marked, markErr := setsOfHolds(ctx, c, sets)
	if err == nil || isReply(err) {
		err = cmp.Or(markErr, err)
	}
	return append(locks, marked...), err
}

// setsOfHolds returns those keys, among keys that are no strings, that are sets of holds. A key that can't be read
// counts as one.
func setsOfHolds(ctx context.Context, c redis.UniversalClient, keys []lookalike) ([]lookalike, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	marks := make([]*redis.FloatCmd, len(keys))
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range keys {
			marks[i] = p.ZScore(ctx, k.key, holdsMark)
		}
		return nil
	})
	n := 0
	for i, k := range keys {
		if err := marks[i].Err(); !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			keys[n] = k
			n++
		}
	}
	return keys[:n], err
}

// isLock reports whether a string with this ttl may be a plain lock.
func isLock(ttl time.Duration, value string) bool { return ttl > 0 && isOwner(value) }

func (s *membership) answers(i int) bool { return s.members[i].err == nil }

func (s *membership) reads(i int) bool { return s.answers(i) && s.members[i].unread == nil }

// isDown reports whether this is the name of a master that does not answer at all. Other findings about it have the
// same cause, and it may be the reason for the exchange. A master that answers and refuses this client is another
// matter.
func (s *membership) isDown(names string) bool {
	if names == "" {
		return false
	}
	for name := range strings.SplitSeq(names, ", ") {
		i := slices.IndexFunc(s.fleet.all, func(m *single.Master) bool { return m.Name() == name })
		if i < 0 || s.answers(i) || isReply(s.members[i].err) {
			return false
		}
	}
	return true
}

// greatest is the greatest generation that any master knows.
func (s *membership) greatest() (g uint64) {
	for i := range s.members {
		g = max(g, s.members[i].generation)
	}
	return g
}

// known is the greatest generation that a quorum of each set knows.
func (s *membership) known() uint64 {
	candidates := []uint64{0}
	for i := range s.members {
		candidates = append(candidates, s.members[i].generation)
	}
	slices.Sort(candidates)
	for _, g := range slices.Backward(candidates) {
		if s.fleet.short(func(i int) bool { return s.members[i].generation >= g }) == nil {
			return g
		}
	}
	return 0
}

// wait returns how long to wait after a step, as far as the locks show.
func (s *membership) wait(generations bool) string {
	longest, partly := time.Duration(0), false
	for i := range s.members {
		longest = max(longest, s.members[i].longest)
		partly = partly || s.members[i].partly
	}
	text := "the longest ttl in use"
	if generations {
		text += " and 10 s"
		longest += freshness
	}
	text += " (at least " + longest.Round(time.Second).String() + " by the locks that are held now"
	if partly {
		text += ", of which not all were seen"
	}
	return text + ")"
}
