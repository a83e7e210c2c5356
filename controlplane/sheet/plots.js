// SPDX-License-Identifier: Apache-2.0
// Draws what elements of class plot have as data, with dygraphs. The tables of the page have the figures as text.
"use strict";
addEventListener("DOMContentLoaded", () => {
	const FONT = "12px system-ui, \"Liberation Sans\", Arial, sans-serif";
	const digits = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 5 });
	const ruler = document.createElement("canvas").getContext("2d");
	ruler.font = FONT;
	const width = (s) => ruler.measureText(s).width;
	const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	// dygraphs takes labels as HTML
	const text = (s) => s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

	function word(v, axis) {
		if (axis.names) return text(axis.names[v] ?? "");
		if (axis.clock) return new Date(v).toISOString().slice(11, 19);
		let prefix = 0;
		for (; axis.unit && axis.unit !== "%" && Math.abs(v) >= 999.5 && prefix < 5; prefix++) v /= 1000;
		return text(`${digits.format(v)} ${["", "k", "M", "G", "T", "P"][prefix]}${axis.unit}`.trim());
	}

	// The ticks of an axis of names: as many as have room.
	const ticks = (names, room) => (a, b, pixels) => {
		const step = Math.ceil(names.length * room / pixels);
		return names.map((name, v) => ({ v, label: text(name) })).filter((tick) => tick.v % step === 0);
	};

	function axisOf(axis, more) {
		const one = {
			axisLineColor: css("--soft"), gridLineColor: css("--grid"), axisLabelFontSize: 12, logscale: axis.log,
		};
		one.axisLabelFormatter = (v) => axis.clock ? v.toISOString().slice(11, 16) : word(v, axis);
		one.valueFormatter = (v) => word(v, axis);
		if (axis.names) one.ticker = ticks(axis.names, Math.max(...axis.names.map(width)) + 8);
		return { ...one, ...more };
	}

	function legendOf(box) {
		if (!box.nextElementSibling?.matches(".legend")) {
			box.insertAdjacentHTML("afterend", "<div class=\"legend\"></div>");
		}
		return box.nextElementSibling;
	}

	// What both kinds have. names: of the lines, in order.
	const common = (box, names) => ({
		labels: ["x", ...names.map((_, i) => String(i))], // names need not differ
		legend: names.length > 1 || names[0] ? "always" : "never", labelsDiv: legendOf(box),
		legendFormatter: (d) => {
			const at = d.xHTML ? `<span>${d.xHTML}:</span> ` : "";
			return at + d.series.filter((s) => !at || s.yHTML).map((s) => `<span>${s.dashHTML}
				<b style="color: ${s.color}">${text(names[s.label])}</b> ${s.yHTML ?? ""}</span>`).join(" ");
		},
		interactionModel: {}, highlightCircleSize: 4,
	});

	function lines(box, p) {
		const series = {};
		p.lines.forEach((l, i) => {
			series[i] = {
				color: css(`--s${l.style}`), strokePattern: l.dashed ? [5, 4] : null,
				strokeWidth: l.alone ? 0 : 2, drawPoints: !l.bare, pointSize: 3,
			};
		});
		const rows = p.x.clock ? p.rows.map(([x, ...y]) => [new Date(x), ...y]) : p.rows;
		const xs = p.rows.map((row) => row[0]);
		let window = null;
		if (p.x.names) window = [-0.5, p.x.names.length - 0.5];
		else if (p.x.zero) window = [0, Math.max(...xs)];
		const left = p.lines.length && p.y.unit ? 66 : 56;
		return new Dygraph(box, rows, {
			...common(box, p.lines.map((l) => l.name)), series, rightGap: 14, dateWindow: window,
			valueRange: p.y.most ? [0, p.y.most * 1.04] : null, includeZero: p.y.zero,
			customBars: p.spread, fillGraph: p.steps, stepPlot: p.steps, connectSeparatedPoints: !p.gaps,
			xlabel: text(p.x.label), ylabel: text(p.y.label),
			axes: {
				x: axisOf(p.x, { pixelsPerLabel: 60 }),
				y: axisOf(p.y, { pixelsPerLabel: 36, axisLabelWidth: left }),
			},
		});
	}

	// A bar is a point of its value at its place, drawn from 0.
	function bars(box, p) {
		const last = p.bars.length - 1;
		box.style.height = `${26 * p.bars.length + 52}px`;
		const left = Math.min(Math.max(...p.bars.map((b) => width(b.name))) + 6, box.clientWidth * 0.45);
		const room = box.clientWidth - left - 20;
		const end = Math.max(...p.bars.map((b) =>
			Math.max(b.value, b.high) * room / Math.max(room - width(b.label) - 12, 40)));
		const styles = [...new Set(p.bars.map((b) => b.style))].sort();
		const series = {};
		styles.forEach((style, i) => { series[i] = { color: css(`--s${style}`) }; });
		const rows = p.bars.map((b, i) =>
			[b.value, ...styles.map((style) => style === b.style ? last - i : null)]);
		const names = p.bars.map((b) => b.name).reverse();
		return new Dygraph(box, rows.sort((a, b) => a[0] - b[0]), {
			...common(box, styles.map((style) => p.key?.[style] ?? "")), series,
			legend: styles.length > 1 ? "always" : "never", highlightCircleSize: 0, xlabel: text(p.x.label),
			dateWindow: [0, end || 1], valueRange: [-0.6, last + 0.6],
			axes: {
				x: axisOf(p.x, { pixelsPerLabel: 60 }),
				y: axisOf({ ...p.y, names },
					{ drawGrid: false, axisLabelWidth: left, ticker: ticks(names, 12) }),
			},
			plotter: (e) => {
				const { drawingContext: c, dygraph: g } = e;
				c.font = FONT;
				for (const point of e.points.filter((at) => at.yval !== null && !isNaN(at.yval))) {
					const b = p.bars[last - point.yval], y = point.canvasy;
					c.fillStyle = e.color;
					c.fillRect(g.toDomXCoord(0), y - 8, point.canvasx - g.toDomXCoord(0), 16);
					c.fillStyle = c.strokeStyle = css("--ink");
					if (b.high > b.low) {
						c.beginPath();
						c.moveTo(g.toDomXCoord(b.low), y);
						c.lineTo(g.toDomXCoord(b.high), y);
						c.stroke();
					}
					c.fillText(b.label, g.toDomXCoord(Math.max(b.value, b.high)) + 6, y + 4);
				}
			},
		});
	}

	const boxes = document.querySelectorAll(".plot");
	let graphs = [], wide = 0;
	function draw() {
		wide = document.body.clientWidth;
		graphs.forEach((g) => g.destroy());
		graphs = [...boxes].map((box) => {
			const p = JSON.parse(box.dataset.plot);
			return (p.bars ? bars : lines)(box, p);
		});
	}
	draw();
	for (const query of ["(prefers-color-scheme: dark)", "print"]) {
		matchMedia(query).addEventListener("change", draw);
	}
	new ResizeObserver(() => wide === document.body.clientWidth || draw()).observe(document.body);
});
