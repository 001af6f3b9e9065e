// Package micro has the micro-benchmarks of the parts that a lock cycle is made of, for benchstat:
//
//	go test ./bench/micro -bench . -count 10 > old.txt      and after a change:
//	go test ./bench/micro -bench . -count 10 > new.txt && benchstat old.txt new.txt
//
// Quorum is what this library adds itself: whole cycles over masters that answer at once, in memory. Script is what one
// master needs for one request, alone on its connection. Lane is how many requests a second go through one master when
// callers share its connection. What does not depend on the machine, allocations and what a master is sent, is compared with
// testdata/baseline.txt by the package's test. Rivals are compared by the program in bench, not here.
package micro
