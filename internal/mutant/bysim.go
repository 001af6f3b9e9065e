package mutant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const (
	// mostSchedules is how many schedules a simulation may run until it notices a mutant.
	mostSchedules = 5000
	// wholeSchedules is how many schedules the simulation first runs with the unchanged library. It also runs the
	// schedule that shows the mutant.
	wholeSchedules = 200
)

// sim judges by a simulation.
func (c *Checker) sim(ctx context.Context, m Mutant, s Sim, dir string) (v Verdict, note string, took time.Duration,
	err error,
) {
	name, first := cmp.Or(s.Name, m.Name), max(1, s.First)
	program, err := c.onceWhole("the simulator", func() (string, error) {
		return Mutant{}.Build(ctx, filepath.Join(c.Dir, "the simulator"), SimCommand)
	})
	if err != nil {
		return Unknown, "", 0, err
	}
	harmless := func(first uint64, n int) error {
		switch status, out, err := simulate(ctx, program, name, first, n, "-unbroken"); {
		case err != nil:
			return err
		case status != 0:
			return fmt.Errorf("without the mutant the simulation ends with status %d:\n%s", status, tail(out))
		}
		return nil
	}
	if err := harmless(first, wholeSchedules); err != nil {
		return Unknown, "", 0, err
	}
	began := time.Now()
	broken, err := m.Build(ctx, dir, SimCommand)
	if err != nil {
		return Unknown, "", 0, err
	}
	file := filepath.Join(dir, "result.json")
	status, out, err := simulate(ctx, broken, name, first, mostSchedules, "-whole", "-json", file)
	if err != nil {
		return Unknown, "", 0, err
	}
	took = time.Since(began)
	seed, note, err := found(s.Oracle, file, status, out)
	if err != nil || seed == 0 {
		return Survived, fmt.Sprintf("nothing in %d schedules", mostSchedules), took, err
	}
	return Caught, note, took, harmless(seed, 1)
}

// simulate runs schedules of a control.
func simulate(ctx context.Context, program, control string, first uint64, n int, flags ...string) (status int,
	out string, _ error,
) {
	var text bytes.Buffer
	args := slices.Concat([]string{
		"-quiet", "-broken", control, "-seed", strconv.FormatUint(first, 10), "-schedules", strconv.Itoa(n),
	}, flags)
	status, err := Execute(ctx, "", program, args, &text, &text)
	return status, text.String(), err
}

// found reads a simulation's result: the seed (0: nothing was found) and a sentence.
func found(oracle, file string, status int, out string) (seed uint64, note string, _ error) {
	if status != 0 && status != 1 {
		return 0, "", fmt.Errorf("the simulation has ended with status %d:\n%s", status, tail(out))
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, "", err
	}
	var r struct {
		Seed  uint64                          `json:"failed_seed"`
		Found []struct{ Oracle, Text string } `json:"found"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return 0, "", fmt.Errorf("%s: %w", file, err)
	}
	for _, v := range r.Found {
		if v.Oracle == oracle {
			return r.Seed, fmt.Sprintf("seed %d: %s", r.Seed, v.Text), nil
		}
	}
	if len(r.Found) > 0 {
		return 0, "", fmt.Errorf("oracle %s has found something, and not %s", r.Found[0].Oracle, oracle)
	}
	return 0, "", nil
}
