package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// SmallerPlan is the file in the directory "smaller" of a run's directory with the plan that [Shrink] found.
const SmallerPlan = "plan.yaml"

// Shrink looks for a smaller plan under which the lock is convicted again, by the same oracle. It first ends the plan
// soon after the violation. Then it removes steps: half of them at once, then a quarter, and so on (delta debugging,
// Zeller 1999). It tries each plan in a run, and makes at most so many runs. A run may miss the defect by chance, so a
// second call may find a smaller plan.
//
// Shrink returns the report of the last run that convicted the lock. It writes that run's files and its plan to the
// directory "smaller" in cfg.Dir; the flag -file of redlock-chaos takes the plan. If no smaller plan convicts the lock,
// it returns found and writes nothing.
//
// cfg is the configuration of the run that found the violation. If ctx is done, the search ends early,
// without an error.
func Shrink(ctx context.Context, cfg Config, found *Report, runs int) (*Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return found, err
	}
	first := slices.IndexFunc(found.Violations, func(v oracle.Violation) bool { return !v.Unknown })
	if first < 0 {
		return found, errors.New("chaos: no violation to shrink")
	}
	s := shrinking{cfg: cfg, violation: found.Violations[first], best: found, left: runs}
	p := *found.Plan
	p.Own = cfg.Plan.Own // not in a report that was read from a file
	p, err = s.cutEnd(ctx, p)
	for size := (len(p.Steps) + 1) / 2; err == nil && size >= 1; size /= 2 {
		p, err = s.leaveOut(ctx, p, size)
	}
	return s.best, errors.Join(err, s.keep())
}

type shrinking struct {
	cfg       Config
	violation oracle.Violation
	best      *Report
	left      int
	dir       string // of best, if it is not the run that found the violation
}

// afterViolation is the time from the violation to the end of a shorter plan. Some oracles need it.
const afterViolation = 2 * time.Second

// cutEnd ends the plan soon after the violation.
func (s *shrinking) cutEnd(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	at := plan.Duration(s.violation.At)
	end := at + plan.Duration(afterViolation)
	if end >= p.Duration {
		return p, nil
	}
	shorter := p
	shorter.Duration = end
	shorter.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(step plan.Step) bool { return step.At >= at })
	for i := range shorter.Steps {
		step := &shorter.Steps[i]
		step.For = min(step.For, end-plan.Duration(afterViolation/4)-step.At)
	}
	return s.better(ctx, p, shorter)
}

// leaveOut removes steps, size at a time, if the lock is convicted without them.
func (s *shrinking) leaveOut(ctx context.Context, p plan.Plan, size int) (plan.Plan, error) {
	for from := 0; from < len(p.Steps); {
		without := p
		without.Steps = slices.Delete(slices.Clone(p.Steps), from, min(from+size, len(p.Steps)))
		next, err := s.better(ctx, p, without)
		if err != nil {
			return p, err
		}
		if len(next.Steps) == len(p.Steps) {
			from += size
		}
		p = next
	}
	return p, nil
}

// better returns the smaller plan if the lock is convicted under it, otherwise p.
func (s *shrinking) better(ctx context.Context, p, smaller plan.Plan) (plan.Plan, error) {
	smaller.Defining = nil // some of these may be gone
	cfg := s.cfg
	cfg.Plan, cfg.HTML, cfg.JSON, cfg.JUnit = &smaller, "", "", ""
	if s.left == 0 || ctx.Err() != nil || smaller.Complete() != nil {
		return p, nil //nolint:nilerr // the search is over, or without these steps it is no plan
	}
	cfg.Dir = filepath.Join(s.cfg.Dir, fmt.Sprintf("smaller-%d", s.left))
	cfg.Replay = "redlock-chaos run -file " + filepath.Join(s.cfg.Dir, "smaller", SmallerPlan)
	s.left--
	rep, err := Run(ctx, cfg)
	if err != nil || !s.convicted(rep) {
		return p, errors.Join(err, os.RemoveAll(cfg.Dir))
	}
	last := s.dir
	s.best, s.dir = rep, cfg.Dir
	if last == "" {
		return smaller, nil
	}
	return smaller, os.RemoveAll(last)
}

func (s *shrinking) convicted(rep *Report) bool {
	return slices.ContainsFunc(rep.Violations, func(v oracle.Violation) bool {
		return v.Oracle == s.violation.Oracle && !v.Unknown
	})
}

// keep moves the last convicted run to its final place. It replaces the result of an earlier call.
func (s *shrinking) keep() error {
	if s.dir == "" {
		return nil
	}
	to := filepath.Join(s.cfg.Dir, "smaller")
	text, err := s.best.Plan.YAML()
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, SmallerPlan), text, 0o644)
	}
	if err := errors.Join(err, os.RemoveAll(to), os.Rename(s.dir, to)); err != nil {
		return fmt.Errorf("chaos: the smaller plan: %w", err)
	}
	for kind, name := range s.best.Files {
		s.best.Files[kind] = filepath.Join(to, filepath.Base(name))
	}
	return nil
}
