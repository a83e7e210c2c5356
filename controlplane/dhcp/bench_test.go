// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
)

// BenchmarkFourMessages: DISCOVER, OFFER, REQUEST, ACK of one subscriber after the other, with an address of a pool.
func BenchmarkFourMessages(b *testing.B) {
	w := newWorld(b)
	w.free, w.c.Limits.PerVLAN = true, 1<<20
	w.configure()
	h := w.home(1)
	discover, request := h.four(dhcpv4.MessageTypeDiscover), h.four(dhcpv4.MessageTypeRequest)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		h.line.STag, h.line.CTag = uint16(i>>12&0xfff), uint16(i&0xfff)
		h.put(discover)
		w.run()
		a := w.live[len(w.live)-1].has.IPv4.As4()
		copy(request[20+8+12:], a[:])       // ciaddr, as in INIT-REBOOT of a client that renews
		request[20+6], request[20+7] = 0, 0 // no checksum
		h.put(request)
		w.run()
		if len(w.live) == 1<<12 {
			end(w)
		}
	}
	if n := w.counted("acks"); n != uint64(b.N) {
		b.Fatalf("%d of %d", n, b.N)
	}
}

// BenchmarkSolicitRequest: Solicit, Advertise, Request, Reply with an address and a delegated prefix.
func BenchmarkSolicitRequest(b *testing.B) {
	w := newWorld(b)
	w.free = true
	h := w.home(1)
	solicit := h.six(dhcpv6.MessageTypeSolicit, na(), pd())
	request := h.six(dhcpv6.MessageTypeRequest, ours, na(), pd())
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		h.line.STag, h.line.CTag = uint16(i>>12&0xfff), uint16(i&0xfff)
		h.put6(solicit)
		w.run()
		h.put6(request)
		w.run()
		if len(w.live) == 1<<12 {
			end(w)
		}
	}
	if n := w.counted("replies"); n != uint64(b.N) {
		b.Fatalf("%d of %d", n, b.N)
	}
}

func end(w *world) {
	for _, s := range w.live {
		s.client.Ended(access.AdminReset)
		s.down = access.AdminReset
		s.give(access.Families{V4: true, V6: true, Delegated: true}, false)
	}
	w.live, w.sent, w.timers = w.live[:0], w.sent[:0], w.timers[:0]
}
