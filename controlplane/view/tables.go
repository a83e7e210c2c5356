// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// Table is something that `isthmus show` can show.
type Table struct {
	Name  string
	Short string // one line of help
	Key   bool   // takes the name of one object
	// Answer is the type of what Fetch or Own returns, without pointers: a slice of rows in most tables.
	Answer reflect.Type
	// Rows are the tables of the contract that Fetch reads, with the types of their rows.
	Rows map[uint32]reflect.Type
	// Fetch asks the data plane and returns what is encoded as JSON.
	Fetch func(ctx context.Context, c *dp.Client, key string, limit uint32) (any, error)
	// Join adds what only the control plane knows to what Fetch returned; nil: nothing.
	Join func(c Control, v any)
	// Own stands instead of Fetch where only the control plane knows.
	Own func(c Control, key string, limit uint32) any
	// Print writes that JSON as a table.
	Print func(w io.Writer, data []byte) error
	// Titles are those that Print writes, in their order.
	Titles []Title

	Watched Watched
	Figures []Figure
	labels  []int // fields: values of the figures' labels
}

// OfControl: the table needs no data plane.
func (n *Table) OfControl() bool { return len(n.Rows) == 0 }

// Get returns what is encoded as JSON. c may be nil where OfControl is true.
func (n *Table) Get(ctx context.Context, c *dp.Client, control Control, key string, limit uint32) (any, error) {
	if n.Own != nil {
		return n.Own(control, key, limit), nil
	}
	v, err := n.Fetch(ctx, c, key, limit)
	if err == nil && n.Join != nil {
		n.Join(control, v)
	}
	return v, err
}

// Lookup returns a table by its name, nil when there is none.
func Lookup(name string) *Table {
	i := slices.IndexFunc(Tables, func(n *Table) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return Tables[i]
}

// list makes the table whose JSON is an array with one object a row. finish does what is not copying fields.
func list[R, V any, P api.Row[R]](
	name, short string, key bool, table uint32, columns []column[V], finish ...func(*V, *R),
) *Table {
	return inOrder[R, V, P](name, short, key, table, columns, nil, finish...)
}

// inOrder is list whose rows do not come in the order of the data plane's table.
func inOrder[R, V any, P api.Row[R]](
	name, short string, key bool, table uint32, columns []column[V], order func(a, b R) int, finish ...func(*V, *R),
) *Table {
	fill := filler[R, V]()
	return &Table{
		Name: name, Short: short, Key: key, Answer: reflect.TypeFor[[]V](), Titles: titlesOf(columns),
		Rows: map[uint32]reflect.Type{table: reflect.TypeFor[R]()},
		Fetch: func(ctx context.Context, c *dp.Client, key string, limit uint32) (any, error) {
			rows, err := dp.Table[R, P](ctx, c, table, key, limit)
			if err != nil {
				return nil, err
			}
			if order != nil {
				slices.SortStableFunc(rows, order)
			}
			values := make([]V, len(rows)) // never nil, so that it encodes as []
			for i := range rows {
				fill(&rows[i], &values[i])
				for _, fn := range finish {
					fn(&values[i], &rows[i])
				}
			}
			return values, nil
		},
		Print: printer(name, func(w io.Writer, values []V) error { return write(w, columns, values) }),
	}
}

// printer makes a Print of what writes the value that the JSON stands for.
func printer[T any](name string, print func(w io.Writer, v T) error) func(w io.Writer, data []byte) error {
	return func(w io.Writer, data []byte) error {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return print(w, v)
	}
}
