package mutant

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// A patch as people read it, and what is read from it.
const example = `locks are worth nothing

sim: within overlap from 7 as other
chaos: bridge overlap 4s
tests: . TestOne TestTwo
crash: panic
within: 3s
sample

--- a/a.go
+++ b/a.go
@@ -1,3 +1,3 @@
 one
-two
+too

@@ -9,1 +9,2 @@
 nine
+ten
--- a/b/b.lua
+++ b/b/b.lua
@@ -1,2 +1,1 @@
 return 1
--- comment
`

func TestAPatchIsRead(t *testing.T) {
	want := Mutant{
		Breaks: "locks are worth nothing",
		Sim:    []Sim{{Name: "other", Profile: "within", Oracle: "overlap", First: 7}},
		Chaos:  []Chaos{{"bridge", "overlap", 4 * time.Second}},
		Tests:  []Tests{{Package: ".", Names: []string{"TestOne", "TestTwo"}, Crash: "panic", Within: 3 * time.Second}},
		Sample: true,
		Edits: []Edit{
			{"a.go", "one\ntwo\n\n", "one\ntoo\n\n"},
			{"a.go", "nine\n", "nine\nten\n"},
			{"b/b.lua", "return 1\n-- comment\n", "return 1\n"},
		},
	}
	got, err := parse(strings.Replace(example, "+too\n\n", "+too\n \n", 1))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if trimmed, err := parse(example); err != nil || !reflect.DeepEqual(trimmed, want) {
		t.Errorf("with a trimmed empty line: %+v, %v", trimmed, err)
	}
}

func TestAPatchThatCannotBeReadIsAnError(t *testing.T) {
	for _, change := range []string{
		"--- a/->---", "sim: within->sim:", "from 7->from x", "from 7->till 7", "overlap 4s->overlap", "4s->4",
		"tests: . TestOne TestTwo->tests: .", "tests:->test:", "3s->3",
	} {
		old, with, _ := strings.Cut(change, "->")
		m, err := parse(strings.ReplaceAll(example, old, with))
		if err == nil {
			t.Errorf("%s: it is read as %+v", change, m)
		}
	}
	broken := Mutant{Name: "m", unread: errUnknown.Error()}
	if changed, err := broken.Apply("."); err == nil {
		t.Errorf("such a mutant changes %v", changed)
	}
}
