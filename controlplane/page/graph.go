// SPDX-License-Identifier: Apache-2.0

package page

import "isthmus/controlplane/view"

// edgeFlow is an edge of the packet graph with its packets per second; NaN: unknown.
type edgeFlow struct {
	view.Edge
	pps float32
}

// edgeFlows infers the flow on each edge from the nodes' flows. A node's input is the sum of its edges, so one unknown
// edge follows from the others. Its output is equal only where no packet ends, waits or is copied: that is used last.
// Passes repeat until none settles an edge. A duplicate edge counts once.
func edgeFlows(edges []view.Edge, rate map[string]float64) []edgeFlow {
	g := &flowGraph{rate: rate, in: map[string][]int{}, out: map[string][]int{}}
	seen := make(map[view.Edge]bool, len(edges))
	for _, e := range edges {
		if seen[e] {
			continue
		}
		seen[e] = true
		i := len(g.flows)
		g.flows = append(g.flows, edgeFlow{e, unknown})
		g.in[e.To], g.out[e.From] = append(g.in[e.To], i), append(g.out[e.From], i)
		from, ok := rate[e.From]
		to, also := rate[e.To]
		if ok && from == 0 || also && to == 0 {
			g.flows[i].pps = 0
		}
	}
	for _, leaving := range []bool{false, true} {
		for settled := true; settled; {
			settled = false
			for _, f := range g.flows {
				settled = g.last(f.To, g.in[f.To]) || leaving && g.last(f.From, g.out[f.From]) ||
					settled
			}
		}
	}
	return g.flows
}

// sampleNoise is how much of a node's rate may be missing, since nodes are not counted at the same moment.
const sampleNoise = 0.001

type flowGraph struct {
	rate    map[string]float64
	in, out map[string][]int // by node: indexes of flows
	flows   []edgeFlow
}

// last computes the only unknown edge of a node, and returns whether it did.
func (g *flowGraph) last(node string, list []int) bool {
	left, ok := g.rate[node]
	if !ok {
		return false
	}
	open := -1
	for _, i := range list {
		switch {
		case !isUnknown(g.flows[i].pps):
			left -= float64(g.flows[i].pps)
		case open >= 0:
			return false
		default:
			open = i
		}
	}
	if open < 0 {
		return false
	}
	if left < sampleNoise*g.rate[node] {
		left = 0
	}
	g.flows[open].pps = float32(left)
	return true
}
