package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// identity answers INFO, CONFIG GET and the default user's AUTH. miniredis lacks these commands, or its replies lack
// the fields that an audit of a master needs.
type identity struct {
	mu      sync.Mutex
	runID   string
	started time.Time
	port    int
}

// renew gives the server a new run_id and resets its uptime.
func (i *identity) renew(port int) {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // never fails, says crypto/rand
	i.mu.Lock()
	defer i.mu.Unlock()
	i.runID, i.started, i.port = hex.EncodeToString(id), time.Now(), port
}

// settings are the answers to CONFIG GET. They describe the master's behaviour: Stop keeps all data that was ever
// confirmed, as an append-only file with an fsync for each write would, and nothing is evicted.
var settings = [][2]string{
	{"appendfsync", "always"},
	{"appendonly", "yes"},
	{"maxmemory", "0"},
	{"maxmemory-policy", "noeviction"},
	{"save", ""},
}

// answer runs before every command; true means that it has answered the command. It may run inside a script, while
// miniredis is locked, so it must not call miniredis.
func (i *identity) answer(c *server.Peer, command string, args ...string) bool {
	switch {
	case command == "AUTH" && len(args) == 2 && args[0] == "default":
		c.WriteOK() // without a password any will do, says Redis of the form with a user; miniredis refuses it
		return true
	case command == "INFO":
		c.WriteBulk(i.info(args))
		return true
	case command == "CONFIG" && len(args) > 1 && strings.EqualFold(args[0], "GET"):
		var found [][2]string
		for _, setting := range settings {
			if slices.ContainsFunc(args[1:], func(pattern string) bool { return globs(pattern, setting[0]) }) {
				found = append(found, setting)
			}
		}
		c.WriteMapLen(len(found))
		for _, setting := range found {
			c.WriteBulk(setting[0])
			c.WriteBulk(setting[1])
		}
		return true
	default:
		return false
	}
}

// globs matches as CONFIG GET does, in any case of letters.
func globs(pattern, name string) bool {
	matched, err := path.Match(strings.ToLower(pattern), name)
	return err == nil && matched
}

// info returns the text of INFO for the wanted sections, or for all.
func (i *identity) info(wanted []string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	uptime := time.Since(i.started)
	sections := []struct{ name, lines string }{
		{
			"Server",
			fmt.Sprintf(
				"redis_version:7.0.0\r\nserver_name:miniredis\r\nredis_mode:standalone\r\nprocess_id:%d\r\n"+
					"run_id:%s\r\ntcp_port:%d\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
				os.Getpid(), i.runID, i.port, int(uptime.Seconds()), int(uptime.Hours()/24),
			),
		},
		{"Memory", "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n"},
		{"Persistence", "loading:0\r\naof_enabled:1\r\naof_last_write_status:ok\r\n"},
		{"Replication", "role:master\r\nconnected_slaves:0\r\nmaster_replid2:" + strings.Repeat("0", 40) + "\r\n"},
	}
	var text strings.Builder
	for _, section := range sections {
		if isWanted(section.name, wanted) {
			fmt.Fprintf(&text, "# %s\r\n%s\r\n", section.name, section.lines)
		}
	}
	return text.String()
}

func isWanted(section string, wanted []string) bool {
	if len(wanted) == 0 {
		return true
	}
	return slices.ContainsFunc(wanted, func(w string) bool {
		return slices.ContainsFunc([]string{section, "all", "default", "everything"}, func(s string) bool {
			return strings.EqualFold(s, w)
		})
	})
}
