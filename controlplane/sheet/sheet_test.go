// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// The library is as its package has it, and its licence is on each page.
func TestLibraryIsAsPublished(t *testing.T) {
	sums, err := os.ReadFile("dygraphs/SHA256SUMS")
	testkit.Must(t, err)
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	testkit.Equal(t, len(lines), 3, "files")
	for _, line := range lines {
		want, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile("dygraphs/" + name)
		testkit.Must(t, err)
		sum := sha256.Sum256(data)
		testkit.Equal(t, hex.EncodeToString(sum[:]), want, "%s", name)
	}
	testkit.ErrorIf(t, !strings.Contains(string(Head()), "The above copyright notice and this permission notice"),
		"no licence")
}

// rowsOf decodes the data of a plot as plots.js does.
func rowsOf(t *testing.T, p *Plot) string {
	t.Helper()
	data, err := p.Data()
	testkit.Must(t, err)
	var got struct{ Rows json.RawMessage }
	testkit.Must(t, json.Unmarshal([]byte(data), &got))
	return string(got.Rows)
}

func TestPlotRows(t *testing.T) {
	of := func(points ...Point) Line { return Line{Points: points} }
	for name, test := range map[string]struct {
		plot Plot
		want string
	}{
		"joined by place": {Plot{Lines: []Line{of(At(2, 20), At(1, 10)), of(At(1, 5))}}, "[[1,10,5],[2,20,null]]"},
		"spread":          {Plot{Lines: []Line{of(Point{1, 10, 9, 12}, At(2, 7))}}, "[[1,[9,10,12]],[2,[7,7,7]]]"},
		"gap":             {Plot{Lines: []Line{of(At(1, math.NaN()), At(2, 1))}}, "[[1,null],[2,1]]"},
		"no logarithm": {Plot{Y: Axis{Log: true}, Lines: []Line{of(At(1, 0), Point{2, 5, 0, 6})}},
			"[[1,null],[2,[5,5,6]]]"},
		"digits": {Plot{Lines: []Line{of(At(0.1, 1.0/3))}}, "[[0.1,0.3333333]]"},
	} {
		testkit.Equal(t, rowsOf(t, &test.plot), test.want, "%s", name)
		testkit.ErrorIf(t, test.plot.Empty(), "%s: empty", name)
	}
	empty := Plot{X: Axis{Log: true}, Lines: []Line{{Points: []Point{At(0, 1), At(1, math.NaN())}}}}
	testkit.ErrorIf(t, !empty.Empty(), "values that cannot be shown are drawn")
}

// A plot is saved as drawn: a spread if it has one, nothing in the place of a gap.
func TestPlotIsSaved(t *testing.T) {
	spread := Line{Name: "a", Points: []Point{{0, 2, 1, 3}}}
	for want, p := range map[string]Plot{
		",ticks,lowest,highest\nx,2.5,,\n'=y,2,1,3\n": {X: Axis{Label: "ticks"},
			Bars: []Bar{{Name: "x", Value: 2.5}, {Name: "=y", Value: 2, Low: 1, High: 3}}},
		"size,a,\"a, lowest\",\"a, highest\",b,\"b, lowest\",\"b, highest\"\n64,2,1,3,,,\nIMIX,,,,5,5,5\n": {
			X:     Axis{Label: "size", Names: []string{"64", "IMIX"}},
			Lines: []Line{spread, {Name: "b", Points: []Point{At(1, 5)}}}},
	} {
		_, data, _ := strings.Cut(string(Namer{}.Plot("t", &p).Link), ",")
		text, err := base64.StdEncoding.DecodeString(data)
		testkit.Must(t, err)
		testkit.Equal(t, string(text), want, "saved")
	}
}
