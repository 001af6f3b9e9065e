package main

import "testing"

func TestAServerIsCalledByItsName(t *testing.T) {
	for info, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\ngcc_version:12.2.0\r\n":            "Redis 7.0.15",
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n": "Valkey 9.1.2",
		"redis_version:7.4.0\r\ndragonfly_version:df-v1.31.0\r\n":               "Dragonfly df-v1.31.0",
		"nothing": "",
		"":        "",
	} {
		if got := nameOf(info); got != want {
			t.Errorf("of %q: %q, want %q", info, got, want)
		}
	}
}
