// SPDX-License-Identifier: Apache-2.0
// The packet graph: nodes with packets per second and ticks, edges as thick as what flows on them.
import { svg, say, byId, fill, el } from "./dom.js";
import { si, ticks, join } from "./format.js";
import { place } from "./layout.js";

const WIDE = 122, HIGH = 34, ALONG = 44, TIGHT = 20, ACROSS = 12, THIN = 14;
const SMALL = 0.75, LEAST = 0.6; // scales: what is still read with ease, and at all
const flow = (v) => (v === null ? "?" : join(si(v, "")).replace(" ", "\u2009"));

export class Graph {
	constructor(store) {
		this.store = store;
		this.box = byId("graph");
		this.all = byId("graph-all");
		this.seen = new Set(); // nodes and edges that had packets while the page was open: they stay where they are
		this.body = el("tbody");
		const head = el("tr", {}, ...["node", "packets", "ticks", "load"].map((t, i) =>
			el("th", { scope: "col", class: i ? "num" : "" }, t)));
		byId("nodes").append(el("thead", {}, head), this.body);
		this.all.addEventListener("change", () => this.draw());
		new ResizeObserver(() => this.draw()).observe(this.box);
	}

	edges() {
		return this.store.group("edge").map((s) => {
			const [from, to] = s.name.split(" > ");
			return { series: s, from, to, key: s.name };
		});
	}

	draw() {
		if (this.box.offsetParent === null) return;
		const nodes = this.store.group("node");
		const edges = this.edges();
		for (const s of nodes) if (s.last > 0) this.seen.add(s.name);
		for (const e of edges) {
			if (e.series.last > 0 || e.series.last === null && this.store.last("node", e.from) > 0 && this.store.last("node", e.to) > 0) {
				this.seen.add(e.key);
			}
		}
		const shown = nodes.filter((s) => this.all.checked || this.seen.has(s.name)).map((s) => s.name);
		const there = new Set(shown);
		// Nearly every node has a way to drop: those at rest would hide all else.
		const ways = edges.filter((e) => there.has(e.from) && there.has(e.to) &&
			(this.seen.has(e.key) || this.all.checked && e.to !== "drop"));
		this.table(nodes);
		const key = JSON.stringify([this.box.clientWidth, shown, ways.map((e) => e.key)]);
		if (key !== this.key) {
			this.key = key;
			this.build(shown, ways);
		}
		this.update();
	}

	/** Layers from left to right, or from top to bottom, and how large that can be drawn in the box. */
	plan(shown, ways, across) {
		const thin = ways.length > 60 ? THIN / 3 : THIN;
		const [size, long] = across ? [HIGH + ACROSS, WIDE] : [WIDE + ACROSS, HIGH];
		const plan = place(shown, ways, size, thin);
		let gap = ALONG;
		if (across) {
			const room = (this.box.clientWidth / SMALL - 8 - plan.layers * WIDE) / Math.max(1, plan.layers - 1);
			gap = Math.max(TIGHT, Math.min(ALONG, Math.floor(room)));
		}
		const step = long + gap;
		const at = ({ layer, y }) => (across ? [4 + layer * step + WIDE / 2, 4 + y] : [4 + y, 4 + layer * step + HIGH / 2]);
		const along = 8 + plan.layers * step - gap, breadth = 8 + plan.breadth;
		const [w, h] = across ? [along, breadth] : [breadth, along];
		return { ...plan, across, at, w, h, scale: Math.min(1, this.box.clientWidth / w) };
	}

	/** Draws again: new nodes or edges, or another width of the box. */
	build(shown, ways) {
		this.nodes = [];
		this.lines = [];
		if (!shown.length) {
			this.box.replaceChildren(el("p", { class: "empty" }, "No packets flow."));
			return;
		}
		let plan = this.plan(shown, ways, true);
		if (plan.scale < SMALL) {
			const down = this.plan(shown, ways, false);
			if (down.scale > plan.scale) plan = down;
		}
		const { at, across, w, h } = plan, scale = Math.max(LEAST, plan.scale);
		const picture = svg("svg", { viewBox: `0 0 ${w} ${h}`, width: w * scale, height: h * scale, "aria-hidden": "true" });
		for (const e of ways) picture.append(this.line(e, plan.edges.get(e).map(at), across));
		for (const e of this.lines) picture.append(e.label);
		for (const name of shown) picture.append(this.node(name, at(plan.nodes.get(name))));
		this.box.replaceChildren(picture);
		byId("graph-more").hidden = plan.scale >= LEAST;
	}

