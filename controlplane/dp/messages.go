// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"context"
	"fmt"
	"io"

	"isthmus/api"
)

// List returns what the data plane holds.
func (c *Client) List(ctx context.Context) ([]api.Digest, error) {
	body, err := c.request(ctx, api.TypeList, nil)
	if err != nil {
		return nil, err
	}
	return rows[api.Digest](body)
}

// Table reads one table of the data plane. An empty key means all rows, limit 0 no limit. T must be the table's row type.
func Table[T any, P api.Row[T]](ctx context.Context, c *Client, table uint32, key string, limit uint32) ([]T, error) {
	request := api.StatsRequest{Table: table, Limit: limit}
	if err := api.PutCString(request.Key[:], key); err != nil {
		return nil, err
	}
	body, err := c.request(ctx, api.TypeStats, api.Body(&request))
	if err != nil {
		return nil, err
	}
	return rows[T, P](body)
}

// Stream starts or stops a synth stream; an empty name means all of them.
func (c *Client) Stream(ctx context.Context, stream string, start bool) error {
	var command api.StreamCommand
	if err := api.PutCString(command.Name[:], stream); err != nil {
		return err
	}
	if start {
		command.Start = 1
	}
	body, err := c.request(ctx, api.TypeStream, api.Body(&command))
	if err != nil {
		return err
	}
	return refusal(body)
}

func appendObjectHead(b []byte, ch *Change) []byte {
	head := api.ObjectHead{Kind: ch.Kind}
	copy(head.Key[:], ch.Key) // length checked by checkChange
	return api.AppendRow(b, &head)
}

// WriteState writes one transaction as a file of framed messages (BEGIN, PUT..., COMMIT): what `isthmus-dp replay` reads.
func WriteState(w io.Writer, changes []Change) error {
	sequence := uint32(0)
	message := func(typ uint16, parts ...[]byte) error {
		length := 0
		for _, p := range parts {
			length += len(p)
		}
		sequence++
		if _, err := w.Write(appendHeader(nil, typ, api.FLast, uint32(length), sequence)); err != nil {
			return err
		}
		for _, p := range parts {
			if _, err := w.Write(p); err != nil {
				return err
			}
		}
		return nil
	}
	if err := message(api.TypeBegin); err != nil {
		return err
	}
	for i := range changes {
		ch := &changes[i]
		if err := checkChange(ch); err != nil {
			return err
		}
		typ := uint16(api.TypePut)
		if ch.Body == nil {
			typ = api.TypeDelete
		}
		if err := message(typ, appendObjectHead(nil, ch), ch.Body); err != nil {
			return fmt.Errorf("%s %q: %w", KindName(ch.Kind), ch.Key, err)
		}
	}
	return message(api.TypeCommit)
}
