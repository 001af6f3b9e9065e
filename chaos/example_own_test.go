package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// crowded is an additional fault: other programs put many keys into a master, and remove them again.
var crowded = plan.Fault{
	Name: "crowded", Text: "other programs keep many keys there", Where: plan.OnMaster, Lasts: true,
	Leaves: masters.FullService,
	Inject: func(ctx context.Context, on plan.Target) (masters.Injection, error) {
		var all []*redis.Client
		heal := func(ctx context.Context) error {
			var err error
			for _, client := range all {
				err = errors.Join(err, client.Unlink(ctx, "others").Err(), client.Close())
			}
			return err
		}
		most := int64(0)
		for _, m := range on.Masters {
			reach, err := endpoint.Options(on.Fleet.Reach()[m])
			if err != nil {
				return masters.Injection{}, errors.Join(err, heal(ctx))
			}
			client := redis.NewClient(reach)
			all = append(all, client)
			for i := range 1000 {
				if most, err = client.LPush(ctx, "others", i).Result(); err != nil {
					return masters.Injection{}, errors.Join(err, heal(ctx))
				}
			}
		}
		return masters.Injection{Observed: fmt.Sprintf("a list has %d elements", most), Heal: heal}, nil
	},
}

// bounded is an oracle of our own: no client waits for a minute.
var bounded = chaos.Oracle{
	Name: "bounded-wait", Text: "an acquisition that took a minute or more",
	Judge: func(v *history.View) []oracle.Violation {
		var found []oracle.Violation
		for i := range v.Attempts {
			if a := &v.Attempts[i]; a.Granted() && a.Return-a.Call >= int64(time.Minute) {
				found = append(found, oracle.Violation{
					Key: a.Key, At: a.Call, Attempts: []uint64{a.ID}, Text: fmt.Sprintf("client %d waited for %v",
						a.Client, time.Duration(a.Return-a.Call)),
				})
			}
		}
		return found
	},
}

// A plan names a fault of the caller's own like any other, and an oracle of the caller's own judges the run with the
// others.
func Example_ownFaultAndOracle() {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ours, err := plan.Parse([]byte(`
name: crowded-masters
inside: true
duration: 2s
steps:
  - {at: 300ms, for: 1s, fault: crowded, masters: [1, 3]}
`), crowded)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := chaos.Run(context.Background(),
		chaos.Config{Plan: ours, Oracles: []chaos.Oracle{bounded}, TTL: 10 * time.Second, Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("observed:", report.Observed["crowded"])
	fmt.Println("judged by:", report.OwnOracles)
	fmt.Println("violations:", report.Verdict == "violation")
	// Output:
	// observed: a list has 1000 elements
	// judged by: map[bounded-wait:an acquisition that took a minute or more]
	// violations: false
}
