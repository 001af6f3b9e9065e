package redistest

// RunWith is Run with a source of ports, for the test of a port that another program takes first.
var RunWith = runWith
