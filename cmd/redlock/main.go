// Command redlock runs commands under a distributed lock, and shows and repairs the locks on a set of Redis masters.
// `redlock -h` lists its commands.
package main

import (
	"os"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
