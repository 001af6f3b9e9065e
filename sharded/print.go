package sharded

import (
	"fmt"
	"log/slog"
	"strconv"
)

// String names the groups.
func (s *Locker) String() string {
	if s.check() != nil {
		return "no locker"
	}
	return fmt.Sprint("locker over ", s.groups)
}

// GoString is String, for %#v.
func (s *Locker) GoString() string { return s.String() }

// LogValue implements [slog.LogValuer].
func (s *Locker) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String names the group. Its URLs, which may hold passwords, are not shown.
func (g Group) String() string { return "group " + strconv.Quote(g.Name) }

// GoString is String, for %#v.
func (g Group) GoString() string { return g.String() }

// LogValue implements [slog.LogValuer].
func (g Group) LogValue() slog.Value { return slog.StringValue(g.String()) }
