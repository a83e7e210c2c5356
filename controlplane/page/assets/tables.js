// SPDX-License-Identifier: Apache-2.0
// Tables of the gateway: searched, sorted and cut into pages by the server.
import { el, say, fill } from "./dom.js";
import { bits, packets, octets, count, hex, clock, milli, span } from "./format.js";

const LIMIT = 50;
const text = (key) => ({ key, get: (r) => String(r[key] ?? "") });
const number = (key, format = count) => ({ key, num: true, get: (r) => format(r[key]) });
const yes = (key, word, no) => ({ key, get: (r) => (r[key] ? word : no) });

const link = (view) => (name, text = name) => el("a", { href: `#/${view}/${encodeURIComponent(name)}` }, text);
export const subscriberLink = link("subscriber");
export const homeLink = link("home");

/** An address that is one, or nothing. */
export const given = (a) => (a && !/^(0\.0\.0\.0|::(\/0)?)$/.test(a) ? a : "");
export const since = (time) => (Date.parse(time) > 0 ? span((Date.now() - Date.parse(time)) / 1000) : "");

const session = { title: "session", key: "name", get: (r) => subscriberLink(r.name) };
const where = { title: "address", key: "ue_ip4", get: (r) => [r.ue_ip4, r.ue_ip6].filter(given).join(" ") };
const access = {
	title: "access", key: "port", get: (r) => (r.encap !== "none"
		? `${r.port} ${r.s_tag}.${r.c_tag}${r.pppoe_session ? ` PPPoE ${r.pppoe_session}` : ""}` : `${hex(r.teid_local)} ${r.dnn ?? ""}`.trim()),
};

export const topColumns = [session, where,
	{ title: "up", key: "uplink_bps", num: true, get: (r) => bits(r.uplink_bps) },
	{ title: "down", key: "downlink_bps", num: true, get: (r) => bits(r.downlink_bps) },
	{ title: "packets", key: "pps", num: true, get: (r) => packets(r.pps) }];

/** Each: the server's table, its title, its columns, how it is sorted first. */
export const tables = {
	session: {
		title: "Sessions", hint: "name, address, TEID, user, DNN", sort: "-bps", columns: [session, where, access,
			{ title: "user", key: "user", get: (r) => r.user }, { title: "peer", key: "association", get: (r) => r.association },
			...topColumns.slice(2), { title: "bytes up", ...number("uplink_bytes", octets) }, { title: "bytes down", ...number("downlink_bytes", octets) },
			{ title: "dropped", key: "uplink_dropped", num: true, get: (r) => count(r.uplink_dropped + r.downlink_dropped) },
			{ title: "worker", ...number("worker") }],
	},
	subscriber: {
		title: "Subscribers of access lines", hint: "name, MAC, address, circuit id, line", sort: "line", columns: [
			{ title: "subscriber", key: "user", get: (r) => homeLink(r.object || r.user || r.mac, r.user || r.mac) },
			{ title: "state", ...text("state") }, { title: "kind", ...text("kind") }, { title: "line", ...text("line") },
			{ title: "MAC", ...text("mac") }, { title: "circuit id", ...text("circuit") },
			{ title: "IPv4", key: "ipv4", get: (r) => given(r.ipv4) }, { title: "IPv6", key: "ipv6", get: (r) => given(r.ipv6) },
			{ title: "delegated", ...text("delegated") }, { title: "profile", ...text("profile") },
			{ title: "since", key: "since", get: (r) => since(r.since) },
			{ title: "bytes up", ...number("uplink_bytes", octets) }, { title: "bytes down", ...number("downlink_bytes", octets) }],
		// Those who are not on line are in no table; their attempts are kept by name, MAC address and line.
		none: (query) => el("span", {}, "Nobody of this name. ", homeLink(query, `Attempts to sign in of ${query}`)),
	},
	association: {
		title: "PFCP associations", hint: "id, address, state", sort: "id", columns: [{ title: "peer", ...text("id") },
			{ title: "address", ...text("address") }, { title: "state", ...text("state") }, { title: "sessions", ...number("sessions") },
			{ title: "round trip", ...number("heartbeat_us", (v) => (v ? milli(v / 1000) : "–")) },
			{ title: "since", key: "since", get: (r) => since(r.since) }],
	},
	path: {
		title: "GTP-U paths", hint: "name, address", sort: "alive", columns: [{ title: "path", ...text("name") }, { title: "local", ...text("local") },
			{ title: "peer", ...text("peer") }, { title: "state", key: "alive", get: (r) => (!r.alive ? "no answer" : r.echo_received > 0 ? "alive" : "not heard yet") },
			{ title: "echo sent", ...number("echo_sent") }, { title: "answered", ...number("echo_received") },
			{ title: "error ind. in", ...number("error_indications_received") }],
	},
	neighbour: {
		title: "Neighbours", hint: "address, MAC, interface", sort: "interface", columns: [{ title: "interface", ...text("interface") },
			{ title: "address", ...text("address") }, { title: "MAC", ...text("mac") }, { title: "state", ...text("state") },
			{ title: "age", ...number("age_s", span) }, { title: "held", ...number("held") }],
	},
	route: {
		title: "Routes", hint: "prefix, next hop, interface, VRF", sort: "", columns: [{ title: "prefix", ...text("prefix") },
			{ title: "via", key: "via", get: (r) => r.via || "directly attached" }, { title: "interface", ...text("interface") },
			{ title: "VRF", key: "vrf", get: (r) => r.vrf || "default" }, { title: "state", ...yes("resolved", "resolved", "no neighbour") }],
	},
};

