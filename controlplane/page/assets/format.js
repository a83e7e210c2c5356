// SPDX-License-Identifier: Apache-2.0
// Numbers in words: three digits that count, one unit, the same width each second.

const prefixes = ["", "k", "M", "G", "T", "P"];

/** Three digits that count: 1.23, 12.3, 123. */
function digits(v) {
	const a = Math.abs(v);
	return v.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
}

/** A rate with its prefix: [number, unit]. null: a dash. */
export function si(v, unit) {
	if (v === null || v === undefined || Number.isNaN(v)) return ["–", ""];
	let at = 0;
	let a = Math.abs(v);
	while (a >= 999.5 && at < prefixes.length - 1) {
		a /= 1000;
		at++;
	}
	const scaled = v < 0 ? -a : a;
	const text = at === 0 && Number.isInteger(v) && (v === 0 || unit === "B") ? String(v) : digits(scaled);
	return [text, prefixes[at] + unit];
}

export function join([number, unit]) {
	return unit ? `${number} ${unit}` : number;
}

export const bits = (v) => join(si(v, "b/s"));
export const packets = (v) => join(si(v, "p/s"));
export const octets = (v) => join(si(v, "B"));
export const messages = (v) => join(si(v, "/s"));
export const percent = (v) => (v == null || Number.isNaN(v) ? "–" : `${v.toFixed(1)} %`);
export const milli = (v) => (v == null || Number.isNaN(v) ? "–" : `${digits(v)} ms`);
export const ticks = (v) => (v == null || Number.isNaN(v) ? "–" : v >= 999.5 ? count(v) : digits(v));

/** A count with a thin space between thousands. */
export function count(v) {
	if (v === null || v === undefined || Number.isNaN(v)) return "–";
	return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

export function clock(ms) {
	return new Date(ms).toLocaleTimeString("en-GB");
}

/** A time of an answer, in the reader's zone: 2026-01-31 12:34:56. */
export const moment = (time) => new Date(time).toLocaleString("sv-SE");

/** How long ago: 3 h 12 min. */
export function span(seconds) {
	const s = Math.max(0, Math.floor(seconds));
	if (s < 60) return `${s} s`;
	if (s < 3600) return `${Math.floor(s / 60)} min`;
	if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
	return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const hex = (v) => (v ? `0x${v.toString(16)}` : "");
