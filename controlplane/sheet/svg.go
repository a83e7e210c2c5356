// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Canvas writes one SVG picture. Colours are classes, which the page's style sheet sets for light and dark.
type Canvas struct {
	b             strings.Builder
	width, height float64
}

// NewCanvas begins a picture. Its text describes it to those who cannot see it.
func NewCanvas(width, height float64, class, text string) *Canvas {
	c := &Canvas{width: width, height: height}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`,
		class, coordinate(width), coordinate(height), coordinate(width), coordinate(height))
	fmt.Fprintf(&c.b, "<title>%s</title>\n", escape(text))
	return c
}

func (c *Canvas) String() string { return c.b.String() + "</svg>\n" }

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// coordinate prints a length; what is no number becomes 0, so that the picture stays well-formed.
func coordinate(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	s := fmt.Sprintf("%.1f", v)
	return strings.TrimSuffix(s, ".0")
}

func (c *Canvas) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, coordinate(x1),
		coordinate(y1), coordinate(x2), coordinate(y2))
}

func (c *Canvas) Rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s">`, class, coordinate(x), coordinate(y),
		coordinate(max(w, 0)), coordinate(max(h, 0)))
	if title != "" {
		fmt.Fprintf(&c.b, "<title>%s</title>", escape(title))
	}
	c.b.WriteString("</rect>\n")
}

// Text writes a line of text; anchor is start, middle or end.
func (c *Canvas) Text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`+"\n", class, anchor,
		coordinate(x), coordinate(y), escape(s))
}

// Turned writes text that is turned about its own place.
func (c *Canvas) Turned(class, anchor string, x, y, degrees float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" transform="translate(%s %s) rotate(%s)">%s</text>`+"\n",
		class, anchor,
		coordinate(x), coordinate(y), coordinate(degrees), escape(s))
}

// Place is a point, with x to the right and y downward.
type Place struct{ X, Y float64 }

// Path draws through all places; closed makes it an area.
func (c *Canvas) Path(class string, list []Place, closed bool) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(&c.b, `<path class="%s" d="`, class)
	for i, p := range list {
		command := "L"
		if i == 0 {
			command = "M"
		}
		c.b.WriteString(command + coordinate(p.X) + " " + coordinate(p.Y))
	}
	if closed {
		c.b.WriteString("Z")
	}
	c.b.WriteString("\"/>\n")
}

// Shapes of markers, so that series are told apart without colour.
const shapes = 4

// Marker draws the n-th shape with a larger invisible place around it for the pointer.
func (c *Canvas) Marker(class string, n int, x, y float64, title string) {
	const r = 4
	c.b.WriteString("<g>")
	if title != "" {
		fmt.Fprintf(&c.b, "<title>%s</title>", escape(title))
		fmt.Fprintf(&c.b, `<circle class="touch" cx="%s" cy="%s" r="11"/>`, coordinate(x), coordinate(y))
	}
	class = "dot " + class
	switch n % shapes {
	case 0:
		fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%d"/>`, class, coordinate(x), coordinate(y), r)
	case 1:
		fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%d" height="%d"/>`, class, coordinate(x-3.7),
			coordinate(y-3.7), 7, 7)
	case 2:
		c.Path(class, []Place{{x, y - r - 1}, {x + r + .6, y + r - .6}, {x - r - .6, y + r - .6}}, true)
	default:
		c.Path(class, []Place{{x, y - r - 1.2}, {x + r + 1.2, y}, {x, y + r + 1.2}, {x - r - 1.2, y}}, true)
	}
	c.b.WriteString("</g>\n")
}

// TextWidth estimates how wide text is in a sans-serif type, on the safe side of the common ones.
func TextWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtf.,:;'|!()[] I", r):
			w += 0.36
		case strings.ContainsRune("mwMW%@", r):
			w += 0.95
		case r >= 'A' && r <= 'Z':
			w += 0.70
		default:
			w += 0.60
		}
	}
	return w * size
}
