package docs_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/testnames"
)

// hazardTest is the name of a test of one hazard or two: TestHazard43And63OnlyTheExactReplyGrants.
var hazardTest = regexp.MustCompile(`^TestHazard(\d+)(?:And(\d+))?`)

// unnamed are those tests of hazards that the row of their hazard does not name.
func unnamed(document string, tests []string) []string {
	rows := make(map[int]string)
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| .*$`).FindAllStringSubmatch(document, -1) {
		n, _ := strconv.Atoi(m[1])
		rows[n] = m[0]
	}
	var missing []string
	for _, test := range tests {
		of := hazardTest.FindStringSubmatch(test)
		if of == nil {
			continue
		}
		for _, number := range of[1:] {
			if n, err := strconv.Atoi(number); err == nil && !strings.Contains(rows[n], "`"+test+"`") {
				missing = append(missing, test)
			}
		}
	}
	return missing
}

// Who looks a hazard up finds all that guards against it.
func TestEveryTestOfAHazardIsNamedByItsRow(t *testing.T) {
	var tests []string
	for name := range testnames.Under(t, "..") {
		tests = append(tests, name)
	}
	slices.Sort(tests)
	if !slices.ContainsFunc(tests, hazardTest.MatchString) {
		t.Fatal("there are no tests of hazards: this test shows nothing")
	}
	for _, name := range unnamed(read(t, "evidence/hazards.md"), tests) {
		t.Errorf("hazards.md does not name %s in the row of its hazard", name)
	}
}

// The negative control.
func TestAnUnnamedTestOfAHazardIsNoticed(t *testing.T) {
	document := "| 4 | x | y | `TestHazard04One` |\n| 43 | x | y | `TestHazard43And63Both` |\n| 63 | x | y | " +
		"`TestHazard04Two`, `TestHazard63Alone` |\n"
	got := unnamed(document,
		[]string{
			"TestHazard04One", "TestHazard04Two", "TestHazard05Three", "TestHazard43And63Both", "TestHazard63Alone",
			"TestOther",
		})
	if want := []string{"TestHazard04Two", "TestHazard05Three", "TestHazard43And63Both"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// unlisted are the tests in Go sources that a document does not name.
func unlisted(document, sources string) (missing []string) {
	for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Z]\w+)\(t `).FindAllStringSubmatch(sources, -1) {
		if m[1] != "TestMain" && !strings.Contains(document, "`"+m[1]+"`") {
			missing = append(missing, m[1])
		}
	}
	return missing
}

// Who looks for a scenario of another library finds the test of it, and each test there is one.
func TestEveryScenarioOfOthersIsListed(t *testing.T) {
	sources := read(t, "../internal/scenarios/libraries_test.go")
	if n := strings.Count(sources, "\nfunc Test"); n < 7 {
		t.Fatalf("there are %d tests: this test shows little", n)
	}
	for _, name := range unlisted(read(t, "evidence/scenarios.md"), sources) {
		t.Errorf("scenarios.md does not name %s", name)
	}
	if got := unlisted("`TestOne`",
		"\nfunc TestOne(t *testing.T) {\nfunc TestTwo(t *testing.T) {"); !slices.Equal(got, []string{"TestTwo"}) {
		t.Errorf("%q, want the one that is not named", got)
	}
}
