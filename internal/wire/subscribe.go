package wire

import (
	"errors"
	"fmt"
	"time"
)

// Subscription is a connection on which a channel is listened to.
type Subscription struct {
	conn    *Conn
	channel string
}

// ErrSilent says that nothing came in time. The subscription goes on.
var ErrSilent = errors.New("nothing was published")

// expectMessage is what comes on a subscription. A message is the name of a key; what is longer than any sensible one is
// read past.
var expectMessage = Expect{Kinds: Of(Status, Number, Text, Null, Array, Map, Other, Push), Items: 1024, Text: 1 << 20, Depth: 6}

// Subscribe listens to a channel on a connection that is used for nothing else from now on. The first message says that it
// does.
func (c *Conn) Subscribe(channel string, deadline time.Time) (*Subscription, error) {
	if err := c.Send(AppendCommand(nil, "subscribe", channel), deadline); err != nil {
		return nil, err
	}
	return &Subscription{conn: c, channel: channel}, nil
}

// Message is what came on a subscription.
type Message struct {
	// Subscribed: the server has taken note of the subscription, and what is published from now on arrives.
	Subscribed bool
	// Published: something was published, this.
	Published bool
	Payload   string
}

// Next waits for what comes next: for so long, and for as long again for the rest of what has begun to come. The zero
// Message is the answer to a ping, or something that is none of ours.
func (s *Subscription) Next(patience time.Duration) (Message, error) {
	c := s.conn
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return Message{}, err
	}
	if _, err := c.reader.in.Peek(1); err != nil { // a deadline that passes here leaves nothing half read
		if ended(err) {
			err = ErrSilent
		}
		return Message{}, err
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return Message{}, err
	}
	frame, err := c.reader.frame(&expectMessage)
	if err != nil {
		return Message{}, err
	}
	return s.message(&frame)
}

func (s *Subscription) message(frame *Reply) (Message, error) {
	if err := frame.Err(); err != nil {
		return Message{}, fmt.Errorf("SUBSCRIBE: %w", err)
	}
	items := frame.Items()
	if len(items) != 3 || items[1].Kind() != Text || items[1].Str() != s.channel {
		return Message{}, nil
	}
	switch kind := items[0].Str(); {
	case kind == "subscribe" && items[2].Kind() == Number:
		return Message{Subscribed: true}, nil
	case kind == "message" && items[2].Kind() == Text:
		return Message{Published: true, Payload: items[2].Str()}, nil
	default:
		return Message{}, nil
	}
}

// Ping asks for a sign of life.
func (s *Subscription) Ping(deadline time.Time) error {
	return s.conn.Send(AppendCommand(nil, "ping"), deadline)
}

// Close closes the connection; a Next that waits returns.
func (s *Subscription) Close() error { return s.conn.Close() }
