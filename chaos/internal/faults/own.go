package faults

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// canOwn returns why a fault of the caller's own is not available.
func canOwn(f plan.Fault, fleet *masters.Fleet) (err error) {
	defer func() { err = orPanic(err, f.Name+": Can", recover()) }()
	if f.Can == nil {
		return nil
	}
	return f.Can(fleet)
}

// injectOwn brings about a fault of the caller's own. Like any other it counts only if it was observed.
func injectOwn(ctx context.Context, f plan.Fault, on plan.Target) (_ masters.Injection, err error) {
	injected, err := callInject(ctx, f, on)
	if err != nil {
		return masters.Injection{}, err
	}
	heal := func(ctx context.Context) (err error) {
		defer func() { err = orPanic(err, f.Name+": Heal", recover()) }()
		if injected.Heal == nil {
			return nil
		}
		return injected.Heal(ctx)
	}
	switch {
	case injected.Observed == "":
		err = errors.New("not observed: its Injection has no Observed text")
	case f.Lasts && injected.Heal == nil:
		err = errors.New("it lasts, and its Injection has no Heal")
	default:
		return masters.Injection{Observed: injected.Observed, Heal: heal}, nil
	}
	return masters.Injection{}, errors.Join(err, heal(ctx))
}

func callInject(ctx context.Context, f plan.Fault, on plan.Target) (_ masters.Injection, err error) {
	defer func() { err = orPanic(err, f.Name+": Inject", recover()) }()
	return f.Inject(ctx, on)
}

// orPanic turns a panic in a caller's function into an error, so that the run continues to its end and cleans up.
func orPanic(err error, what string, p any) error {
	if p != nil {
		return fmt.Errorf("%s panicked: %v", what, p)
	}
	return err
}
