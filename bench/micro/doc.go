// Package micro has the micro-benchmarks of the parts that a lock cycle is made of, for benchstat:
//
//	go test ./bench/micro -bench . -count 10 > old.txt      and after a change:
//	go test ./bench/micro -bench . -count 10 > new.txt && benchstat old.txt new.txt
//
// Quorum measures this library's own work: whole cycles over masters that answer at once, in memory. Script measures
// one master's work for one request, alone on its connection. Lane measures how many requests a second one master
// handles when callers share its connection. A test compares the figures that do not depend on the machine with
// testdata/baseline.txt: allocations, commands and bytes sent to a master, and reads and writes of this process, also
// of whole cycles over a real master. The program in bench compares rivals.
package micro
