package lane

// The lane's limits, for its tests.
const (
	MaxBatch    = maxBatch
	MaxQueue    = maxQueue
	MaxInFlight = maxInFlight
	BatchWindow = batchWindow
	DownAfter   = downAfter
	ProbePause  = probePause
	MeetTime    = meetTime
	Floor       = silenceFloor
	MaxExtras   = maxExtras
)
