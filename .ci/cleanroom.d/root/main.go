// The README's first use of the library, with masters from the command line.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/fence"
	"github.com/seed-624411e5/redlock/observe/slogobserver"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	locker, err := redlock.Dial(ctx, os.Args[1:], redlock.Options{Observer: slogobserver.New(nil)})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx)
	lock, err := locker.Acquire(ctx, "orders:42", 10*time.Second, redlock.Fenced())
	if err != nil {
		log.Fatal(err)
	}
	if err := fence.New(100).Check("orders:42", lock.Token()); err != nil {
		log.Fatal(err)
	}
	if err := lock.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("held and released")
}