	line(e, points, across) {
		const half = across ? WIDE / 2 : HIGH / 2;
		const [from, to] = [points[0], points.at(-1)];
		const axis = across ? 0 : 1;
		const start = [...from], end = [...to];
		start[axis] += half;
		end[axis] -= half;
		const path = svg("path", { d: curve([start, ...points.slice(1, -1), end], axis), class: "edge" });
		// A label stands where the edge has left the others of its node.
		const spot = points.length > 2 ? points[1] : [(start[0] + end[0]) / 2, (start[1] + end[1]) / 2];
		const beside = end[1] < start[1] ? -4 : 11;
		const label = svg("text", { class: "flow", x: spot[0], y: spot[1] + (across ? beside : 3), "text-anchor": "middle" });
		this.lines.push({ ...e, path, label });
		return path;
	}

	node(name, [x, y]) {
		const first = svg("text", { x, y: y - 3, "text-anchor": "middle" }, name);
		const second = svg("text", { x, y: y + 11, "text-anchor": "middle", class: "small" });
		const title = svg("title");
		const group = svg("g", { class: "node" }, title,
			svg("rect", { x: x - WIDE / 2, y: y - HIGH / 2, width: WIDE, height: HIGH, rx: 4 }), first, second);
		this.nodes.push({ name, group, second, title });
		return group;
	}

	update() {
		const { store } = this;
		const lost = (name) => name === "drop";
		let most = 1;
		for (const n of this.nodes) most = Math.max(most, store.last("node", n.name) ?? 0);
		for (const n of this.nodes) {
			const pps = store.last("node", n.name), cost = store.last("ticks", n.name);
			n.group.setAttribute("class", `node${pps > 0 ? " busy" : ""}${lost(n.name) ? " lost" : ""}`);
			say(n.second, pps > 0 && cost !== null ? `${flow(pps)} · ${ticks(cost)} ticks` : flow(pps));
			say(n.title, `${n.name}: ${join(si(pps, "p/s"))}, ${ticks(cost)} ticks per packet`);
		}
		const ways = new Map();
		for (const e of this.lines) if (e.series.last !== 0) ways.set(e.from, (ways.get(e.from) ?? 0) + 1);
		for (const e of this.lines) {
			const v = this.store.last("edge", e.key);
			const guess = v === null && store.last("node", e.from) > 0;
			e.path.setAttribute("class", `edge${v > 0 ? " busy" : guess ? " guess" : ""}${lost(e.to) ? " lost" : ""}`);
			e.path.style.strokeWidth = v > 0 ? `${(1 + 6 * Math.sqrt(v / most)).toFixed(1)}px` : "1px";
			say(e.label, v > 0 && ways.get(e.from) > 1 ? flow(v) : "");
		}
	}

	table(nodes) {
		const busy = nodes.filter((s) => s.last > 0 || this.seen.has(s.name)).map((s) => {
			const cost = this.store.last("ticks", s.name);
			return { name: s.name, pps: s.last, cost, work: (s.last ?? 0) * (cost ?? 0) };
		});
		const sum = busy.reduce((a, b) => a + b.work, 0);
		busy.sort((a, b) => b.work - a.work || (b.pps ?? 0) - (a.pps ?? 0));
		fill(this.body, busy, (n) => [n.name, join(si(n.pps, "p/s")), ticks(n.cost), sum ? `${((100 * n.work) / sum).toFixed(1)} %` : "–"],
			(row) => { for (let i = 1; i < 4; i++) row.cells[i].className = "num"; });
	}
}

/** A smooth line through points that leaves and arrives along the axis. */
function curve(points, axis) {
	let d = `M${points[0].join(" ")}`;
	for (let i = 1; i < points.length; i++) {
		const [a, b] = [points[i - 1], points[i]];
		const middle = (a[axis] + b[axis]) / 2;
		const c1 = [...a], c2 = [...b];
		c1[axis] = c2[axis] = middle;
		d += `C${c1.join(" ")} ${c2.join(" ")} ${b.join(" ")}`;
	}
	return d;
}
