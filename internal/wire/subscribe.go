package wire

import (
	"errors"
	"fmt"
	"time"
)

// Subscription is a connection that listens to a channel.
type Subscription struct {
	conn    *Conn
	channel string
}

// ErrSilent says that no message came in time. The subscription goes on.
var ErrSilent = errors.New("nothing was published")

// expectMessage describes the messages of a subscription. A message is the name of a key. A text that is longer than
// any sensible key is skipped.
var expectMessage = Expect{
	Kinds: Of(Status, Number, Text, Null, Array, Map, Other, Push), Items: 1024, Text: 1 << 20,
	Depth: 6,
}

// Subscribe listens to a channel. The connection must not be used for anything else from then on. The first message
// confirms the subscription.
func (c *Conn) Subscribe(channel string, deadline time.Time) (*Subscription, error) {
	if err := c.Send(AppendCommand(nil, "subscribe", channel), deadline); err != nil {
		return nil, err
	}
	return &Subscription{conn: c, channel: channel}, nil
}

// Message is a message of a subscription.
type Message struct {
	// Subscribed: the server has confirmed the subscription. Later publications arrive.
	Subscribed bool
	// Published: Payload was published.
	Published bool
	Payload   string
}

// Next waits for the next message for patience, and for the rest of a message that has begun for the same time again.
// The zero Message is the answer to a ping, or an unknown message.
func (s *Subscription) Next(patience time.Duration) (Message, error) {
	c := s.conn
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return Message{}, err
	}
	if _, err := c.reader.in.Peek(1); err != nil { // a deadline that passes here leaves no half-read message
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

// Ping asks the server for a sign of life.
func (s *Subscription) Ping(deadline time.Time) error {
	return s.conn.Send(AppendCommand(nil, "ping"), deadline)
}

// Close closes the connection; a waiting Next returns.
func (s *Subscription) Close() error { return s.conn.Close() }
