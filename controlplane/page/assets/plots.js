// SPDX-License-Identifier: Apache-2.0
// A panel: one plot of ten minutes, and under it the table of its lines with the same figures.
import { el, say, fill, colour } from "./dom.js";
import { si, clock, count } from "./format.js";

// Its legend writes inline style, which the page's policy forbids; the table is the legend.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend);

const WINDOW = 600_000;
const order = new Intl.Collator("en", { numeric: true });
const DRAWN = 8; // lines in one plot; the table has them all

/** The colour and the dashes of the n-th line. Ways out of a port are dashed, in the colour of its way in. */
function styleOf(names, name, n) {
	if (name.endsWith(" out") && names.includes(name.replace(/out$/, "in"))) {
		return { at: names.indexOf(name.replace(/out$/, "in")), dashed: true };
	}
	return { at: n, dashed: n >= 6 };
}

export class Panel {
	/** options: group, title, unit (of the axis), format (of a value), most (end of the axis, optional). */
	constructor(store, options) {
		this.store = store;
		this.options = options;
		this.version = -1;
		this.hover = null;
		this.unit = el("span", { class: "unit" });
		this.plot = el("div", { class: "plot", role: "img", "aria-label": `${options.title}, last ten minutes; the table has its figures` });
		const head = el("tr");
		for (const [text, kind] of [["", ""], ["now", "num"], ["mean", "num"], ["peak", "num"]]) {
			head.append(el("th", { scope: "col", class: kind }, text || el("span", { class: "hush" }, "line")));
		}
		this.now = head.cells[1];
		this.body = el("tbody");
		const id = `panel-${options.group}-${options.key ?? ""}`;
		this.list = el("div", { class: "lines", tabindex: "0", role: "group", "aria-labelledby": id },
			el("table", { "aria-labelledby": id }, el("thead", {}, head), this.body));
		this.more = el("p", { class: "more", hidden: "" });
		this.list.addEventListener("scroll", () => this.below());
		this.element = el("section", { class: "panel", "aria-labelledby": id },
			el("div", { class: "head" }, el("h2", { id }, options.title), this.unit),
			this.plot, this.list, this.more);
	}

	// The plot follows the size of its panel, whatever made it another.
	follow() {
		this.watch ??= new ResizeObserver(() => {
			this.graph?.resize();
			this.below();
		});
		this.watch.disconnect();
		this.watch.observe(this.plot);
	}

	end() {
		this.watch?.disconnect();
		this.graph?.destroy();
		this.graph = null;
	}

	/** The lines, those with the highest peak first where there are more than can be drawn. */
	lines() {
		const list = this.store.group(this.options.group).filter((s) => s.values);
		for (const s of list) {
			let sum = 0, n = 0, peak = null;
			for (const v of s.values) {
				if (v === null) continue;
				sum += v;
				n++;
				if (peak === null || v > peak) peak = v;
			}
			s.mean = n ? sum / n : null;
			s.peak = peak;
		}
		const base = (s) => s.name.replace(/ (in|out)$/, "");
		const busy = new Set(list.filter((s) => s.peak).map(base));
		list.sort((a, b) => busy.has(base(b)) - busy.has(base(a)) || order.compare(a.name, b.name));
		if (list.length > DRAWN) list.sort((a, b) => (b.peak ?? -1) - (a.peak ?? -1));
		return list;
	}

	draw() {
		const lines = this.lines();
		this.element.hidden = lines.length === 0 && !this.options.always;
		if (this.element.hidden) return;
		this.table(lines);
		say(this.unit, lines.length ? "" : this.options.none ?? "");
		this.plot.classList.toggle("none", lines.length === 0);
		this.curves(lines.slice(0, DRAWN));
	}

	table(lines) {
		const at = this.hover;
		const names = lines.map((s) => s.name);
		say(this.now, at === null ? "now" : clock(this.store.times[at] ?? 0));
		fill(this.body, lines, (s) => {
			const now = at === null ? s.last : s.values[at];
			return [null, this.options.format(now ?? null), this.options.format(s.mean), this.options.format(s.peak)].map((t, i) =>
				i === 0 ? this.label(names, s, lines.indexOf(s)) : t);
		}, (row, s) => {
			row.className = s.peak ? "" : "zero";
			for (let i = 1; i < 4; i++) row.cells[i].className = "num";
			row.cells[0].title = s.name;
		});
		this.below();
	}

	/** Says how many lines the list has below what is seen of it. */
	below() {
		const end = this.list.getBoundingClientRect().bottom + 2;
		const rows = [...this.body.rows].filter((r) => r.getBoundingClientRect().bottom > end).length;
		this.more.hidden = this.list.scrollHeight <= this.list.clientHeight + 1;
		say(this.more, rows ? `${rows} more below` : "end of the list");
	}

	label(names, s, n) {
		const { at, dashed } = styleOf(names, s.name, n);
		const mark = el("span", { class: `swatch c${at % 6}${dashed ? " dashed" : ""}${n < DRAWN ? "" : " none"}`, "aria-hidden": "true" });
		return el("span", {}, mark, s.name);
	}

	curves(lines) {
		const { store, options } = this;
		const end = store.times.at(-1) ?? Date.now();
		const data = store.times.map((t, i) => [new Date(t), ...lines.map((s) => s.values[i])]);
		if (!data.length || !lines.length) return;
		const key = lines.map((s) => s.name).join("\n");
		const changing = { file: data, dateWindow: [end - WINDOW, end], valueRange: [0, 1.04 * this.top(lines)] };
		if (this.graph && key === this.key) {
			this.graph.updateOptions(changing);
			return;
		}
		this.graph?.destroy();
		this.key = key;
		const axis = { axisLineColor: colour("5"), gridLineColor: css("--grid"), axisLabelFontSize: 11 };
		const names = lines.map((s) => s.name);
		const series = {};
		lines.forEach((s, n) => {
			const { at, dashed } = styleOf(names, s.name, n);
			series[`s${s.id}`] = { color: colour(at % 6), strokePattern: dashed ? [4, 3] : null };
		});
		this.graph = new Dygraph(this.plot, data, {
			...changing,
			labels: ["time", ...lines.map((s) => `s${s.id}`)],
			series, legend: "never", interactionModel: {}, strokeWidth: 1.25, highlightCircleSize: 2.5, rightGap: 4,
			axes: {
				x: { ...axis, axisLabelFormatter: (d) => clock(d.getTime()).slice(0, 5), pixelsPerLabel: 70 },
				y: { ...axis, axisLabelFormatter: (v) => axisWord(v, options.unit), axisLabelWidth: 58, pixelsPerLabel: 24 },
			},
			highlightCallback: (_e, _x, _points, row) => this.point(row),
			unhighlightCallback: () => this.point(null),
		});
		this.follow();
	}

	/** The end of the axis: a round number above the peak that stays while the peak moves little. */
	top(lines) {
		const peak = Math.max(0, ...lines.map((s) => s.peak ?? 0));
		if (this.options.most && peak <= this.options.most) return this.options.most;
		if (peak === 0) return 1;
		const unit = 10 ** Math.floor(Math.log10(peak));
		return unit * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((m) => m * unit >= peak * 1.02 || m === 10);
	}

	point(row) {
		this.hover = row;
		this.table(this.lines());
	}

	/** Colours are read again: the scheme changed. */
	recolour() {
		this.key = null;
		this.draw();
	}
}

function css(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axisWord(v, unit) {
	if (v === 0) return "0";
	if (unit === "") return count(v);
	const [number, word] = si(v, unit);
	return `${number.replace(/\.0+$|(\.\d*[1-9])0+$/, "$1")} ${word}`;
}
