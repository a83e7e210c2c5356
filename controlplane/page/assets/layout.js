// SPDX-License-Identifier: Apache-2.0
// Layers for a directed graph: edges point one way, long ones get a place in each layer they cross, layers are ordered so
// that few edges cross. Pure: names in, places out.

/** Without the edges that would close a circle. */
function forward(nodes, edges) {
	const out = new Map(nodes.map((n) => [n, []]));
	for (const e of edges) out.get(e.from).push(e);
	const state = new Map();
	const kept = new Set(edges);
	const visit = (n) => {
		state.set(n, "open");
		for (const e of out.get(n)) {
			if (state.get(e.to) === "open") kept.delete(e);
			else if (!state.has(e.to)) visit(e.to);
		}
		state.set(n, "done");
	};
	const entered = new Set(edges.map((e) => e.to));
	for (const n of [...nodes.filter((n) => !entered.has(n)), ...nodes]) if (!state.has(n)) visit(n);
	return [...kept];
}

/** The layer of each node: one behind the last of those before it. */
function layers(nodes, edges) {
	const layer = new Map(nodes.map((n) => [n, 0]));
	for (let round = 0, moved = true; moved && round < nodes.length; round++) {
		moved = false;
		for (const e of edges) {
			if (layer.get(e.to) <= layer.get(e.from)) {
				layer.set(e.to, layer.get(e.from) + 1);
				moved = true;
			}
		}
	}
	// A node without a way in stands beside the first that it leads to.
	const entered = new Set(edges.map((e) => e.to));
	for (const n of nodes) {
		const next = edges.filter((e) => e.from === n).map((e) => layer.get(e.to));
		if (!entered.has(n) && next.length) layer.set(n, Math.min(...next) - 1);
	}
	return layer;
}

function mean(list) {
	return list.reduce((a, b) => a + b, 0) / list.length;
}

/** Columns of items {name | null, before, after}, with a chain of items for each edge. */
function columns(nodes, edges, layer) {
	const cols = [];
	const item = (name, at) => {
		const i = { name, before: [], after: [], at };
		(cols[at] ??= []).push(i);
		return i;
	};
	const of = new Map(nodes.map((n) => [n, item(n, layer.get(n))]));
	const chains = new Map();
	for (const e of edges) {
		let last = of.get(e.from);
		const chain = [last];
		for (let l = layer.get(e.from) + 1; l <= layer.get(e.to); l++) {
			const next = l === layer.get(e.to) ? of.get(e.to) : item(null, l);
			last.after.push(next);
			next.before.push(last);
			chain.push(next);
			last = next;
		}
		chains.set(e, chain);
	}
	return { cols: Array.from(cols, (c) => c ?? []), of, chains };
}

function order(cols) {
	cols.forEach((c) => c.forEach((i, k) => (i.rank = k)));
	for (let sweep = 0; sweep < 24; sweep++) {
		const down = sweep % 2 === 0;
		for (const c of down ? cols : [...cols].reverse()) {
			const side = down ? "before" : "after";
			for (const i of c) i.key = i[side].length ? mean(i[side].map((o) => o.rank)) : i.rank;
			c.sort((a, b) => a.key - b.key);
			c.forEach((i, k) => (i.rank = k));
		}
	}
}

/** Places across the layers: each item is drawn to its neighbours and keeps its distance from those beside it. */
function spread(cols, size, thin) {
	const room = (i) => (i.name === null ? thin : size);
	for (const c of cols) {
		let y = 0;
		for (const i of c) {
			i.y = y + room(i) / 2;
			y += room(i);
		}
	}
	for (let sweep = 0; sweep < 40; sweep++) {
		for (const c of sweep % 2 ? [...cols].reverse() : cols) {
			for (const i of c) {
				const near = [...i.before, ...i.after];
				i.want = near.length ? mean(near.map((o) => o.y)) : i.y;
			}
			settle(c, room);
		}
	}
	const top = Math.min(...cols.flat().map((i) => i.y - room(i) / 2));
	for (const i of cols.flat()) i.y -= top;
}

/** As near to what they want as their order and distances let them be: the mean of pushing down and pushing up. */
function settle(c, room) {
	const gap = (a, b) => (room(a) + room(b)) / 2;
	const down = [], up = [];
	for (let k = 0; k < c.length; k++) down[k] = k ? Math.max(c[k].want, down[k - 1] + gap(c[k - 1], c[k])) : c[k].want;
	for (let k = c.length - 1; k >= 0; k--) {
		up[k] = k < c.length - 1 ? Math.min(c[k].want, up[k + 1] - gap(c[k], c[k + 1])) : c[k].want;
	}
	c.forEach((i, k) => (i.y = (down[k] + up[k]) / 2));
}

/**
 * Places nodes (names) and edges ({from, to}).
 * size: room of a node across the layers; thin: of an edge that passes.
 * Returns {layers, breadth, nodes: Map(name -> {layer, y}), edges: Map(edge -> [{layer, y}])}; edges that close circles
 * go backwards, from node to node.
 */
export function place(nodes, edges, size, thin) {
	const ahead = forward(nodes, edges);
	const layer = layers(nodes, ahead);
	const { cols, of, chains } = columns(nodes, ahead, layer);
	order(cols);
	spread(cols, size, thin);
	const spot = (i) => ({ layer: i.at, y: i.y });
	const ways = new Map(edges.map((e) => [e, (chains.get(e) ?? [of.get(e.from), of.get(e.to)]).map(spot)]));
	return {
		layers: cols.length, breadth: Math.max(0, ...cols.flat().map((i) => i.y + (i.name === null ? thin : size) / 2)),
		nodes: new Map(nodes.map((n) => [n, spot(of.get(n))])), edges: ways,
	};
}
