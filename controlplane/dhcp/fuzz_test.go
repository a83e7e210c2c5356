// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
)

// FuzzFrame: any frame, of any reason and port, then a well-formed sign-in, which works as ever.
func FuzzFrame(f *testing.F) {
	w := newWorld(f)
	h := w.home(1)
	for _, kind := range []dhcpv4.MessageType{1, 3, 4, 7, 8} {
		f.Add(byte(0), h.four(kind, saying("x")), false)
	}
	for kind := dhcpv6.MessageTypeSolicit; kind <= dhcpv6.MessageTypeInformationRequest; kind++ {
		f.Add(byte(1), h.six(kind, ours, na(held("2001:db8::1")), pd()), false)
		f.Add(byte(1), h.six(kind, na(), pd()), false)
		d, _ := ipv6(h.six(kind, theirs, na(held("2001:db8::1")), pd()))
		f.Add(byte(1), d.body, true)
	}
	for _, b := range [][]byte{h.four(dhcpv4.MessageTypeDiscover), h.six(dhcpv6.MessageTypeSolicit, na(), pd())} {
		d, ok := ipv4(b)
		if !ok {
			d, _ = ipv6(b)
		}
		f.Add(byte(0), d.body, false)
		f.Add(byte(0), d.body, true)
	}
	f.Add(byte(2), []byte{0x60, 0, 0, 0, 0, 8, 58, 255}, false)
	f.Add(byte(4), h.four(1), true)
	reasons := []access.Reason{access.DHCP, access.DHCPv6, access.RouterSolicitation, access.FirstPacket}
	f.Fuzz(func(t *testing.T, which byte, b []byte, upstream bool) {
		w := newWorld(t)
		h := w.home(1)
		h.line.Port = "trusted"
		if upstream {
			p := w.ports["trusted"]
			p.Upstream, p.Upstream6 = append(p.Upstream, upstreamA), append(p.Upstream6, sixA)
			w.ports["trusted"], w.c.Address.Addr, w.c.Address6.Addr = p, ourselves, ourselves6
			w.configure()
			w.s.Upstream = func(netip.AddrPort, []byte) error { return nil }
			h.put(h.four(dhcpv4.MessageTypeDiscover))
			w.s.FromUpstream(upstreamA, b)
			var asked []byte
			w.s.Upstream6 = func(_ netip.AddrPort, packet []byte) error {
				asked = packet
				return nil
			}
			h.put6(h.six(dhcpv6.MessageTypeRequest, theirs, na(), pd()))
			w.run()
			w.s.FromUpstream6(sixA, b)
			w.s.FromUpstream6(sixA, replyTo(asked, b)) // in the right envelope
			w.run()
		}
		h.put(wrap4(b))
		h.put6(h.udp6(b, relaysAndServers))
		reason := reasons[int(which)%len(reasons)]
		for _, kind := range []uint16{ethernetIPv4, ethernetIPv6, ethernetARP} {
			w.s.Frame(&access.Frame{Line: h.line, Reason: reason, EtherType: kind, Payload: b})
			w.run()
		}
		h.dial(upstream)
		h.put6(b)
		h.put6(h.udp6(b, relaysAndServers))
		w.sent = nil
		other := w.home(2)
		other.join()
	})
}

func wrap4(body []byte) []byte {
	d := datagram{from: netip.IPv4Unspecified(), to: broadcast, source: 68, dest: 67, protocol: protocolUDP,
		body: body}
	return d.packet()
}
