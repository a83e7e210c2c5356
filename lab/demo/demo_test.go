// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"isthmus/lab/bench"
	"isthmus/lab/figure"
)

// The front page shows the table of demo, with demo's text below it before any other paragraph.
func TestFrontPageSaysWhatDemoSays(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "PAPER MPPS")
	block, _, _ := strings.Cut(after, "```")
	if !found || !strings.Contains(block, strings.TrimSpace(scale)) {
		t.Errorf("the table stands alone:\n%s", block)
	}
}

// A cost that the machine's noise hides is not printed as a number.
func TestTable(t *testing.T) {
	r := func(total ...float64) *bench.Result {
		return &bench.Result{Common: bench.Common{Profile: "agf-symmetric"},
			Spread: bench.Spreads{Own: figure.Pairs(total, []float64{40, 40, 40})}}
	}
	var b bytes.Buffer
	if err := table(&b, []*bench.Result{r(180, 182, 179), r(30, 182, 179)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" 140  139..142 ", " not resolved  -10..142 ", scale} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
