package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/gocronlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

// everyHour runs a job every hour, in one of the processes that have this schedule.
func everyHour(ctx context.Context, locker *redlock.Locker, job func()) error {
	lost := func(job string, err error) { log.Printf("%s may have run twice: %v", job, err) }
	each, err := gocronlock.New(locker, time.Minute, lost, redlock.MinHold(30*time.Second))
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(each))
	if err != nil {
		return err
	}
	_, err = scheduler.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(job),
		gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately()))
	if err != nil {
		return errors.Join(err, scheduler.Shutdown())
	}
	scheduler.Start()
	<-ctx.Done()
	return scheduler.Shutdown()
}

func Example() {
	masters, err := embedded.Start(3) // in your program: the URLs of three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	locker, err := redlock.Dial(context.Background(), masters.URLs(), redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	err = everyHour(ctx, locker, func() {
		fmt.Println("reporting")
		stop() // tells the program to stop
	})
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(errors.Join(err, locker.Close(closing)))
	// Output:
	// reporting
	// <nil>
}
