// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"context"
	"fmt"

	"isthmus/api"
)

// TraceOrder selects what a trace follows; the counts in Want are filled in from the rest.
type TraceOrder struct {
	Want         api.Trace
	Keys         []api.TraceKey
	FrameCode    []api.TraceInstruction // for frames of Ethernet
	PacketCode   []api.TraceInstruction // for IP packets
	Hypothetical []byte                 // frame
}

func (o *TraceOrder) body() []byte {
	w := o.Want
	w.Keys, w.FrameCode, w.PacketCode = uint32(len(o.Keys)), uint32(len(o.FrameCode)), uint32(len(o.PacketCode))
	w.Octets = uint32(len(o.Hypothetical))
	b := api.Body(&w)
	if len(o.Keys) > 0 {
		b = api.AppendRows(b, o.Keys)
	}
	for _, code := range [][]api.TraceInstruction{o.FrameCode, o.PacketCode} {
		if len(code) > 0 {
			b = api.AppendRows(b, code)
		}
	}
	var octets []api.TraceOctets
	for rest := o.Hypothetical; len(rest) > 0; {
		var part api.TraceOctets
		rest = rest[copy(part.Octet[:], rest):]
		octets = append(octets, part)
	}
	if len(octets) > 0 {
		b = api.AppendRows(b, octets)
	}
	return b
}

// Trace begins a trace. It ends by itself, or without polls.
func (c *Client) Trace(ctx context.Context, o *TraceOrder) (api.TraceState, error) {
	var s api.TraceState
	body, err := c.request(ctx, api.TypeTrace, o.body())
	if err == nil {
		_, err = api.ReadRow(body, &s)
	}
	return s, err
}

// PollTrace takes the rows that wait, and ends the trace with stop.
func (c *Client) PollTrace(ctx context.Context, trace uint32, stop bool) ([]api.TraceRow, api.TraceState, error) {
	var s api.TraceState
	var all []api.TraceRow
	p := api.TracePoll{Trace: trace}
	if stop {
		p.Stop = 1
	}
	body, err := c.request(ctx, api.TypeTracePoll, api.Body(&p))
	if err != nil {
		return nil, s, err
	}
	for len(body) > 0 {
		part, _, err := api.NextPart(body)
		if err == nil && part.Number == api.PartTraceState {
			_, err = api.ReadRow(body, &s)
			return all, s, err
		}
		var rows []api.TraceRow
		if err == nil {
			rows, body, err = api.TakeRows[api.TraceRow](body)
		}
		if err != nil {
			return nil, s, fmt.Errorf("%w: %v", ErrProtocol, err)
		}
		all = append(all, rows...)
	}
	return nil, s, fmt.Errorf("%w: a poll of a trace without its state", ErrProtocol)
}
