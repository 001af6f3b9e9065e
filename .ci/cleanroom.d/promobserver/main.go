package main

import (
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe/promobserver"
)

func main() {
	o, err := promobserver.New(prometheus.NewRegistry())
	if err != nil {
		log.Fatal(err)
	}
	o.Observe(redlock.Event{Kind: redlock.EventLost})
}
