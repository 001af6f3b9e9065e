package cli

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// otherNames are the names of these commands in other tools.
var otherNames = map[string]string{
	"lock": "run", "exec": "run", "unlock": "release", "ls": "list", "info": "status", "show": "status",
	"holder": "status",
	"check":  "doctor", "benchmark": "bench", "latency": "bench", "perf": "bench", "completions": "completion",
	"manual": "man",
}

// didYouMean returns the end of a sentence about an unknown name: the name among these that was probably meant; "" if
// there is none.
func didYouMean(name, prefix string, names []string) string {
	best, least := "", len(name)/3+1 // with so many mistakes it is still the same word
	for _, candidate := range names {
		if d := distance(name, candidate); d <= least && d < len(candidate) && (d < least || best == "") {
			best, least = candidate, d
		}
	}
	isBegun := func(candidate string) bool { return len(name) > 1 && strings.HasPrefix(candidate, name) }
	if i := slices.IndexFunc(names, isBegun); best == "" && i >= 0 {
		best = names[i]
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, best)
}

// meantSetting is didYouMean for the name of a setting, as the environment or a file spells it.
func meantSetting(name string, spell func(flag string) string, names []string) string {
	for flag := range explicit {
		if spell(flag) == name && flag != "config" { // which has a variable
			return fmt.Sprintf("; -%s counts only on the command line", flag)
		}
	}
	return didYouMean(name, "", names)
}

// distance is the number of letters to add, remove, change, or swap with the next one, to turn a into b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			changed := last[j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			row[j] = min(last[j]+1, row[j-1]+1, changed)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// undefined matches package flag's error for an unknown flag.
var undefined = lazily(`^flag provided but not defined: -([A-Za-z][A-Za-z-]{0,24})$`)

// suggestion returns the flag that the user may have meant; err reports an unknown flag.
func suggestion(fs *flag.FlagSet, err error) string {
	parts := undefined().FindStringSubmatch(err.Error())
	if parts == nil {
		return ""
	}
	return didYouMean(parts[1], "-", flagsOf(fs))
}

func flagsOf(fs *flag.FlagSet) (names []string) {
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}
