// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path/filepath"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/controlplane/testkit/pagetest"
)

// A browser draws every plot of the page, opened as a file, in light and dark, within the window's width; its policy
// refuses nothing.
func TestBrowserDrawsThePlots(t *testing.T) {
	b := pagetest.Start(t)
	r := fixture(t)
	hostileName := "<img src=x onerror=document.title='owned'>"
	r.Peers[0].Peers[0].Name, r.Subscribers[0].Title = hostileName, hostileName
	dir := t.TempDir()
	testkit.Must(t, r.Write(dir))
	for scheme, width := range map[string]int{"light": 375, "dark": 1200} {
		b.Size(width, 1000, scheme)
		b.Open("file://" + filepath.Join(dir, PageFile))
		b.Until("each plot has lines and a scale", `document.querySelectorAll(".plot").length > 15 &&
			[...document.querySelectorAll(".plot")].every((p) =>
				p.querySelector("canvas") && p.querySelector(".dygraph-axis-label-x"))`)
		overflow := b.Overflow()
		testkit.ErrorIf(t, overflow > 0, "%d columns: the page is %d columns wider", width, overflow)
		b.Shot(fmt.Sprintf("report-%d-%s", width, scheme))
	}
	owned := pagetest.Eval[bool](b, `document.title === "owned" || document.querySelector("main img") !== null`)
	testkit.ErrorIf(t, owned, "a name became part of the page")
	b.Quiet()
}
