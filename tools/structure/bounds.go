package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// measures are figures by subject and name: measures["acquire"]["functions"].
type measures map[string]map[string]int

func (m measures) enter(subject, name string, figure int) {
	if m[subject] == nil {
		m[subject] = make(map[string]int)
	}
	m[subject][name] = figure
}

// bounds is bounds.json: a default bound for every subject, and the exceptions.
type bounds struct {
	Default map[string]int
	Of      measures
}

// within fails if a figure is above its bound, if a separate bound is no longer needed, or if there is nothing to
// compare. Bounds only become tighter.
func (m measures) within(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b bounds
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	broken := b.compare(m)
	slices.Sort(broken)
	if len(broken) > 0 {
		return fmt.Errorf("%s:\n%s", file, strings.Join(broken, "\n"))
	}
	return nil
}

func (b *bounds) compare(m measures) (broken []string) {
	for subject, figures := range m {
		for name, figure := range figures {
			bound, own := b.Of[subject][name]
			if !own {
				bound = b.Default[name]
			}
			switch {
			case figure > bound:
				broken = append(broken,
					fmt.Sprintf("%s: %s is %d, at most %d is allowed", subject, name, figure, bound))
			case own && figure <= b.Default[name]:
				broken = append(broken,
					fmt.Sprintf("%s: %s is %d, so its bound of %d can go", subject, name, figure, bound))
			}
		}
	}
	for subject, own := range b.Of {
		for name := range own {
			if _, ok := m[subject][name]; !ok {
				broken = append(broken, fmt.Sprintf("%s: a bound of %s, which nothing has", subject, name))
			}
		}
	}
	return broken
}
