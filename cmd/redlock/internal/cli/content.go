package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// sight is the answer of one master about a lock.
type sight struct {
	reply   single.Reply
	err     error
	holds   []single.Request // each releases one hold of a lock with several
	notLock string           // why the value is no lock; "" if it may be one
}

func (s sight) held() bool { return s.err == nil && s.reply.Outcome == single.Granted }

var (
	// ownerForm is the form of other implementations' owners: a short printable random text.
	ownerForm = lazily(`^[[:graph:]]{1,255}$`)
	// dataForm matches characters that data have and owners do not: quotes and brackets.
	dataForm = lazily("[{}\\[\\]<>\"'`\\\\]")
	// holdForm is a hold of a shared or reentrant lock.
	holdForm = lazily(`(?s)^([rw]):(.*):([^:]+)$`)
)

// inspectKey asks a master who holds key, and judges whether its value is a lock.
func inspectKey(ctx context.Context, m *single.Master, key string) (s sight) {
	s.reply, s.err = m.Ask(ctx, single.Request{Op: single.Inspect, Keys: []string{key}})
	taken := redis.HasErrorPrefix(s.err, "WRONGTYPE")
	if !taken && !s.held() {
		return s
	}
	kind, err := m.Client().Type(ctx, key).Result()
	switch s.err = err; {
	case err != nil:
	case taken:
		s.reply = single.Reply{Outcome: single.Granted, Key: key}
		s.reply.TTL, s.err = m.Client().PTTL(ctx, key).Result()
		if s.notLock = "a " + kind; kind == "zset" {
			s.notLock = "a sorted set of something else than holds"
		}
	case kind == "zset":
		s.holds, s.err = holdsOf(ctx, m, key)
	case s.reply.TTL >= 0 && s.reply.Holds != nil: // one hold, stored as a string
		s.holds, s.err = loneHoldOf(ctx, m, key)
	case s.reply.TTL < 0:
		s.notLock = "a string that never expires"
	case !isOwner(s.reply.Holder):
		s.notLock = "a string that is no owner"
	}
	return s
}

// isOwner reports whether a value can be a plain lock's. Our own may contain brackets and a text of any bytes: of locks
// that publish something, and of keys that are kept after their release.
func isOwner(value string) bool {
	return owner.Made(value) || ownerForm().MatchString(value) && !dataForm().MatchString(value)
}

// holdsOf returns the release of each hold of a shared or reentrant lock.
func holdsOf(ctx context.Context, m *single.Master, key string) ([]single.Request, error) {
	members, err := m.Client().ZRange(ctx, key, 0, -1).Result()
	var holds []single.Request
	for _, member := range members { // the others are the mark of the set, and claims
		if parts := holdForm().FindStringSubmatch(member); parts != nil {
			kind := map[string]single.Kind{"r": single.Shared, "w": single.Exclusive}[parts[1]]
			holds = append(holds,
				single.Request{Op: single.Release, Kind: kind, Keys: []string{key}, Owner: parts[2], Hold: parts[3]})
		}
	}
	return holds, err
}

// loneHoldOf returns the release of the only hold of a shared or reentrant lock, or nil if it is gone by now.
func loneHoldOf(ctx context.Context, m *single.Master, key string) ([]single.Request, error) {
	value, err := m.Client().Get(ctx, key).Result()
	hold, ok := single.HoldOf(value)
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"): // others have come
		return holdsOf(ctx, m, key)
	case err != nil && !errors.Is(err, redis.Nil):
		return nil, err
	case !ok:
		return nil, nil
	}
	hold.Keys = []string{key}
	return []single.Request{hold}, nil
}

// ownerName describes an owner: the name in it, and a fingerprint that distinguishes it from others. It hides the
// owner's random part. A reader of that part could release the lock.
func ownerName(value string) string { return holderName(owner.Show(value), owner.Fingerprint(value)) }

// holderName is ownerName for a holder that the library reports.
func holderName(identity, id string) string {
	switch {
	case id == "":
		return "several or a lock of another kind"
	case identity == "#"+id:
		return identity
	default:
		return identity + " #" + id
	}
}

func lifetime(ttl time.Duration) string {
	if ttl < 0 {
		return "for ever"
	}
	return fmt.Sprintf("for another %v", ttl.Round(time.Millisecond))
}
