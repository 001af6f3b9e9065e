package masters

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What clients that can give credentials should dial with. Servers without a password accept any from the user
// "default".
const (
	User     = "default"
	Password = "redlock-chaos" // it protects nothing: it is there to be changed
)

const (
	// Credentials gives the clients' user another password and closes all client connections, so that the set-up of
	// every new one is answered with an error. Heal brings the old password back.
	Credentials Action = "credentials"
	// Rights takes the clients' user all rights but to say who it is, and closes all client connections. Heal gives it
	// the rights it had.
	Rights Action = "rights"
)

var credentials = Fault{
	Action: Credentials, Text: "the clients' password is another one and their connections are closed", Needs: Server |
		Consent,
	Lasts: true, act: changePassword,
}

var rights = Fault{
	Action: Rights, Text: "the clients' user has no rights any more and its connections are closed", Needs: Server |
		Consent,
	Lasts: true, act: takeRights,
}

func changePassword(ctx context.Context, c *commands, _ Params) (Injection, error) {
	return c.changeUser(ctx, []string{"resetpass", ">not-" + Password}, func(was []string) []string {
		passwords := slices.DeleteFunc(was, func(rule string) bool { return rule != "nopass" && rule[0] != '#' })
		return append([]string{"resetpass"}, passwords...)
	})
}

func takeRights(ctx context.Context, c *commands, _ Params) (Injection, error) {
	return c.changeUser(ctx, []string{"-@all", "+hello", "+auth"}, func(was []string) []string {
		rights := slices.DeleteFunc(was, func(rule string) bool { return rule[0] != '+' && rule[0] != '-' })
		return append([]string{"-@all"}, rights...)
	})
}

// changeUser applies rules of Redis's ACL to the clients' user and closes their connections. A client must then be
// answered with an error. Heal applies the rules that back returns for the user's former rules.
func (c *commands) changeUser(ctx context.Context, rules []string, back func(was []string) []string) (Injection,
	error,
) {
	user, _ := c.login()
	admin, err := c.officer(ctx)
	if err != nil {
		return Injection{}, err
	}
	name := admin.Options().Username
	dismiss := func(ctx context.Context) error {
		_ = admin.Do(ctx, "ACL", "DELUSER", name).Err() // which ends its connection, perhaps before it is answered
		return admin.Close()
	}
	was, err := userRules(ctx, admin, user)
	if err != nil {
		return Injection{}, errors.Join(err, dismiss(ctx))
	}
	heal := func(ctx context.Context) error {
		err := setUser(ctx, admin, user, back(slices.Clone(was))...)
		if passing(err) {
			return err // it is tried again
		}
		for range mostIdle { // where this client goes by that user, its connections were closed, too
			_ = c.client.Ping(ctx).Err()
		}
		return errors.Join(err, dismiss(ctx))
	}
	if err := setUser(ctx, admin, user, rules...); err != nil {
		return Injection{}, errors.Join(err, heal(ctx))
	}
	n, err := admin.ClientKillByFilter(ctx, "TYPE", "normal", "USER", user).Result()
	if err != nil {
		return Injection{}, errors.Join(err, heal(ctx))
	}
	answer := c.asClient(ctx)
	if !redis.HasErrorPrefix(answer, "WRONGPASS") && !redis.HasErrorPrefix(answer, "NOPERM") {
		return Injection{}, errors.Join(answered("a client", answer), heal(ctx))
	}
	return seen(heal, "%d connections closed, and a new one answered: %v", n, answer), nil
}

// officer is a client that goes by a user made for it, which has all rights while the clients' user does not.
func (c *commands) officer(ctx context.Context) (*redis.Client, error) {
	o := *c.client.Options()
	o.Username, o.Password, o.PoolSize = "redlock-chaos-"+rand.Text(), rand.Text(), 1
	if err := setUser(ctx, c.client, o.Username, "on", ">"+o.Password, "~*", "&*", "+@all"); err != nil {
		return nil, err
	}
	return redis.NewClient(&o), nil
}

func setUser(ctx context.Context, by *redis.Client, name string, rules ...string) error {
	args := []any{"ACL", "SETUSER", name}
	for _, rule := range rules {
		args = append(args, rule)
	}
	return by.Do(ctx, args...).Err()
}

// asClient returns the server's answer to a client with the known credentials.
func (c *commands) asClient(ctx context.Context) error {
	victim := c.dial()
	o := *victim.Options()
	_ = victim.Close()
	o.Username, o.Password = c.login()
	client := redis.NewClient(&o)
	defer client.Close()
	return client.Get(ctx, probe).Err()
}

// userRules returns the ACL rules that define a user.
func userRules(ctx context.Context, by *redis.Client, user string) ([]string, error) {
	list, err := by.ACLList(ctx).Result()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(line string) bool { return strings.HasPrefix(line, "user "+user+" ") })
	if i < 0 {
		return nil, fmt.Errorf("there is no user %s", user)
	}
	return strings.Fields(list[i])[2:], nil
}
