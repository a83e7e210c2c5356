// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// The line that floods is the first, with the MAC address that sends most, whatever the number of others; memory is
// bounded, and old frames are forgotten.
func TestSendersOfAFlood(t *testing.T) {
	b := start(t, nil)
	frame := func(sTag, cTag uint16, mac byte) {
		b.Frame(&access.Frame{EtherType: etherPPPoEDiscovery, Line: access.Line{Port: "access", STag: sTag, CTag: cTag,
			MAC: [6]byte{2, 0, 0, 0, 0, mac}}})
	}
	for n := range uint16(4000) {
		frame(4001, 1+n%4000, 1)
		frame(4002, 7, 9)
		if n%3 == 0 {
			frame(4002, 7, byte(n))
		}
	}
	list := b.Senders()
	testkit.ErrorIf(t, len(list) != sendersShown || len(b.senders.is) != sendersKept, "%d of %d", len(list),
		len(b.senders.is))
	first := list[0]
	testkit.ErrorIf(t, first.Line != "access:4002.7" || first.MAC != "02:00:00:00:00:09" || first.Frames < 5000 ||
		first.PPPoE != first.Frames || !first.Last.Equal(b.now), "%+v", first)
	b.pass(senderSpan)
	frame(4003, 1, 2)
	testkit.Equal(t, b.Senders()[0].Line, "access:4002.7", "the first a span later")
	b.pass(3 * senderSpan)
	frame(4003, 1, 2)
	list = b.Senders()
	testkit.ErrorIf(t, len(list) != 1 || list[0].Line != "access:4003.1" || list[0].Frames != 1, "%+v", list)
	testkit.ErrorIf(t, b.now.Sub(list[0].Last) > time.Second, "%+v", list[0])
}
