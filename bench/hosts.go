package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// hosts are the servers of the subjects that do not use the masters.
type hosts struct {
	fleets map[string]*fleet.Fleet
	// facts say which servers run and which subjects are left out.
	facts []string
}

// host starts the servers of subjects that need other servers than Redis masters. It returns the subjects that can take
// part. It leaves out a subject if its server is not installed. If the masters run elsewhere, it leaves out all of
// these subjects, because their servers would be here. It starts only servers that a scenario uses. If it fails, no
// server is left running.
func host(ctx context.Context, cfg config, here bool) (hosts, []subject.Subject, error) {
	h := hosts{fleets: map[string]*fleet.Fleet{}}
	asked := slices.ContainsFunc(cfg.scenarios, func(s scenario.Scenario) bool { return s.Hosted })
	var part []subject.Subject
	for _, s := range cfg.Subjects {
		hosted, ok := s.(subject.Hosted)
		if !ok {
			part = append(part, s)
			continue
		}
		if !asked {
			continue
		}
		if !here {
			h.facts = append(h.facts, s.Name()+" is left out: its servers would run here, and the masters run already")
			continue
		}
		f, err := hosted.Start(ctx)
		switch {
		case errors.Is(err, backend.ErrNotInstalled):
			h.facts = append(h.facts, fmt.Sprintf("%s is left out: %v", s.Name(), err))
			continue
		case err != nil:
			return hosts{}, nil, errors.Join(fmt.Errorf("start the servers of %s: %w", s.Name(), err), h.close())
		}
		h.fleets[s.Name()] = f
		if fact := "server " + f.Text(); !slices.Contains(h.facts, fact) {
			h.facts = append(h.facts, fact)
		}
		part = append(part, s)
	}
	return h, part, nil
}

func (h hosts) close() error {
	var errs []error
	for _, f := range h.fleets {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
