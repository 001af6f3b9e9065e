// Command recipes runs the recipes of the page start/recipes in the repository's docs: recipes NAME URL...
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/seed-624411e5/redlock"
)

var recipes = map[string]func(ctx context.Context, locker *redlock.Locker) error{
	"nightly":  nightly,
	"lead":     lead,
	"campaign": campaign,
	"work":     work,
	"ship":     ship,
	"read":     readCatalogue,
	"write":    writeCatalogue,
	"transfer": transfer,
	"count":    count,
}

func main() {
	if len(os.Args) < 3 || recipes[os.Args[1]] == nil {
		log.Fatal("usage: recipes NAME URL...")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[2:], recipes[os.Args[1]])
	interrupted := ctx.Err() != nil
	stop()
	if err != nil && !interrupted {
		log.Fatal(err)
	}
}

// run gives the work a Locker, the only one of the program.
func run(ctx context.Context, masters []string, work func(ctx context.Context, locker *redlock.Locker) error) error {
	locker, err := redlock.Dial(ctx, masters, redlock.Options{})
	if err != nil {
		return err
	}
	err = work(ctx, locker)

	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, locker.Close(closing))
}
