// SPDX-License-Identifier: Apache-2.0
// One subscriber: what its session is, what flows, its rules, its packets as they go.
import { el, say, fill } from "./dom.js";
import { bits, packets, octets, count, hex, moment } from "./format.js";
import { Panel } from "./plots.js";
import { Store } from "./store.js";
import { homeLink, given, since } from "./tables.js";

const FACTS = [["worker", "worker"], ["port", "port"], ["encapsulation", "encap"], ["S-tag", "s_tag"], ["C-tag", "c_tag"],
	["PPPoE session", "pppoe_session"], ["MAC", "mac"], ["IPv4", "ue_ip4"], ["IPv6", "ue_ip6"], ["user", "user"], ["DNN", "dnn"],
	["SEID", "seid_hex"], ["SEID of the CP", "cp_seid_hex"],
	["PFCP peer", "association"], ["buffered packets", "buffered"]];
const HEX = [["TEID here", "teid_local"], ["TEID of the peer", "teid_peer"]];
const rate = (kbit) => (kbit ? bits(kbit * 1000) : "as in the profile");
const HOME = [["subscriber", (h) => h.user], ["state", (h) => h.state], ["since", (h) => since(h.since)], ["kind", (h) => h.kind], ["line", (h) => h.line],
	["circuit id", (h) => h.circuit], ["remote id", (h) => h.remote], ["MAC", (h) => h.mac], ["IPv4", (h) => given(h.ipv4)], ["IPv6", (h) => given(h.ipv6)],
	["delegated", (h) => h.delegated], ["profile", (h) => h.profile], ["instance", (h) => h.instance],
	["access list up", (h) => h.uplink_list], ["access list down", (h) => h.downlink_list],
	["scheduler profile", (h) => h.scheduler_profile],
	["rate up", (h) => (h.profile ? rate(h.up_kbit) : "")], ["rate down", (h) => (h.profile ? rate(h.down_kbit) : "")],
	["bytes up", (h) => octets(h.uplink_bytes)], ["bytes down", (h) => octets(h.downlink_bytes)], ["Acct-Session-Id", (h) => h.session]];
const TRACED = 500; // packets of a trace that are kept

/** Writes facts, [title, text], those that say something; where nothing changed, what a reader has marked stays marked. */
function list(dl, facts) {
	const said = facts.filter(([, v]) => v);
	const text = JSON.stringify(said);
	if (text === dl.said) return;
	dl.said = text;
	dl.replaceChildren(...said.map(([title, v]) => el("div", {}, el("dt", {}, title), el("dd", {}, v))));
}

function table(name, heads) {
	const body = el("tbody");
	const head = el("tr", {}, ...heads.map(([title, num]) => el("th", { scope: "col", class: num ? "num" : "" }, title)));
	return [el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name }, el("table", { "aria-label": name }, el("thead", {}, head), body)), body];
}

export class Subscriber {
	constructor(name, trace) {
		this.name = name;
		this.store = new Store();
		this.note = el("span", { class: "unit", role: "status" });
		this.facts = el("dl", { class: "facts" });
		this.panels = [
			new Panel(this.store, { group: "bps", key: "subscriber", title: "Throughput", unit: "b/s", format: bits }),
			new Panel(this.store, { group: "pps", key: "subscriber", title: "Packets", unit: "p/s", format: packets }),
			new Panel(this.store, { group: "drop", key: "subscriber", title: "Dropped", unit: "p/s", format: packets }),
		];
		const [rules, rows] = table("Rules", [["PDR", 1], ["precedence", 1], ["from", 0], ["FAR", 1], ["QER", 1],
			["QFI", 1], ["URR", 1], ["gate", 0], ["MBR kbit/s", 1], ["action", 0], ["to", 0], ["peer", 0],
			["packets", 1], ["bytes", 1], ["dropped", 1], ["buffered", 1]]);
		const [usage, urrs] = table("Usage", [["URR", 1], ["reports", 1], ["up", 1], ["down", 1], ["quota left", 1], ["state", 0]]);
		const [others, homes] = table("All of this name", [["session", 0], ["state", 0], ["line", 0], ["MAC", 0], ["IPv4", 0]]);
		const [tries, attempts] = table("Attempts to sign in", [["last", 0], ["outcome", 0], ["times", 1], ["of", 0], ["kind", 0], ["first", 0]]);
		this.homes = homes;
		this.attempts = attempts;
		this.home = el("dl", { class: "facts" });
		this.line = el("section", { class: "panel", "aria-label": "Access line", hidden: true }, el("div", { class: "head" }, el("h2", {}, "Access line")), this.home);
		this.others = el("section", { class: "panel", "aria-label": "All of this name", hidden: true },
			el("div", { class: "head" }, el("h2", {}, "All of this name")), others);
		this.tries = el("section", { class: "panel", "aria-label": "Attempts to sign in", hidden: true },
			el("div", { class: "head" }, el("h2", {}, "Attempts to sign in")), tries);
		this.rules = rows;
		this.urrs = urrs;
		this.usage = el("section", { class: "panel", "aria-label": "Usage" }, el("div", { class: "head" }, el("h2", {}, "Usage since the last report")), usage);
		this.element = el("div", { class: "stack" },
			el("section", { class: "panel", "aria-label": "Session" },
				el("div", { class: "head" }, this.title = el("h2", {}, name), this.note), this.facts),
			this.line, this.others, this.tries,
			el("div", { class: "panels" }, ...this.panels.map((p) => p.element)),
			this.ruled = el("section", { class: "panel", "aria-label": "Rules" }, el("div", { class: "head" }, el("h2", {}, "Rules")), rules), this.usage);
		this.allow(trace);
	}

