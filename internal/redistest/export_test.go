package redistest

// RunWith is Run with a source of ports, for the test of a port that somebody else takes first.
var RunWith = runWith
