package rivals

// The outcomes of redsync's errors.
var (
	Refused = refused
	Lost    = lost
)
