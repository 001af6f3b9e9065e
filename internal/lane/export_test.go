package lane

// The lane's limits, for its tests.
const (
	MaxBatch    = maxBatch
	MaxQueue    = maxQueue
	MaxInFlight = maxInFlight
	BatchWindow = batchWindow
	DownAfter   = downAfter
	ProbePause  = probePause
	Floor       = silenceFloor
	MaxExtras   = maxExtras
)
