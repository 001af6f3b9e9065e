package single_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// Redis before 6.2 has no ZADD GT, and reports only a syntax error; scripts report the same.
func TestHazard41AnOldServerIsNamedAsSuch(t *testing.T) {
	server := oddServer(t, func(_ int, words []string) string {
		switch words[0] {
		case "set":
			if words[1] == "taken" { // on a free key it is a SET, as on newer servers
				return "$-1\r\n"
			}
			return "+OK\r\n"
		case "zadd":
			return "-ERR syntax error\r\n"
		case "evalsha":
			return "-ERR Error running script (call to f_67145e498fa5f6527cd0e8bd36013c57231b2351): " +
				"@user_script:151: ERR syntax error\r\n"
		}
		return ""
	})
	fenced := acquire("key", "me", time.Minute)
	fenced.Fence, fenced.Token = true, 1
	shared := acquire("taken", "me", time.Minute)
	shared.Kind, shared.Hold = single.Shared, "hold"
	for way, m := range ways(t, server.addr) {
		for name, r := range map[string]*single.Request{"fenced": &fenced, "shared": &shared} {
			c := &single.Call{Request: r}
			m.Do(within(t, patience), []*single.Call{c})
			if c.Err == nil || !strings.Contains(c.Err.Error(), "6.2") || single.Lasts(c.Err) != single.Mendable {
				t.Errorf("%s, %s: error %v, lasts %d", way, name, c.Err, single.Lasts(c.Err))
			}
			if !c.Answered() {
				t.Errorf("%s, %s: it is no reply any more: %v", way, name, c.Err)
			}
		}
	}
}
