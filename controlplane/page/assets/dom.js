// SPDX-License-Identifier: Apache-2.0
// Elements. Text is set as text alone: subscribers choose names.

/** Makes an element: properties, then children that are elements or text. */
export function el(name, props = {}, ...children) {
	const e = document.createElement(name);
	for (const [k, v] of Object.entries(props)) {
		if (k === "class") e.className = v;
		else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
		else if (k in e && typeof v !== "string") e[k] = v;
		else e.setAttribute(k, v);
	}
	e.append(...children);
	return e;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
	const e = document.createElementNS(SVG, name);
	for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
	e.append(...children);
	return e;
}

/** Sets text only where it changed, so that nothing is laid out for nothing. */
export function say(e, text) {
	if (e.textContent !== text) e.textContent = text;
}

export function byId(id) {
	return document.getElementById(id);
}

/** Makes the rows of a table those of list; rows stay, cells change. make(cells) has the text of each cell or an element. */
export function fill(body, list, cells, each) {
	while (body.rows.length > list.length) body.deleteRow(-1);
	list.forEach((item, i) => {
		const texts = cells(item);
		const row = body.rows[i] ?? body.insertRow();
		while (row.cells.length < texts.length) row.insertCell();
		while (row.cells.length > texts.length) row.deleteCell(-1);
		texts.forEach((t, k) => {
			const cell = row.cells[k];
			if (t instanceof Node) {
				const old = cell.firstChild;
				if (old?.isEqualNode?.(t)) return;
				if (old?.nodeName === "A" && t.nodeName === "A") { // which may have the focus
					old.href = t.href;
					say(old, t.textContent);
				} else cell.replaceChildren(t);
			} else {
				if (cell.firstElementChild) cell.replaceChildren();
				say(cell, t);
			}
		});
		each?.(row, item);
	});
}

/** The scale of values that an attribute takes; colours follow the style sheet. */
export function colour(n) {
	return getComputedStyle(document.documentElement).getPropertyValue(`--s${n}`).trim();
}
