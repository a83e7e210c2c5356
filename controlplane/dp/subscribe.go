// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"context"
	"fmt"

	"isthmus/api"
)

// Subscription is a connection of its own for the data plane's events. One goroutine calls Next.
type Subscription struct {
	c     *Client
	first uint32 // sequence of the request that the events answer
}

// Subscribe connects and asks for all unacknowledged and future events.
func Subscribe(ctx context.Context, path string) (*Subscription, error) {
	c, err := Dial(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := c.Subscribe()
	if err != nil {
		c.Close()
	}
	return s, err
}

// Subscribe makes a subscription of an open connection, which it then owns.
func (c *Client) Subscribe() (*Subscription, error) {
	first, err := c.tell(api.TypeSubscribe)
	if err != nil {
		return nil, err
	}
	return &Subscription{c, first}, nil
}

// BootID is the data plane's; event sequences are of one boot.
func (s *Subscription) BootID() uint64 { return s.c.hello.BootID }

// Next waits for events. It fails when the connection has ended, or ctx has.
func (s *Subscription) Next(ctx context.Context) ([]api.Event, error) {
	for {
		f, err := s.c.streamed(ctx, api.TypeSubscribe, s.first)
		if err != nil {
			return nil, err
		}
		events, err := rows[api.Event](f.body)
		if err != nil {
			return nil, s.c.broken(err)
		}
		if len(events) > 0 {
			return events, nil
		}
	}
}

// Sends a message without waiting for an answer, and returns its sequence.
func (c *Client) tell(typ uint16, parts ...[]byte) (uint32, error) {
	_, done, err := c.turn(context.Background(), requestTimeout)
	if err != nil {
		return 0, err
	}
	defer done()
	sequence, err := c.send(typ, parts...)
	if err != nil {
		return 0, err
	}
	if err := c.w.Flush(); err != nil {
		return 0, c.broken(err)
	}
	return sequence, nil
}

// streamed waits for one more answer to such a request.
func (c *Client) streamed(ctx context.Context, typ uint16, first uint32) (frame, error) {
	for {
		var f frame
		select {
		case f = <-c.reply:
		case <-c.done:
			select { // what came before the end
			case f = <-c.reply:
			default:
				return frame{}, c.err
			}
		case <-ctx.Done():
			return frame{}, ctx.Err()
		}
		if f.Flags&api.FError != 0 {
			if err := refusal(f.body); err != nil {
				return frame{}, err
			}
			continue
		}
		if f.Type != typ || f.Sequence != first {
			return frame{}, c.broken(fmt.Errorf("%w: reply of type %d to a request of type %d",
				ErrProtocol, f.Type, typ))
		}
		return f, nil
	}
}

// Acknowledge confirms all events up to a sequence.
func (s *Subscription) Acknowledge(sequence uint64) error {
	a := api.Acknowledge{Sequence: sequence}
	_, err := s.c.tell(api.TypeAcknowledge, api.Body(&a))
	return err
}

// Close ends the connection.
func (s *Subscription) Close() error { return s.c.Close() }
