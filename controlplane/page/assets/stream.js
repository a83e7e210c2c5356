// SPDX-License-Identifier: Apache-2.0
// The one stream of the page. It comes back by itself, and says in words why it is away.

/** handlers: hello(data), tick(data), status(data), away(why). */
export function open(handlers) {
	let source, timer, bye = "";
	const start = () => {
		source = new EventSource("/page/stream");
		const on = (name, fn) => source.addEventListener(name, (e) => fn(JSON.parse(e.data)));
		on("hello", (data) => { bye = ""; handlers.hello(data); });
		on("tick", handlers.tick);
		on("status", handlers.status);
		on("bye", (why) => { bye = why; });
		source.onerror = () => {
			handlers.away(bye || "The gateway's control plane does not answer.");
			source.close();
			clearTimeout(timer);
			timer = setTimeout(again, 1000);
		};
	};
	// EventSource hides why a stream was refused: a plain request gets the reason.
	const again = async () => {
		const stop = new AbortController();
		try {
			const answer = await fetch("/page/stream", { signal: stop.signal });
			const why = answer.ok ? "" : (await answer.text()).trim();
			stop.abort();
			if (answer.status === 401) return location.assign("/login");
			if (!why) return start();
			handlers.away(why);
		} catch {
			handlers.away(bye || "The gateway's control plane does not answer.");
		}
		timer = setTimeout(again, 1000);
	};
	start();
	addEventListener("pagehide", () => source.close());
}
