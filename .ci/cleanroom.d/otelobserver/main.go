package main

import (
	"log"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe/otelobserver"
)

func main() {
	observe, err := otelobserver.New(noop.NewMeterProvider().Meter("cleanroom"))
	if err != nil {
		log.Fatal(err)
	}
	observe(redlock.Event{Kind: redlock.EventLost})
}
