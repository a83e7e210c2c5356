// SPDX-License-Identifier: Apache-2.0
import { el, say, byId, fill } from "./dom.js";
import * as format from "./format.js";
import { Store } from "./store.js";
import { Panel } from "./plots.js";
import { Graph } from "./graph.js";
import { Table, get, topColumns } from "./tables.js";
import { Subscriber } from "./subscriber.js";
import { open } from "./stream.js";

const store = new Store();
const panels = [
	{ group: "bps", title: "Throughput", unit: "b/s", format: format.bits, always: true },
	{ group: "pps", title: "Packets", unit: "p/s", format: format.packets, always: true },
	{ group: "dnn", title: "Throughput by DNN", unit: "b/s", format: format.bits },
	{ group: "drop", title: "Drops by reason", unit: "p/s", format: format.packets, always: true, none: "none since the data plane started" },
	{ group: "load", title: "Workers' load", unit: "%", format: format.percent, most: 100 },
	{ group: "sessions", title: "Sessions", unit: "", format: format.count, always: true },
	{ group: "pfcp", title: "PFCP messages", unit: "/s", format: format.messages },
	{ group: "latency", title: "PFCP requests, time to answer", unit: "ms", format: format.milli },
	{ group: "signin", title: "Sign-ins by phase", unit: "ms", format: format.milli },
	{ group: "buffers", title: "Packet buffers", unit: "%", format: format.percent, most: 100 },
].map((options) => new Panel(store, options));
byId("panels").prepend(...panels.map((p) => p.element));
const graph = new Graph(store);
let trace = false;
let status = null;

// Tiles: the gateway in one line.
const mean = (list) => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : null);
const loads = () => store.group("load").map((s) => s.last).filter((v) => v !== null);
const tiles = [
	["In", () => format.si(store.sum("bps", " in"), "b/s")],
	["Out", () => format.si(store.sum("bps", " out"), "b/s")],
	["Packets in", () => format.si(store.last("total", "in"), "p/s")],
	["Packets out", () => format.si(store.last("total", "out"), "p/s")],
	["Dropped", () => format.si(store.last("total", "dropped"), "p/s"),
		() => store.last("total", "dropped") - store.last("total", "served") > 0.01 * store.last("total", "in")],
	["Sessions", () => [format.count(store.last("sessions", "sessions")), ""]],
	["Busiest worker", () => [loads().length ? Math.max(...loads()).toFixed(1) : "–", "%"], () => Math.max(0, ...loads()) > 95],
	["Workers, mean", () => [mean(loads())?.toFixed(1) ?? "–", "%"]],
	["Buffers in use", () => [store.last("buffers", "in use")?.toFixed(1) ?? "–", "%"], () => store.last("buffers", "in use") > 90],
].map(([title, value, bad]) => {
	const number = document.createTextNode("–"), unit = el("small");
	const tile = el("div", { class: "tile" }, el("dt", {}, title), el("dd", {}, number, " ", unit));
	byId("tiles").append(tile);
	return { tile, number, unit, value, bad };
});

function drawTiles() {
	for (const t of tiles) {
		const [number, unit] = t.value();
		if (t.number.data !== number) t.number.data = number;
		say(t.unit, unit);
		t.tile.classList.toggle("bad", Boolean(t.bad?.()));
	}
}

// Draws once a frame, and only while the page is visible.
let due = false;
function draw() {
	if (due) return;
	due = true;
	requestAnimationFrame(() => {
		due = false;
		if (byId("view-overview").hidden) return;
		drawTiles();
		for (const p of panels) p.draw();
		graph.draw();
	});
}

function head() {
	const away = status === null || status.data_plane !== "ready";
	byId("state").className = `state ${away ? "bad" : "good"}`;
	say(byId("state-text"), status === null ? "away" : { ready: "forwarding", away: "data plane away", refused: "configuration refused" }[status.data_plane] ?? status.data_plane);
	banner(status !== null && away ? status.error : "");
	if (status === null) return;
	say(byId("host"), status.host || "Isthmus");
	document.title = `${status.host || "gateway"} · Isthmus`;
	const versions = status.dp_version && status.dp_version !== status.version ? `${status.version}, data plane ${status.dp_version}` : status.version;
	say(byId("versions"), `${versions || "Isthmus"} · ${format.count(status.objects)} objects · control plane up ${format.span((Date.now() - Date.parse(status.started)) / 1000)}`);
}

