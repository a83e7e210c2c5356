// SPDX-License-Identifier: Apache-2.0

package smf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"isthmus/controlplane/pfcp"
)

// exchange names a request and its response: TS 29.244 §6.4 identifies them by the sender's address and the
// sequence number.
type exchange struct {
	peer     netip.AddrPort
	sequence uint32
}

// transaction is a request of ours that waits for its response.
type transaction struct {
	reply chan received // of capacity 1
}

type received struct {
	header pfcp.Header
	body   pfcp.Message
	err    error // it cannot be read
}

// answer is a response of ours, kept as long as its request may be repeated.
type answer struct {
	bytes []byte
	until time.Time
}

// ErrNoAnswer: a request was repeated N1 times without an answer.
var ErrNoAnswer = errors.New("no answer")

const sequenceMask = 0xffffff

// request sends a message and waits for the response, repeating it every T1, N1 times at most (TS 29.244 §6.4).
func (c *Client) request(ctx context.Context, to netip.AddrPort, h pfcp.Header, m pfcp.Message) (pfcp.Message, error) {
	h.Type, h.Sequence = m.MessageType(), c.sequence.Add(1)&sequenceMask
	b, err := pfcp.Encode(h, m)
	if err != nil {
		return nil, err
	}
	key, t := exchange{to, h.Sequence}, &transaction{reply: make(chan received, 1)}
	c.mu.Lock()
	c.pending[key] = t
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, key)
		c.mu.Unlock()
	}()
	c.Counters.Requests.Add(1)
	timer := time.NewTimer(c.opt.T1)
	defer timer.Stop()
	for sent := 0; ; sent++ {
		if sent > c.opt.N1 {
			c.Counters.Unanswered.Add(1)
			return nil, fmt.Errorf("%s did not answer the request of type %d: %w", to, h.Type, ErrNoAnswer)
		}
		if sent > 0 {
			c.Counters.Resent.Add(1)
			timer.Reset(c.opt.T1)
		}
		c.send(b, to) // a failure is like a lost packet: the next round may go better
		select {
		case r := <-t.reply:
			return r.body, expect(h.Type, r)
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, ErrClosed
		}
	}
}

// expect refuses a response of another kind than the request's; responses follow their requests by one (TS 29.244
// §7.3).
func expect(request pfcp.MessageType, r received) error {
	if r.err != nil {
		return fmt.Errorf("the answer cannot be read: %w", r.err)
	}
	if r.header.Type == pfcp.VersionNotSupportedResponseType {
		return errors.New("the peer does not speak this version of PFCP")
	}
	if r.header.Type != request+1 {
		return fmt.Errorf("the answer to a request of type %d is of type %d", request, r.header.Type)
	}
	return nil
}

// complete hands a response to the request that waits for it.
func (c *Client) complete(from netip.AddrPort, r received) {
	c.mu.Lock()
	t := c.pending[exchange{from, r.header.Sequence}]
	c.mu.Unlock()
	if t == nil {
		c.Counters.Stray.Add(1)
		return
	}
	select {
	case t.reply <- r:
	default: // the second answer to a repeated request
		c.Counters.Stray.Add(1)
	}
}

// cached sends the answer that an earlier copy of the request had, if there is one.
func (c *Client) cached(from netip.AddrPort, sequence uint32) bool {
	c.mu.Lock()
	a, found := c.answered[exchange{from, sequence}]
	c.mu.Unlock()
	if !found || time.Now().After(a.until) {
		return false
	}
	c.Counters.Repeated.Add(1)
	c.send(a.bytes, from)
	return true
}

// respond answers a request and remembers the answer.
func (c *Client) respond(to netip.AddrPort, request pfcp.Header, seid uint64, m pfcp.Message) {
	h := pfcp.Header{Type: m.MessageType(), Sequence: request.Sequence, HasSEID: request.HasSEID, SEID: seid}
	b, err := pfcp.Encode(h, m)
	if err != nil {
		c.opt.Log.Error("cannot encode an answer", "type", h.Type, "error", err)
		return
	}
	c.mu.Lock()
	c.answered[exchange{to, request.Sequence}] = answer{b, time.Now().Add(c.memory())}
	c.mu.Unlock()
	c.send(b, to)
}

// memory is how long a request may be repeated by a peer with timers like ours, and a little longer.
func (c *Client) memory() time.Duration { return time.Duration(c.opt.N1+2) * c.opt.T1 }

// keep sends heartbeats and forgets old answers until the client is closed.
func (c *Client) keep() {
	every := c.memory()
	if c.opt.Heartbeat > 0 {
		every = min(every, c.opt.Heartbeat)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-c.done:
			return
		case now := <-ticker.C:
			c.mu.Lock()
			for key, a := range c.answered {
				if now.After(a.until) {
					delete(c.answered, key)
				}
			}
			c.mu.Unlock()
			c.beat(now)
		}
	}
}
