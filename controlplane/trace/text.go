// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"io"
	"strings"

	"isthmus/controlplane/printable"
)

// WriteText writes a packet for people: a line for the packet, one for each stage, one for the end.
func (p *Packet) WriteText(w io.Writer, workers bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  packet %d, %d bytes", p.Time.Format("15:04:05.000000"), p.Number, p.Length)
	if p.Port != "" {
		fmt.Fprintf(&b, " by %s", p.Port)
	}
	b.WriteByte('\n')
	for _, s := range p.Steps {
		if s.Next == "" && s.Text == p.Text && s.Text != "" {
			continue // the end says it
		}
		ticks := ""
		if s.Ticks != 0 {
			ticks = fmt.Sprint(s.Ticks)
		}
		node := s.Node
		if workers {
			node = fmt.Sprintf("%d %s", s.Worker, s.Node)
		}
		line := fmt.Sprintf("  %-18s %6s  %s", node, ticks, printable.Text(s.Text))
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(&b, "  = %s\n\n", p.conclude())
	_, err := io.WriteString(w, b.String())
	return err
}
