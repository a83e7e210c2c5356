// SPDX-License-Identifier: Apache-2.0
// The last ten minutes, as the gateway's ring has them: a hello with everything, then what each sample changed.

export class Store {
	constructor(samples = 600) {
		this.samples = samples;
		this.clear();
	}

	clear() {
		this.times = [];
		this.series = new Map(); // by id
		this.groups = new Map(); // group -> Map(name -> series)
		this.version = 0; // rises when lines come or go
		this.tick = 0;
	}

	begin({ id, g, n }, values, last) {
		const s = { id, group: g, name: n, values, last };
		this.series.set(id, s);
		if (!this.groups.has(g)) this.groups.set(g, new Map());
		this.groups.get(g).set(n, s);
		this.version++;
		return s;
	}

	/** Replaces everything by what a hello brought. */
	load(history) {
		this.clear();
		let at = 0;
		this.times = history.t.map((d) => (at += d));
		for (const s of history.series) this.begin(s, s.v ?? null, s.v ? (s.v.at(-1) ?? null) : s.l);
		this.tick++;
	}

	/** Applies one sample; lines that it does not name stay as they are. */
	apply(change) {
		this.times.push(change.t);
		const over = this.times.length > this.samples;
		if (over) this.times.shift();
		for (const head of change.new ?? []) {
			this.begin(head, head.keep ? new Array(this.times.length - 1).fill(null) : null, null);
		}
		for (const id of change.gone ?? []) this.end(id);
		for (const [id, v] of Object.entries(change.v)) {
			const s = this.series.get(Number(id));
			if (s) s.last = v;
		}
		for (const s of this.series.values()) {
			if (!s.values) continue;
			s.values.push(s.last);
			if (s.values.length > this.times.length) s.values.shift();
		}
		this.tick++;
	}

	end(id) {
		const s = this.series.get(id);
		if (!s) return;
		this.series.delete(id);
		this.groups.get(s.group)?.delete(s.name);
		this.version++;
	}

	group(name) {
		return [...(this.groups.get(name)?.values() ?? [])];
	}

	last(group, name) {
		return this.groups.get(group)?.get(name)?.last ?? null;
	}

	/** The sum of the last values of a group whose names end so; null when none is known. */
	sum(group, ending) {
		let sum = null;
		for (const s of this.group(group)) {
			if (s.name.endsWith(ending) && s.last !== null) sum = (sum ?? 0) + s.last;
		}
		return sum;
	}
}
