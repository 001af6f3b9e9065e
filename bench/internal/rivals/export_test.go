package rivals

// What redsync's errors are taken for.
var (
	Refused = refused
	Lost    = lost
)