	/** Who may trace has a button. */
	allow(trace) {
		if (trace === Boolean(this.button)) return;
		if (trace) {
			this.element.firstElementChild.after(this.tracer());
			return;
		}
		this.untrace();
		this.button.closest("section").remove();
		this.button = null;
	}

	tracer() {
		this.lines = el("div", { class: "trace", tabindex: "0", role: "log", "aria-label": "Packets as they go" });
		this.button = el("button", { class: "plain", type: "button", "aria-pressed": "false", onclick: () => this.trace() }, "Trace its packets");
		return el("section", { class: "panel", "aria-label": "Trace" },
			el("div", { class: "head" }, el("h2", {}, "Trace"), this.button), this.lines);
	}

	trace() {
		if (this.source) {
			this.untrace();
			return;
		}
		say(this.button, "Stop");
		this.button.setAttribute("aria-pressed", "true");
		this.source = new EventSource(`/page/trace?${new URLSearchParams({ session: this.object ?? this.name })}`);
		this.source.onmessage = (e) => this.print(e.data);
		this.source.addEventListener("bye", (e) => {
			this.print(JSON.parse(e.data));
			this.untrace();
		});
		this.source.onerror = () => {
			this.print("The trace broke off, or the gateway runs as many as it may.");
			this.untrace();
		};
	}

	print(text) {
		this.lines.append(el("div", {}, text));
		while (this.lines.childElementCount > TRACED) this.lines.firstElementChild.remove();
		this.lines.scrollTop = this.lines.scrollHeight;
	}

	untrace() {
		this.source?.close();
		this.source = null;
		if (this.button) {
			say(this.button, "Trace its packets");
			this.button.setAttribute("aria-pressed", "false");
		}
	}

	show() {
		this.seen = true;
		this.ask();
	}

	hide() {
		this.seen = false;
		clearTimeout(this.again);
		this.untrace();
		for (const p of this.panels) p.end();
	}

	async ask() {
		let why = "";
		try {
			const answer = await fetch(`/page/subscriber?${new URLSearchParams({ name: this.name })}`);
			if (!this.seen) return;
			if (answer.ok) this.fill(await answer.json());
			else why = (await answer.text()).trim();
		} catch {
			why = "the gateway's control plane does not answer";
		}
		if (!this.seen) return;
		if (why) say(this.note, why);
		this.again = setTimeout(() => this.ask(), 1000);
	}

	fill(data) {
		say(this.note, data.error);
		if (data.session) this.about(data.session);
		this.signedIn(data.homes ?? []);
		this.ruled.hidden = !data.session && this.tries.hidden === false;
		this.object = data.session?.name ?? (data.homes?.[0]?.object || this.name);
		this.store.load(data.history);
		for (const p of this.panels) p.draw();
		fill(this.rules, data.rules ?? [], (r) => [String(r.pdr), String(r.precedence), r.source, String(r.far),
			r.qers.join(", "), String(r.qfi ?? ""), r.urrs.join(", "), r.gate, String(r.mbr_kbps ?? ""),
			r.action, r.destination,
			[r.peer, hex(r.teid_peer)].filter((t) => t && !/^(0\.0\.0\.0|::)$/.test(t)).join(" "),
			count(r.packets), octets(r.bytes), count(r.dropped), count(r.buffered)],
		(row) => { for (const i of [0, 1, 3, 4, 5, 6, 8, 12, 13, 14, 15]) row.cells[i].className = "num"; });
		this.usage.hidden = !data.urrs?.length;
		fill(this.urrs, data.urrs ?? [], (u) => [String(u.urr), String(u.sequence), octets(u.bytes.uplink), octets(u.bytes.downlink),
			u.quota_left.total === null ? "none set" : octets(u.quota_left.total), u.exhausted ? "used up" : "measuring"],
		(row) => { for (const i of [0, 1, 2, 3, 4]) row.cells[i].className = "num"; });
	}

	/** Who has the access line, and how their sign-ins went. */
	signedIn(all) {
		const [h] = all;
		this.line.hidden = !h;
		this.others.hidden = all.length < 2;
		this.tries.hidden = !h?.attempts?.length;
		if (!h) return;
		say(this.title, h.user || this.name);
		list(this.home, HOME.map(([title, get]) => [title, get(h)]));
		fill(this.homes, all, (o) => [homeLink(o.object || o.mac), o.state, o.line, o.mac, given(o.ipv4)]);
		fill(this.attempts, h.attempts ?? [], (a) => [moment(a.last), a.why || "let in", count(a.count), a.user, a.kind, moment(a.first)],
			(row) => { row.cells[2].className = "num"; });
	}

	about(s) {
		const facts = [...FACTS.map(([title, key]) => [title, String(s[key] ?? "")]), ...HEX.map(([title, key]) => [title, hex(s[key])])]
			.filter(([, v]) => v && !["0", "none", "::", "0.0.0.0", "00:00:00:00:00:00"].includes(v));
		list(this.facts, facts);
	}
}
