// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/controlplane/testkit/pagetest"
)

// signIn puts a token into the login form, and waits for the page.
func signIn(b *pagetest.Browser, token string) {
	b.Until("the form", `location.pathname === "/login" && document.getElementById("token")`)
	b.Shot("page-login")
	pagetest.Eval[string](b, fmt.Sprintf(`(() => { document.getElementById("token").value = %q;
		document.querySelector("form button").click(); return ""; })()`, token))
	b.Until("the page", `location.pathname === "/" && document.getElementById("state")?.classList.contains("good")`)
}

// A browser's way: TLS, no cookie, the form, a token, the page, and out again. A read-only role is offered no trace.
func TestBrowserSignsInAndOut(t *testing.T) {
	s := serveAPI(t, "", true)
	b := pagetest.Start(t)
	b.Size(375, 800, "light")
	b.Open("https://" + s.address + "/")
	b.Until("the form", `location.pathname === "/login" && document.getElementById("token")`)
	pagetest.Eval[string](b, `(() => { document.getElementById("token").value = "isthmus_wrong";
		document.querySelector("form button").click(); return ""; })()`)
	b.Until("words about the token", `location.hash === "#unknown" &&
		document.getElementById("unknown")?.offsetHeight > 0 &&
		document.getElementById("often").offsetHeight === 0`)
	testkit.Equal(t, b.Overflow(), 0, "columns wider than a telephone")
	for _, test := range []struct {
		token, name string
		traces      bool
	}{{s.read, "noc", false}, {s.operate, "admin", true}} {
		signIn(b, test.token)
		b.Until("who is signed in",
			`document.getElementById("logout").textContent === "Sign out `+test.name+`"`)
		testkit.Equal(t, b.Overflow(), 0, "columns wider than a telephone")
		pagetest.Eval[string](b, `location.hash = "#/subscriber/ue-1"`)
		b.Until("a subscriber's page", `document.querySelector("#view-subscriber h2")?.textContent === "ue-1"`)
		testkit.Equal(t, pagetest.Eval[bool](b, `document.querySelector("[aria-label=Trace] button") !== null`),
			test.traces, "a trace is offered to %s", test.name)
		pagetest.Eval[string](b, `document.getElementById("logout").click() ?? ""`)
		b.Until("signed out", `location.pathname === "/login"`)
		testkit.Equal(t, pagetest.Eval[int](b, `fetch("/page/table/route").then((r) => r.status)`), 401,
			"status after signing out")
	}
}
