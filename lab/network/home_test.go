// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"isthmus/controlplane/testkit"
)

func packet(t *testing.T, from, to netip.Addr) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	var ip gopacket.SerializableLayer = &layers.IPv4{Version: 4, TTL: 64, Protocol: 253, SrcIP: from.AsSlice(),
		DstIP: to.AsSlice()}
	if from.Is6() {
		ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: 253, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	}
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	testkit.Must(t, gopacket.SerializeLayers(b, options, ip, gopacket.Payload("hello")))
	return b.Bytes()
}

// Frames and G-PDUs of the first and the last home equal gopacket's.
func TestHomes(t *testing.T) {
	for _, n := range []int{0, 1, 255, MaxHomes - 1} {
		h := homeOf(n)
		for _, end := range [][2]netip.Addr{{h.IPv4, serverIPv4}, {host(h.IPv6), serverIPv6}} {
			up, down := packet(t, end[0], end[1]), packet(t, end[1], end[0])
			frame, ok := tagged(nil, up)
			p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
			var tags []uint16
			for _, l := range p.Layers() {
				if q, is := l.(*layers.Dot1Q); is {
					tags = append(tags, q.VLANIdentifier)
				}
			}
			testkit.FatalIf(t, !ok || len(tags) != 2 || tags[0] != h.STag || tags[1] != h.CTag ||
				p.LinkLayer().LinkFlow().Src().String() != h.MAC ||
				p.NetworkLayer().NetworkFlow().Src().String() != end[0].String(),
				"home %d: %v %v", n, tags, p)
			testkit.FatalIf(t, !bytes.Equal(frame[len(frame)-len(up):], up), "home %d: %x", n, frame)

			// The kernel takes the outer tag off; short frames are padded.
			in := append(append(append([]byte{}, frame[:12]...), frame[16:22]...), down...)
			got, ok := untagged(append(in, 0, 0, 0))
			testkit.FatalIf(t, !ok || !bytes.Equal(got, down), "home %d gets %x", n, got)
			_, ok = untagged(append(in[:18:18], up...))
			testkit.FatalIf(t, ok, "home %d takes what is not to it", n)

			pdu, ok := encapsulated(nil, down)
			g := gopacket.NewPacket(pdu, layers.LayerTypeGTPv1U, gopacket.Default)
			layer, is := g.Layer(layers.LayerTypeGTPv1U).(*layers.GTPv1U)
			testkit.FatalIf(t, !ok || !is || layer.TEID != h.Downlink ||
				int(layer.MessageLength) != len(down), "home %d: %v", n, g)
			copy(pdu[4:8], []byte{0, byte(h.Uplink >> 16), byte(h.Uplink >> 8), byte(h.Uplink)})
			back, ok := decapsulated(append(pdu[:8:8], up...))
			testkit.FatalIf(t, !ok || !bytes.Equal(back, up), "of home %d comes %x", n, back)
			_, ok = decapsulated(pdu)
			testkit.FatalIf(t, ok, "home %d sends with another's address", n)
		}
	}
	for _, a := range []string{"100.64.0.0", "100.65.0.1", "100.64.255.255", "2001:db8:64::1", "2001:db8:65:1::1"} {
		_, known := homeAt(netip.MustParseAddr(a))
		testkit.ErrorIf(t, known, "%s is a home's", a)
	}
	for n := range 64 { // whatever is cut off
		b := packet(t, serverIPv4, homeOf(0).IPv4)
		b = b[:min(n, len(b))]
		tagged(nil, b)
		untagged(b)
		encapsulated(nil, b)
		decapsulated(b)
	}
}
