package main

import (
	"slices"
	"testing"
)

func TestTheLargestCircleIsFound(t *testing.T) {
	g := graph{
		"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true},
		"d": {"e": true}, "e": {"d": true}, "f": {"a": true},
	}
	if got, want := g.largestCircle(), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (graph{"a": {"b": true}, "b": {}}).largestCircle(); len(got) != 0 {
		t.Errorf("%v in files that do not use each other", got)
	}
}

func TestOnlyFunctionsThatRanAreCounted(t *testing.T) {
	ran := parse([]byte(module + "/lock.go:3:\tone\t100.0%\n" + module + "/lock.go:9:\ttwo\t0.0%\n" +
		module + "/internal/lane/lane.go:3:\tthree\t12.5%\n" +
		"example.org/x.go:1:\tfour\t100.0%\ntotal\t(statements)\t50.0%\n"))
	p := newPath("acquire", ran)
	if p.functions != 2 || p.files != 2 || p.inRoot != 1 {
		t.Errorf("%+v, want 2 functions in 2 files, 1 in the root", p)
	}
}

func TestAFigureAboveItsBoundIsReported(t *testing.T) {
	b := bounds{
		Default: map[string]int{"circle": 5}, Of: measures{
			"old": {"circle": 9}, "mended": {"circle": 9}, "gone": {"circle": 9},
		},
	}
	found := measures{"new": {"circle": 6}, "fine": {"circle": 5}, "old": {"circle": 9}, "mended": {"circle": 4}}
	broken := b.compare(found)
	slices.Sort(broken)
	want := []string{
		"gone: a bound of circle, which nothing has",
		"mended: circle is 4, so its bound of 9 can go",
		"new: circle is 6, at most 5 is allowed",
	}
	if !slices.Equal(broken, want) {
		t.Errorf("%q, want %q", broken, want)
	}
}
