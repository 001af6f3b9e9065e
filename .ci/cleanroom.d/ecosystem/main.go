package main

import (
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/asynqlock"
	"github.com/seed-624411e5/redlock/ecosystem/gocronlock"
)

func main() {
	var locker *redlock.Locker
	each, err := gocronlock.New(locker, time.Minute, nil)
	if err != nil {
		log.Fatal(err)
	}
	_ = gocron.WithDistributedLocker(each)
	_ = asynqlock.OneAtATime(locker, time.Minute, nil)
}
