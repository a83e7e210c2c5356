// SPDX-License-Identifier: Apache-2.0

package pppoe_test

import (
	"bytes"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/testkit"
)

// Whatever comes from other lines, a subscriber stays on line; and all that the input began ends.
func FuzzServer(f *testing.F) {
	discovery := func(code byte, tags ...byte) []byte {
		return append([]byte{0, byte(6 + len(tags)), 0x11, code, 0, 0, 0, byte(len(tags))}, tags...)
	}
	f.Add(discovery(pppoe.PADI, 1, 1, 0, 0, 1, 3, 0, 2, 7, 7))
	f.Add(discovery(pppoe.PADR, 1, 1, 0, 0, 1, 5, 0, 9, 0, 0, 0x0d, 0xe9, 1, 3, 'a', 'b', 'c'))
	f.Add(discovery(pppoe.PADT))
	f.Add([]byte{1, 12, 0x11, 0, 0, 0, 0, 6, 0xc0, 0x21, 5, 1, 0, 4})
	f.Add([]byte{2, 0x40})
	f.Fuzz(func(t *testing.T, story []byte) {
		w := newWorld(t, nil)
		h := w.homeAt(1, 100, homer(access.PAP))
		h.Dial()
		w.run(5 * time.Second)
		testkit.FatalIf(t, !h.open.V4, "not on line")
		line := h.line
		line.MAC[5] = 77
		cookie := w.cookie(line)
		id := byte(0)
		for len(story) >= 2 {
			n := min(int(story[1]), len(story)-2)
			b := bytes.Clone(story[2 : 2+n])
			switch story[0] % 4 {
			case 0:
				w.server.Frame(&access.Frame{Line: line, EtherType: pppoe.EtherDiscovery, Payload: b})
			case 1:
				if len(b) > 3 {
					b[2], b[3] = id, w.seen[len(w.seen)-1].Payload[3] // the session's, often
				}
				w.server.Frame(&access.Frame{Line: line, EtherType: pppoe.EtherSession, Payload: b})
			case 2:
				w.server.Frame(frameOf(line, pppoe.PADR, 0, tag(pppoe.TagService), tag(pppoe.TagCookie,
					cookie...), b))
				id = w.seen[len(w.seen)-1].Payload[2]
			case 3:
				w.run(time.Duration(story[1]) * 50 * time.Millisecond)
			}
			story = story[2+n:]
		}
		w.run(5 * time.Minute)
		testkit.ErrorIf(t, !h.open.V4 || h.ended != "", "the subscriber is off line: %s", h.ended)
		_, half := w.server.Sessions()
		testkit.Equal(t, half, 0, "half-open sessions")
	})
}
