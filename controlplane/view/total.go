// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// Total is the balance of the whole data plane: in + originated = out + punted + held + dropped + merged.
type Total struct {
	In             uint64 `json:"in"`         // packets
	Originated     uint64 `json:"originated"` // packets made here
	Out            uint64 `json:"out"`        // packets
	Punted         uint64 `json:"punted"`     // packets
	Held           uint64 `json:"held"`       // packets now
	Dropped        uint64 `json:"dropped"`    // packets
	Merged         uint64 `json:"merged"`     // fragments
	Missing        int64  `json:"missing"`    // 0 when no packet moves
	Buffers        uint64 `json:"buffers"`    // packet buffers
	BuffersFree    uint64 `json:"buffers_free"`
	Sessions       uint64 `json:"sessions"`
	Commits        uint64 `json:"commits"` // transactions
	RefusedCommits uint64 `json:"refused_commits"`
	Clients        uint64 `json:"clients"`        // of the data plane's socket
	ClientsClosed  uint64 `json:"clients_closed"` // because they were too slow, or too many

	Holders []Holder `json:"holders"`
}

// Holder is a kind of queue that holds packets beyond the walk that brought them: packet buffers held now, and at most.
type Holder struct {
	Name  string `json:"name"`
	Held  uint64 `json:"held"`  // packet buffers now
	Limit uint64 `json:"limit"` // packet buffers
}

var fillTotal, fillHolder = filler[api.TotalRow, Total](), filler[api.HolderRow, Holder]()

// NewTotal converts the row of totals and those of the holders.
func NewTotal(r *api.TotalRow, holders []api.HolderRow) Total {
	t := Total{Holders: make([]Holder, len(holders))}
	fillTotal(r, &t)
	t.Missing = int64(r.In + r.Originated - r.Out - r.Punted - r.Held - r.Dropped - r.Merged)
	for i := range holders {
		fillHolder(&holders[i], &t.Holders[i])
	}
	return t
}

var totalTable = (&Table{
	Name: "total", Short: "balance of all packets, buffers and commits",
	Answer: reflect.TypeFor[Total](),
	Rows: map[uint32]reflect.Type{api.TableTotal: reflect.TypeFor[api.TotalRow](),
		api.TableHolder: reflect.TypeFor[api.HolderRow]()},
	Fetch: func(ctx context.Context, c *dp.Client, _ string, _ uint32) (any, error) {
		rows, err := dp.Table[api.TotalRow](ctx, c, api.TableTotal, "", 0)
		if err != nil {
			return nil, err
		}
		if len(rows) != 1 {
			return nil, fmt.Errorf("%w: %d rows of totals", dp.ErrProtocol, len(rows))
		}
		holders, err := dp.Table[api.HolderRow](ctx, c, api.TableHolder, "", 0)
		if err != nil {
			return nil, err
		}
		return NewTotal(&rows[0], holders), nil
	},
	Print: printer("total", func(w io.Writer, t Total) error {
		u := func(v uint64) string { return strconv.FormatUint(v, 10) }
		table := [][]string{
			{"packets in", u(t.In)}, {"  originated here", u(t.Originated)}, {"packets out", u(t.Out)},
			{"  punted to the host path", u(t.Punted)}, {"  held now", u(t.Held)}, {"  dropped", u(t.Dropped)},
			{"  merged by reassembly", u(t.Merged)}, {"  missing from the balance", strconv.FormatInt(t.Missing, 10)},
			{"buffers", u(t.Buffers)}, {"  free", u(t.BuffersFree)},
		}
		for _, h := range t.Holders {
			table = append(table, []string{fmt.Sprintf("  held: %s, of %d", h.Name, h.Limit), u(h.Held)})
		}
		return WriteTable(w, []string{"WHAT", "COUNT"}, []bool{false, true}, append(table, [][]string{
			{"sessions", u(t.Sessions)}, {"commits", u(t.Commits)}, {"  refused", u(t.RefusedCommits)},
			{"clients of dp.sock", u(t.Clients)}, {"  closed: slow, or too many", u(t.ClientsClosed)},
		}...))
	}),
}).
	rates("", "sessions held buffers_free", "in originated out punted dropped commits").
	metrics("", `
	packets_in_total=In: Packets received.
	packets_out_total=Out: Packets sent.
	packets_originated_total=Originated: Packets made here.
	packets_merged_total=Merged: Fragments merged into others by reassembly.
	packets_held=Held: Packets held now: scheduler, reassembly, waiting for a neighbour.
	buffers=Buffers: Packet buffers.
	buffers_free=BuffersFree: Packet buffers that are free.
	sessions=Sessions: Sessions, wireline and mobile.
	commits_total=Commits: Transactions carried out.
	refused_commits_total=RefusedCommits: Transactions refused.
	dataplane_clients=Clients: Clients of the data plane's socket.
	dataplane_clients_closed_total=ClientsClosed: Those that it closed: they kept it waiting, or were too many.`)
