package single_test

import (
	"encoding/binary"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/single"
)

// replyFrom makes a possible reply of a server from bytes: an array of fields, nested at most once.
func replyFrom(data []byte, depth int) []any {
	var fields []any
	for len(data) > 0 && len(fields) < 8 {
		kind := data[0]
		data = data[1:]
		switch kind % 7 {
		case 0:
			fields = append(fields, int64(int8(kind)))
		case 1:
			var wide [8]byte
			data = data[copy(wide[:], data):]
			fields = append(fields, int64(binary.LittleEndian.Uint64(wide[:])))
		case 2:
			n := min(int(kind), len(data))
			fields, data = append(fields, string(data[:n])), data[n:]
		case 3:
			fields = append(fields, nil)
		case 4:
			fields = append(fields, kind > 100)
		case 5:
			fields = append(fields, float64(kind)/3)
		default:
			if depth > 0 {
				return append(fields, replyFrom(data, depth-1))
			}
		}
	}
	return fields
}

// FuzzReply: decoding any reply of a master does not panic. Only a reply that has a grant's number as its first field
// grants.
func FuzzReply(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 0, 0}, uint8(0))
	f.Add([]byte{
		1, 3, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 9, 'o', 'w', 'n', 'e', 'r', '.',
		'.', '.', '.',
	}, uint8(0))
	f.Add([]byte{1, 2, 0, 0, 0, 0, 0, 0, 0, 6, 1}, uint8(0))
	f.Add([]byte{3, 4, 5}, uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, shape uint8) {
		fields := replyFrom(data, 1)
		var value any = fields
		switch shape % 4 {
		case 1:
			value = string(data)
		case 2:
			value = nil
		case 3:
			value = map[any]any{"": fields}
		}
		reply, err := single.Decode(value)
		if err != nil {
			if reply != (single.Reply{}) {
				t.Errorf("an error with a reply: %+v, %v", reply, err)
			}
			return
		}
		if len(fields) == 0 {
			t.Fatalf("%v was understood as %+v", value, reply)
		}
		first, isNumber := fields[0].(int64)
		want := single.Refused
		switch {
		case !isNumber:
			t.Fatalf("%v was understood as %+v", value, reply)
		case first == 1 || first == 3:
			want = single.Granted
		case first == 2:
			want = single.Repaired
		}
		if reply.Outcome != want {
			t.Errorf("%v is outcome %d, want %d", value, reply.Outcome, want)
		}
	})
}

// clusterTag is the part of a key that decides its slot, exactly as the specification of Redis Cluster says.
func clusterTag(key string) (tag string, has bool) {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key[open+1 : open+1+end], true
		}
	}
	return key, false
}

func clusterSlot(key string) uint16 {
	key, _ = clusterTag(key)
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

// FuzzBeside: a name that belongs to a key lives in the key's Cluster slot, keeps its prefix, which an ACL pattern
// matches, and belongs to no other key.
func FuzzBeside(f *testing.F) {
	for _, key := range []string{
		"", "a", "{a}", "orders:42", "{tag}key", "x{tag}y{z}", "{}", "{}a", "a}b", "}{", "{{a}}", "{a", "a{b}c",
		"\x00\xff",
	} {
		f.Add(key, "{other}")
		f.Add(key, key+"}")
	}
	f.Fuzz(func(t *testing.T, key, other string) {
		for _, prefix := range []string{single.QueuePrefix, single.CounterPrefix} {
			name := single.Beside(prefix, key)
			if !strings.HasPrefix(name, prefix) || !strings.Contains(name, key) {
				t.Errorf("%q of %q", name, key)
			}
			if key != "" && clusterSlot(name) != clusterSlot(key) {
				t.Errorf("%q is in slot %d, %q in %d", key, clusterSlot(key), name, clusterSlot(name))
			}
			if single.Beside(prefix, other) == name && other != key {
				t.Errorf("%q and %q share %q", key, other, name)
			}
		}
	})
}

// FuzzDial: a URL is accepted or refused, without a panic. Neither the error nor the master's name ever contains the
// password, wherever it is in a broken URL.
func FuzzDial(f *testing.F) {
	for _, seed := range []string{
		"redis://user:PASSWORD@127.0.0.1:6379/0", "rediss://:PASSWORD@host", "redis://user:PASSWORD@host:port",
		"redis://u:PASSWORD@[::1",
		"PASSWORD", "redis://u:PASSWORD/x@host", "redis://u:PASSWORD#@host", "redis://u:%zzPASSWORD@host",
		"http://u:PASSWORD@host",
		"unix://u:PASSWORD@/tmp/sock?db=1", "redis://host/PASSWORD", "redis://u:PASSWORD@host?dial_timeout=PASSWORD",
		"redis://u:PASSWORD@host:1,host:2", "redis://u:PASSWORD@host/0?x=1", "\x00redis://u:PASSWORD@",
		"redis://PASSWORD@host",
		"valkey://u:PASSWORD@host:port",
	} {
		f.Add(seed, "secret-0123456789")
	}
	f.Fuzz(func(t *testing.T, template, secret string) {
		if len(secret) < 8 || !strings.Contains(template, "PASSWORD") ||
			strings.Contains(strings.ReplaceAll(template, "PASSWORD", ""), secret) {
			return
		}
		raw := strings.ReplaceAll(template, "PASSWORD", url.PathEscape(secret))
		for _, rawURL := range []string{raw, strings.ReplaceAll(template, "PASSWORD", secret)} {
			m, err := single.Dial(rawURL, single.Options{})
			if err != nil {
				if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), url.PathEscape(secret)) {
					t.Errorf("%q: %v", rawURL, err)
				}
				continue
			}
			inHost := false // the address is the master's name, and not a secret
			if u, err := url.Parse(rawURL); err == nil {
				inHost = strings.Contains(strings.ToLower(u.Host+u.Path), strings.ToLower(secret))
			}
			if !inHost && strings.Contains(m.Name(), secret) {
				t.Errorf("%q is called %q", rawURL, m.Name())
			}
			must(t, m.Close())
		}
	})
}
