// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/controlplane/testkit/pagetest"
)

// controls are what a keyboard has to reach, in the document's order; kept for comparison.
const controls = `(window.controls = [...document.querySelectorAll(
	"a[href], button, input, [tabindex='0']")].filter((e) =>
	!e.disabled && e.checkVisibility({ visibilityProperty: true })))`

// disorder are the controls placed before their predecessor: above it in its column, or left of it in its row.
const disorder = `window.controls.slice(2).filter((e, i) => {
	const [a, b] = [window.controls[i + 1].getBoundingClientRect(), e.getBoundingClientRect()];
	return b.bottom <= a.top && b.left < a.right || b.right <= a.left && b.top < a.bottom && b.bottom > a.top;
}).map((e) => e.outerHTML.slice(0, 100))`

// focus returns the focused control, and faults of its visibility.
const focus = `(() => {
	const e = document.activeElement, r = e.getBoundingClientRect(), style = getComputedStyle(e);
	const at = window.controls.indexOf(e);
	const x = (Math.max(r.left, 0) + Math.min(r.right, innerWidth)) / 2;
	const y = (Math.max(r.top, 0) + Math.min(r.bottom, innerHeight)) / 2;
	const top = document.elementFromPoint(x, y);
	const wrong = at < 0 ? "" : style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2 ? "no outline" :
		top && (e.contains(top) || top.contains(e)) ? "" : "hidden under " + top?.outerHTML.slice(0, 80);
	return { at, wrong, html: e.outerHTML.slice(0, 100) };
})()`

// drawn: a view is complete.
const drawn = `document.querySelector("main > section:not([hidden]) td") && !document.getElementById("login").hidden &&
	(location.hash !== "#/" || document.querySelectorAll("#panels section:not([hidden])").length === 10 &&
	document.querySelectorAll("#top tbody tr").length === 12) || false`

type focused struct {
	At          int
	Wrong, HTML string
}

// A keyboard reaches every control of every view in the order in which they are seen, sees where it is, and is kept
// nowhere. A screen reader has a name for each, and for the table of each plot.
func TestBrowserKeyboard(t *testing.T) {
	l, b := open(t, &gateway{sessions: 60, homes: 30, mobile: true}, Options{
		Trace: func(context.Context, string, func(string) error) error { return nil }})
	home := "home/" + l.gateway.home(7).Object
	for _, view := range []string{"", "session", "subscribers", "peers", "route", "subscriber/ue-00003", home} {
		for _, width := range []int{1600, 375} {
			b.Size(width, 1000, "light")
			// Another address, so that the page starts again.
			b.Open(fmt.Sprintf("%s/?%d#/%s", l.server.URL, width, view))
			testkit.Until(t, view, func() bool {
				l.seconds(1)
				return pagetest.Eval[bool](b, drawn)
			})
			walk(t, b, fmt.Sprintf("%s at %d", view, width))
		}
		roles := b.Roles()
		for _, role := range []string{"table", "image", "button", "link", "searchbox", "group", "checkbox",
			"log"} {
			testkit.ErrorIf(t, slices.Contains(roles[role], ""), "%s: a %s without a name: %q", view, role,
				roles[role])
		}
		plots := pagetest.Eval[[]string](b, `[...document.querySelectorAll(".plot")].filter((p) =>
			p.checkVisibility()).map((p) => p.closest("section").querySelector("h2").textContent)`)
		for _, plot := range plots {
			testkit.ErrorIf(t, !slices.Contains(roles["table"], plot), "%s: no table %q: %q", view, plot,
				roles["table"])
		}
		testkit.ErrorIf(t, view == "" && len(plots) < 8, "plots: %q", plots)
	}
	b.Quiet()
}

// walk presses Tab through all controls, and back.
func walk(t *testing.T, b *pagetest.Browser, where string) {
	t.Helper()
	n := pagetest.Eval[int](b, controls+`.length`)
	testkit.ErrorIf(t, n < 8, "%s: %d controls", where, n)
	for _, e := range pagetest.Eval[[]string](b, disorder) {
		t.Errorf("%s: out of the order that is seen: %s", where, e)
	}
	for i := range n {
		b.Press("Tab")
		f := pagetest.Eval[focused](b, focus)
		testkit.FatalIf(t, f.At != i, "%s: Tab %d leads to %d of %d: %s", where, i, f.At, n, f.HTML)
		testkit.ErrorIf(t, f.Wrong != "", "%s: %s: %s", where, f.HTML, f.Wrong)
	}
	for i := n - 2; i >= 0; i-- {
		b.Press("Shift+Tab")
		f := pagetest.Eval[focused](b, focus)
		testkit.FatalIf(t, f.At != i, "%s: Shift+Tab leads to %d, not %d of %d: %s", where, f.At, i, n, f.HTML)
		testkit.ErrorIf(t, f.Wrong != "", "%s, back: %s: %s", where, f.HTML, f.Wrong)
	}
}

// The keyboard does what a mouse does: skip to the figures, sort, go to the next rows and a subscriber. Updates do not
// take the focus away.
func TestBrowserKeys(t *testing.T) {
	l, b := open(t, &gateway{sessions: 70}, Options{})
	active := func(what, script string) {
		t.Helper()
		b.Until(what, `((e) => `+script+`)(document.activeElement)`)
	}
	press := func(script, key string) {
		t.Helper()
		pagetest.Eval[string](b, script+`.focus() ?? ""`)
		b.Press(key)
	}
	press(`document.querySelector("nav a[href='#/session']")`, "Enter")
	active("the view has the focus", `e.id === "main"`)
	b.Until("the sessions", `document.querySelectorAll("#view-tables tbody tr").length === 50`)
	press(`document.querySelector(".skip")`, "Enter")
	active("the figures have the focus", `e.id === "main" && location.hash === "#/session"`)
	press(`document.querySelector("#view-tables th button")`, " ")
	b.Until("sorted by name", `document.querySelector("#view-tables tbody a").textContent === "ue-00001" ||
		document.querySelector("#view-tables th").getAttribute("aria-sort") === "ascending"`)
	press(`[...document.querySelectorAll("button")].find((e) => e.textContent === "Next")`, "Enter")
	b.Until("the last page", `document.querySelectorAll("#view-tables tbody tr").length === 20`)
	active("what goes back has the focus", `e.textContent === "Back"`)
	pagetest.Eval[string](b, `document.querySelectorAll("#view-tables tbody a")[3].focus() ?? ""`)
	name := pagetest.Eval[string](b, `document.activeElement.textContent`)
	pagetest.Eval[string](b, `document.querySelector("#view-tables th button").click() ?? ""`)
	b.Until("sorted the other way",
		`document.querySelector("#view-tables th").getAttribute("aria-sort") === "descending" &&
		document.querySelectorAll("#view-tables tbody a")[3].textContent !== "`+name+`"`)
	active("the link of the row has the focus still", `e === document.querySelectorAll("#view-tables tbody a")[3]`)
	b.Press("Enter")
	testkit.Until(t, "a subscriber", func() bool {
		l.seconds(1)
		return pagetest.Eval[bool](b, `document.querySelectorAll("#view-subscriber .facts dd").length > 3`)
	})
	b.Quiet()
}
