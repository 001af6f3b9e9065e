package oracle

// The names of oracles that need more than a history: looks at the masters, or counts in the harness's process.
const (
	// NameReleased is of releases that released nothing.
	NameReleased = "released"
	// NameOwner is of holds with an owner that no master has.
	NameOwner = "owner"
	// NameKeyspace is of keys that a lock leaves on the masters permanently.
	NameKeyspace = "keyspace"
	// NameLeak is of goroutines which the subject leaves behind.
	NameLeak = "goroutine-leak"
	// NameGrowth is of goroutines, heap or connections that grow with each hold.
	NameGrowth = "growth"
)

// Names lists the names of all oracles.
func Names() []string {
	return []string{
		NameOverlap, NameTokenOrder, NameTokens, NameContinuity, NameForeignRelease, NameDoneAfterBound, NameOrphan,
		NameRegister, NameAvailability, NameLiveness, NameRecovery, NameReentry, NameSharing, NameKept, NameOutage,
		NameOperations, NameContext, NameService, NamePace, NameVictims, NameValidity, NameFaults, NameLeak,
		NameGrowth, NameReleased, NameOwner, NameKeyspace,
	}
}