function banner(text) {
	const b = byId("banner");
	b.hidden = text === "";
	say(b, text);
}

open({
	hello(data) {
		status = data.status;
		trace = data.trace;
		for (const v of view) v.allow?.(trace);
		byId("login").hidden = data.token !== "";
		byId("logout").hidden = data.token === "";
		say(byId("logout"), `Sign out ${data.token}`);
		store.load(data.history);
		head();
		draw();
	},
	tick(data) {
		store.apply(data);
		if (data.t % 10000 < 1000) head();
		draw();
	},
	status(data) {
		status = data;
		head();
	},
	away(why) {
		status = null;
		head();
		banner(`${why} Figures are those of ${store.times.length ? format.clock(store.times.at(-1)) : "no time yet"}; this page tries again each second.`);
	},
});

// Top subscribers: the server looks at all sessions as seldom as that costs little.
const top = el("tbody");
byId("top").append(el("thead", {}, el("tr", {}, ...topColumns.map((c) => el("th", { scope: "col", class: c.num ? "num" : "" }, c.title)))), top);
async function askTop() {
	let wait = 2000;
	if (!byId("view-overview").hidden && !document.hidden) {
		const [data, why] = await get("session", { sort: "-bps", limit: 12 });
		if (data) {
			say(byId("top-note"), data.rates ? `mean of ${Math.round(data.every_s)} s, ${format.clock(data.at)}` : "measuring");
			fill(top, data.rows, (r) => topColumns.map((c) => c.get(r)), (row) => topColumns.forEach((c, i) => { row.cells[i].className = c.num ? "num" : ""; }));
			wait = Math.max(1000, Math.min(data.every_s * 1000, data.at + data.every_s * 1000 - Date.now() + 100));
		} else say(byId("top-note"), why);
	}
	setTimeout(askTop, wait);
}
askTop();

// Views, by the address behind #.
let view = [];
function route() {
	const [, name = "", rest = ""] = location.hash.match(/^#\/([^/]*)\/?(.*)$/) ?? [];
	for (const v of view) v.hide();
	view = [];
	const overview = name === "" || name === "graph";
	const parent = { "": "", subscriber: "session", home: "subscribers" }[name] ?? name;
	byId("view-overview").hidden = !overview;
	byId("view-tables").hidden = overview || parent !== name;
	byId("view-subscriber").hidden = parent === name;
	if (parent !== name) {
		view = [new Subscriber(decode(rest), trace)];
		byId("view-subscriber").replaceChildren(view[0].element);
	} else if (!overview) {
		view = ({ peers: ["association", "path", "neighbour"], route: ["route"], subscribers: ["subscriber"] }[name] ?? ["session"]).map((t) => new Table(t));
		byId("view-tables").replaceChildren(...view.map((v) => v.element));
		byId("view-tables").className = "stack";
	}
	for (const v of view) v.show();
	for (const a of document.querySelectorAll("nav a")) {
		if (a.hash === `#/${parent}`) a.setAttribute("aria-current", "page");
		else a.removeAttribute("aria-current");
	}
	if (name === "graph") byId("graph-title").scrollIntoView();
	draw();
}

function decode(text) {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

byId("logout").addEventListener("click", async () => {
	const answer = await fetch("/v1/logout", { method: "POST", headers: { "Isthmus-Client": "page" } }).catch(() => null);
	if (answer?.ok) location.assign("/login");
	else banner("You are still signed in: the gateway's control plane does not answer.");
});
// As a plain link it would be a view.
document.querySelector(".skip").addEventListener("click", (e) => {
	e.preventDefault();
	byId("main").focus();
});
addEventListener("hashchange", () => {
	route();
	byId("main").focus({ preventScroll: true });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...panels, ...view.flatMap((v) => v.panels ?? [])].forEach((p) => p.recolour()));
document.addEventListener("visibilitychange", draw);
route();
