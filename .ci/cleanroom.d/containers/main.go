package main

import (
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/containers"
)

func main() { fmt.Println(len(containers.Registry()) > 0) }
