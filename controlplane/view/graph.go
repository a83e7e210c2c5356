// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// Graph is the packet graph: nodes with their cost, and the edges between them.
type Graph struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Node is one node, summed over the workers.
type Node struct {
	Name           string       `json:"name"`
	Calls          uint64       `json:"calls"` // by walks
	Packets        uint64       `json:"packets"`
	Ticks          uint64       `json:"ticks"`
	PacketsPerCall float64      `json:"packets_per_call"`
	TicksPerPacket *float64     `json:"ticks_per_packet"` // null: called more often than packets come
	Workers        []NodeWorker `json:"workers"`
}

// NodeWorker is one worker's part of a node.
type NodeWorker struct {
	Worker  uint32 `json:"worker"`
	Calls   uint64 `json:"calls"`
	Packets uint64 `json:"packets"`
	Ticks   uint64 `json:"ticks"`
}

// Edge is one way a packet can take.
type Edge struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Packets uint64 `json:"packets"` // counted during isthmus trace --edges
}

var graphTable = (&Table{
	Name: "graph", Short: "nodes of the packet graph with their cost (--edges, --dot)",
	Answer: reflect.TypeFor[Graph](), Titles: titlesOf(nodeColumns),
	Rows: map[uint32]reflect.Type{api.TableNode: reflect.TypeFor[api.NodeRow](),
		api.TableEdge: reflect.TypeFor[api.EdgeRow]()},
	Fetch: func(ctx context.Context, c *dp.Client, _ string, _ uint32) (any, error) {
		nodes, err := dp.Table[api.NodeRow](ctx, c, api.TableNode, "", 0)
		if err != nil {
			return nil, err
		}
		edges, err := dp.Table[api.EdgeRow](ctx, c, api.TableEdge, "", 0)
		if err != nil {
			return nil, err
		}
		return NewGraph(nodes, edges), nil
	},
	Print: printer("graph", func(w io.Writer, g Graph) error { return write(w, nodeColumns, g.Nodes) }),
}).rates("name", "", "packets calls ticks")

// NewGraph sums the nodes of all workers; order is that of the rows.
func NewGraph(nodes []api.NodeRow, edges []api.EdgeRow) *Graph {
	g := &Graph{Nodes: []Node{}, Edges: make([]Edge, len(edges))}
	index := map[string]int{}
	for _, r := range nodes {
		name := api.CString(r.Name[:])
		at, ok := index[name]
		if !ok {
			at = len(g.Nodes)
			index[name] = at
			g.Nodes = append(g.Nodes, Node{Name: name})
		}
		n := &g.Nodes[at]
		n.Calls, n.Packets, n.Ticks = n.Calls+r.Calls, n.Packets+r.Packets, n.Ticks+r.Ticks
		n.Workers = append(n.Workers, NodeWorker{r.Worker, r.Calls, r.Packets, r.Ticks})
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.PacketsPerCall = per(n.Packets, n.Calls)
		if !idle(n.Packets, n.Calls) {
			ticks := per(n.Ticks, n.Packets)
			n.TicksPerPacket = &ticks
		}
	}
	for i := range edges {
		r := &edges[i]
		g.Edges[i] = Edge{api.CString(r.From[:]), api.CString(r.To[:]), r.Packets}
	}
	return g
}

// per is a / b, 0 when there is nothing to divide by.
func per(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// idle: most of a node's ticks are of empty polls, so no packet has cost them.
func idle(packets, calls uint64) bool { return packets < calls }

func ticksPerPacket(packets, calls, ticks uint64) string {
	if idle(packets, calls) {
		return "-"
	}
	return ratio(ticks, packets)
}

var nodeColumns = columns[Node]("NODE=Name, PACKETS, CALLS, PACKETS/CALL, TICKS/PACKET",
	cellNum("PACKETS/CALL", func(n *Node) string { return ratio(n.Packets, n.Calls) }),
	cellNum("TICKS/PACKET", func(n *Node) string { return ticksPerPacket(n.Packets, n.Calls, n.Ticks) }))

// WriteWorkers prints one line for each node and worker.
func (g *Graph) WriteWorkers(w io.Writer) error {
	type line struct {
		name string
		NodeWorker
	}
	var lines []line
	for _, n := range g.Nodes {
		for _, nw := range n.Workers {
			lines = append(lines, line{n.Name, nw})
		}
	}
	return write(w, []column[line]{
		str("NODE", func(l *line) string { return l.name }),
		num("WORKER", func(l *line) uint64 { return uint64(l.Worker) }),
		num("PACKETS", func(l *line) uint64 { return l.Packets }),
		num("CALLS", func(l *line) uint64 { return l.Calls }),
		cellNum("PACKETS/CALL", func(l *line) string { return ratio(l.Packets, l.Calls) }),
		cellNum("TICKS/PACKET", func(l *line) string { return ticksPerPacket(l.Packets, l.Calls, l.Ticks) }),
	}, lines)
}

// WriteEdges prints for each node where its packets can go.
func (g *Graph) WriteEdges(w io.Writer) error {
	var names []string
	to := map[string][]string{}
	for _, e := range g.Edges {
		if to[e.From] == nil {
			names = append(names, e.From)
		}
		next := e.To
		if e.Packets > 0 {
			next = fmt.Sprintf("%s (%d)", e.To, e.Packets)
		}
		to[e.From] = append(to[e.From], next)
	}
	return write(w, []column[string]{
		str("NODE", func(n *string) string { return *n }),
		str("NEXT", func(n *string) string { return strings.Join(to[*n], " ") }),
	}, names)
}

// WriteDot prints the graph for graphviz: nodes that saw packets are filled.
func (g *Graph) WriteDot(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph isthmus {\n\trankdir=LR;\n\tnode [shape=box, fontname=\"sans-serif\"];\n")
	for _, n := range g.Nodes {
		label := n.Name
		if n.Packets > 0 {
			ticks := ticksPerPacket(n.Packets, n.Calls, n.Ticks)
			label += fmt.Sprintf("\n%d packets\n%s ticks", n.Packets, ticks)
		}
		style := ""
		if n.Packets > 0 {
			style = ", style=filled, fillcolor=lightyellow"
		}
		fmt.Fprintf(&b, "\t%s [label=%s%s];\n", strconv.Quote(n.Name), strconv.Quote(label), style)
	}
	edges := slices.Clone(g.Edges)
	slices.SortFunc(edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(b.Packets, a.Packets))
	})
	same := func(a, b Edge) bool { return a.From == b.From && a.To == b.To }
	for _, e := range slices.CompactFunc(edges, same) {
		fmt.Fprintf(&b, "\t%s -> %s;\n", strconv.Quote(e.From), strconv.Quote(e.To))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
