package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
)

// A twin run compares two versions of the engine: both run the same schedules, and each schedule draws its faults and
// its times from its seed. If a change keeps the engine's behaviour, the two reports differ only in the time that they
// took.

// timings are the members of a report that differ between two runs of one version. Rows only repeat counts.
var timings = []string{"seconds", "schedules_per_second", "rows"}

// compareNights prints each figure that differs between the reports of two nights. It returns true
// if all figures are equal.
func compareNights(before, after string, stdout io.Writer) (same bool, err error) {
	var reports [2]any
	for i, path := range []string{before, after} {
		encoded, err := os.ReadFile(path)
		if err != nil {
			return false, err // it names the file
		}
		if err := json.Unmarshal(encoded, &reports[i]); err != nil {
			return false, fmt.Errorf("%s: %w", path, err)
		}
	}
	n := differences("night", reports[0], reports[1], stdout)
	if n == 0 {
		fmt.Fprintf(stdout, "the same as %s\n", before)
	}
	return n == 0, nil
}

// differences prints and counts the values below path that are not equal.
func differences(path string, before, after any, stdout io.Writer) (n int) {
	switch a := before.(type) {
	case map[string]any:
		if b, ok := after.(map[string]any); ok {
			names := maps.Clone(a)
			maps.Copy(names, b)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				if !slices.Contains(timings, name) {
					n += differences(path+"."+name, a[name], b[name], stdout)
				}
			}
			return n
		}
	case []any:
		if b, ok := after.([]any); ok && len(a) == len(b) {
			for i := range a {
				n += differences(fmt.Sprintf("%s[%d]", path, i), a[i], b[i], stdout)
			}
			return n
		}
	}
	if reflect.DeepEqual(before, after) {
		return 0
	}
	fmt.Fprintf(stdout, "%s: %v before, %v now\n", path, before, after)
	return 1
}
