// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"context"
	"fmt"
	"io"
	"math"

	"isthmus/api"
)

// List returns the held objects of a kind in a range of keys, ascending (api.KeyOrder), and whether the limit left some
// out: they follow behind the last one.
func (c *Client) List(ctx context.Context, l api.List) (held []api.Digest, more bool, err error) {
	body, flags, err := c.exchange(ctx, api.TypeList, api.Body(&l))
	if err != nil {
		return nil, false, err
	}
	held, err = rows[api.Digest](body)
	if err != nil {
		return nil, false, err
	}
	from := l.First
	for i := range held {
		order := api.KeyOrder(api.CString(held[i].Key[:]))
		if held[i].Kind != l.Kind || order < from || order > l.Last {
			return nil, false, fmt.Errorf("%w: a LIST from %#x to %#x has %s %q out of order", ErrProtocol, l.First,
				l.Last,
				KindName(held[i].Kind), api.CString(held[i].Key[:]))
		}
		from = order
	}
	more = flags&api.FMore != 0
	if more && (len(held) == 0 || from == l.Last) {
		return nil, false, fmt.Errorf("%w: a LIST that does not end", ErrProtocol)
	}
	return held, more, nil
}

// Lister lists ranges of objects (Client).
type Lister interface {
	List(ctx context.Context, l api.List) (held []api.Digest, more bool, err error)
}

const listPage = 8192 // digests in one answer: 384 kB

// Held returns all objects of some kinds, asked for page by page.
func Held(ctx context.Context, l Lister, kinds func(kind uint32) bool) ([]api.Digest, error) {
	var all []api.Digest
	err := EachPage(ctx, l, kinds, func(page []api.Digest) { all = append(all, page...) })
	return all, err
}

// EachPage gives the objects of some kinds to fn, page by page.
func EachPage(ctx context.Context, l Lister, kinds func(kind uint32) bool, fn func(page []api.Digest)) error {
	for kind := uint32(1); kind < api.KindCount; kind++ {
		for first, more := uint64(0), kinds == nil || kinds(kind); more; {
			page, follows, err := l.List(ctx, api.List{Kind: kind, Limit: listPage, First: first, Last: math.MaxUint64})
			if err != nil {
				return err
			}
			fn(page)
			if more = follows; more {
				first = api.KeyOrder(api.CString(page[len(page)-1].Key[:])) + 1
			}
		}
	}
	return nil
}

// Table reads one table of the data plane. An empty key means all rows, limit 0 no limit. T must be the table's row
// type.
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

// EachRows gives the rows of a table to fn, one message's at a time. Neither end holds more. fn's pace is the data
// plane's: no other request may wait for the connection.
func EachRows[T any, P api.Row[T]](ctx context.Context, c *Client, table uint32, fn func(some []T) error) error {
	request := api.StatsRequest{Table: table}
	return c.ask(ctx, api.TypeStats, api.Body(&request), func(own context.Context, sequence uint32) error {
		_, err := c.answers(own, api.TypeStats, sequence, sequence, func(body []byte) error {
			some, err := rows[T, P](body)
			if err != nil || len(some) == 0 {
				return err
			}
			return fn(some)
		})
		return err
	})
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

// WriteState writes one transaction as a file of framed messages (BEGIN, PUT..., COMMIT): what `isthmus-dp replay`
// reads.
func WriteState(w io.Writer, changes []Change) error {
	sequence := uint32(0)
	message := func(typ uint16, parts ...[]byte) error {
		sequence++
		return writeMessage(w, typ, sequence, parts...)
	}
	if err := message(api.TypeBegin); err != nil {
		return err
	}
	for _, ch := range changes {
		if err := checkChange(&ch); err != nil {
			return err
		}
		typ := uint16(api.TypePut)
		if ch.Body == nil {
			typ = api.TypeDelete
		}
		if err := message(typ, appendObjectHead(nil, &ch), ch.Body); err != nil {
			return fmt.Errorf("%s %q: %w", KindName(ch.Kind), ch.Key, err)
		}
	}
	return message(api.TypeCommit)
}
