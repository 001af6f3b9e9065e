package subject

import (
	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/bench/internal/names"
)

// All returns the subjects in the order of the tables, those with separate servers last.
func All() []Subject {
	return []Subject{
		Redlock(), Redsync(), RedsyncFailFast(), RedsyncMutex(), Rueidis(), GoRedisFanout(), RedislockSingle(), Etcd(),
		EtcdMemory(), Postgres(),
	}
}

// Plain is the kind that the others are compared with.
const Plain = "plain"

// Kinds returns this library's kinds of hold, the plain one first.
func Kinds() []Variant {
	return []Variant{
		{Kind: Plain, Subject: Redlock()},
		{Kind: "two keys", Subject: redlockPair{Redlock()}},
		{Kind: "fenced", Subject: Redlock(redlock.Fenced())},
		{Kind: "shared", Subject: Redlock(redlock.Shared())},
		{Kind: "exclusive", Subject: Redlock(redlock.Exclusive())},
		// All workers share one owner; that costs the same, because no two workers use the same key.
		{Kind: "reentrant", Subject: Redlock(redlock.Reentrant("bench"))},
	}
}

// Names returns the names of all subjects.
func Names() []string { return names.Of(All(), Subject.Name) }

// Find returns the named subjects in the order of All; no names mean all.
func Find(wanted []string) ([]Subject, error) {
	return names.Find("subject", All(), Subject.Name, wanted)
}
