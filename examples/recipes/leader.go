package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/leader"
)

// lead serves HTTP in every process. Only the leader makes the reports.
func lead(ctx context.Context, locker *redlock.Locker) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String() // a real program gives an address that others can reach
	candidate, err := leader.New(locker, leader.Config{Key: "reports", TTL: 10 * time.Second, Value: address})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", candidate)
	mux.HandleFunc("/reports", func(w http.ResponseWriter, _ *http.Request) {
		if !candidate.IsLeader() {
			http.Error(w, "another process makes the reports", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "reports")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}

	ctx, stop := context.WithCancelCause(ctx)
	go func() { stop(server.Serve(listener)) }() // a process that can't serve does not lead
	defer func() { _ = server.Close() }()
	err = candidate.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		fmt.Println("leading at", address)
		<-ctx.Done() // the leader's work
		return ctx.Err()
	})
	return errors.Join(err, context.Cause(ctx))
}

// campaign works in one process at a time, without a server and without an address.
func campaign(ctx context.Context, locker *redlock.Locker) error {
	election, err := leader.NewElection(locker, "scheduler", 10*time.Second)
	if err != nil {
		return err
	}
	return election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		fmt.Println("leading:", term.Err() == nil)
		<-ctx.Done() // the leader's work
		return ctx.Err()
	})
}
