package sharded_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/sharded"
)

// open makes one Locker over two groups of masters. Each key belongs to one group.
func open(first, second []string) (*sharded.Locker, error) {
	return sharded.New([]sharded.Group{
		{Name: "group-1", URLs: first}, // names decide where keys belong: never change them
		{Name: "group-2", URLs: second},
	}, sharded.Options{})
}

func Example() {
	ctx := context.Background()
	masters, err := embedded.Start(6) // in your program: the URLs of two times three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	locker, err := open(masters.URLs()[:3], masters.URLs()[3:])
	if err != nil {
		fmt.Println(err)
		return
	}
	err = locker.Do(ctx, "orders:42", 10*time.Second, func(context.Context) error {
		fmt.Println("shipping")
		return nil
	})
	fmt.Println(err)
	closing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fmt.Println(locker.Close(closing))
	// Output:
	// shipping
	// <nil>
	// <nil>
}
