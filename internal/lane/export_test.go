package lane

// The lane's limits, by which its tests count.
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