/** A table with search, sorting and pages. It asks again while it is seen. */
export class Table {
	constructor(name) {
		this.name = name;
		this.about = tables[name];
		this.sort = this.about.sort;
		this.offset = 0;
		this.query = "";
		this.note = el("span", { class: "unit", role: "status" });
		this.when = el("span", { class: "unit" }); // not read aloud each time
		this.body = el("tbody");
		this.none = el("p", { class: "empty", hidden: true });
		this.back = el("button", { class: "plain", type: "button", hidden: true, onclick: () => this.page(-LIMIT) }, "Back");
		this.next = el("button", { class: "plain", type: "button", hidden: true, onclick: () => this.page(LIMIT) }, "Next");
		const id = `table-${name}`;
		this.input = el("input", { type: "search", "aria-label": `Search ${this.about.title}`, placeholder: this.about.hint, maxlength: "64",
			oninput: () => this.later() });
		this.head = el("tr", {}, ...this.about.columns.map((c) => this.heading(c)));
		this.element = el("section", { class: "panel tall", "aria-labelledby": id },
			el("div", { class: "head" }, el("h2", { id }, this.about.title), this.note, this.when),
			el("form", { class: "search", role: "search", onsubmit: (e) => { e.preventDefault(); this.ask(); } }, this.input, this.back, this.next),
			el("div", { class: "scroll", tabindex: "0", role: "group", "aria-labelledby": id },
				el("table", { "aria-labelledby": id }, el("thead", {}, this.head), this.body)),
			this.none);
	}

	heading(c) {
		const h = el("th", { scope: "col", class: c.num ? "num" : "" },
			el("button", { type: "button", onclick: () => this.order(c) }, c.title ?? c.key));
		this.mark(h, c);
		return h;
	}

	mark(h, c) {
		const [down, key] = this.sort.startsWith("-") ? [true, this.sort.slice(1)] : [false, this.sort];
		if (key === c.key) h.setAttribute("aria-sort", down ? "descending" : "ascending");
		else h.removeAttribute("aria-sort");
	}

	order(c) {
		const first = c.num ? `-${c.key}` : c.key;
		const other = c.num ? c.key : `-${c.key}`;
		this.sort = this.sort === first ? other : first;
		this.offset = 0;
		this.about.columns.forEach((o, i) => this.mark(this.head.cells[i], o));
		this.ask();
	}

	page(by) {
		this.offset = Math.max(0, this.offset + by);
		this.ask();
	}

	later() {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.ask(), 200);
	}

	show() {
		this.seen = true;
		this.ask();
	}

	hide() {
		this.seen = false;
		clearTimeout(this.again);
	}

	async ask() {
		clearTimeout(this.again);
		const query = this.input.value.trim();
		if (query !== this.query) this.offset = 0;
		this.query = query;
		this.asked = (this.asked ?? 0) + 1;
		const mine = this.asked;
		const [data, why] = await get(this.name, { q: query, sort: this.sort, offset: this.offset, limit: LIMIT });
		if (mine !== this.asked || !this.seen) return;
		if (data) this.fill(data);
		else say(this.note, why);
		this.again = setTimeout(() => this.ask(), data ? Math.max(1000, Math.min(data.every_s * 1000, 10000)) : 2000);
	}

	fill(data) {
		const { columns } = this.about;
		const end = data.offset + data.rows.length;
		const found = this.query ? `${count(data.matched)} of ${count(data.total)}` : count(data.total);
		const part = data.matched > data.rows.length ? `${count(data.offset + 1)}–${count(end)} of ` : "";
		say(this.note, `${part}${found}${data.cut ? " and more" : ""}`);
		say(this.when, `looked at ${clock(data.at)}, every ${Math.round(data.every_s)} s`);
		const active = document.activeElement; // a button that is disabled would lose the focus
		this.back.disabled = data.offset === 0;
		this.next.disabled = end >= data.matched;
		if (active?.disabled) (active === this.next ? this.back : this.next).focus();
		this.back.hidden = this.next.hidden = this.back.disabled && this.next.disabled;
		const none = data.matched === 0 && this.query && this.about.none?.(this.query);
		this.none.hidden = !none;
		if (none && !this.none.firstChild?.isEqualNode(none)) this.none.replaceChildren(none);
		fill(this.body, data.rows, (r) => columns.map((c) => c.get(r)), (row) => {
			columns.forEach((c, i) => { row.cells[i].className = c.num ? "num" : ""; });
		});
	}
}

/** Asks for a part of a table: [answer, ""] or [null, why not]. */
export async function get(name, query) {
	try {
		const answer = await fetch(`/page/table/${name}?${new URLSearchParams(query)}`);
		if (!answer.ok) return [null, (await answer.text()).trim()];
		return [await answer.json(), ""];
	} catch {
		return [null, "the gateway's control plane does not answer"];
	}
}
