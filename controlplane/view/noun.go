// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// Noun is something that `isthmus show` can show.
type Noun struct {
	Name  string
	Short string // one line of help
	Key   bool   // takes the name of one object
	// Fetch asks the data plane and returns what is encoded as JSON.
	Fetch func(ctx context.Context, c *dp.Client, key string, limit uint32) (any, error)
	// Join adds what only the control plane knows to what Fetch returned; nil: nothing.
	Join func(c Control, v any)
	// Own stands instead of Fetch where only the control plane knows.
	Own func(c Control, key string, limit uint32) any
	// Print writes that JSON as a table.
	Print func(w io.Writer, data []byte) error
}

// OfControl tells that the noun needs no data plane.
func (n *Noun) OfControl() bool { return n.Own != nil }

// Get returns what is encoded as JSON. control is nil when there is no PFCP; c may be nil where OfControl is true.
func (n *Noun) Get(ctx context.Context, c *dp.Client, control Control, key string, limit uint32) (any, error) {
	if n.Own != nil {
		return n.Own(control, key, limit), nil
	}
	v, err := n.Fetch(ctx, c, key, limit)
	if err == nil && n.Join != nil && control != nil {
		n.Join(control, v)
	}
	return v, err
}

// Nouns in the order of the help.
var Nouns = []*Noun{
	list("port", "ports and their counters", true, api.TablePort, newPort, portColumns),
	sessionNoun(),
	list("rule", "packet detection rules of sessions", true, api.TableRule, newRule, ruleColumns),
	list("urr", "usage report rules: measured since the last report", true, api.TableURR, newURR, urrColumns),
	list("instance", "network instances", true, api.TableInstance, newInstance, instanceColumns),
	associationNoun,
	n4Noun,
	list("event", "reports to the control plane", false, api.TableEvent, newEvent, eventColumns),
	list("route", "routes, longest prefix wins", true, api.TableRoute, newRoute, routeColumns),
	list("neighbour", "neighbours (ARP, ND, static)", true, api.TableNeighbour, newNeighbour, neighbourColumns),
	list("acl", "firewall rules and their hits", true, api.TableACL, newACL, aclColumns),
	list("scheduler", "scheduler queues", true, api.TableScheduler, newScheduler, schedulerColumns),
	graphNoun,
	reasons("drop", "dropped packets by reason", api.TableDrop),
	reasons("punt", "packets given to the host path, by reason", api.TablePunt),
	list("worker", "worker threads", false, api.TableWorker, newWorker, workerColumns),
	list("path", "GTP-U paths", true, api.TablePath, newPath, pathColumns),
	list("stream", "synth streams", true, api.TableSynth, newStream, streamColumns),
	totalNoun,
}

// Lookup returns a noun by its name, nil when there is none.
func Lookup(name string) *Noun {
	i := slices.IndexFunc(Nouns, func(n *Noun) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return Nouns[i]
}

// list makes the noun of a table whose JSON is an array with one object a row.
func list[R, V any, P api.Row[R]](name, short string, key bool, table uint32, convert func(*R) V, columns []column[V]) *Noun {
	return &Noun{
		Name: name, Short: short, Key: key,
		Fetch: func(ctx context.Context, c *dp.Client, key string, limit uint32) (any, error) {
			return Fetch[R, V, P](ctx, c, table, key, limit, convert)
		},
		Print: func(w io.Writer, data []byte) error {
			var values []V
			if err := json.Unmarshal(data, &values); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return write(w, columns, values)
		},
	}
}

// Fetch reads one table and converts its rows. The result is never nil, so that it encodes as [].
func Fetch[R, V any, P api.Row[R]](
	ctx context.Context, c *dp.Client, table uint32, key string, limit uint32, convert func(*R) V,
) ([]V, error) {
	rows, err := dp.Table[R, P](ctx, c, table, key, limit)
	if err != nil {
		return nil, err
	}
	values := make([]V, len(rows))
	for i := range rows {
		values[i] = convert(&rows[i])
	}
	return values, nil
}
