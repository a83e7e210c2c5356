// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Packets as they enter and as they must leave, encoded with gopacket: no code is shared with the gateway.

// packet is an encoded frame and where its parts begin; offsets are -1 for parts that it does not have.
type packet struct {
	bytes                     []byte
	header                    int // bytes before the payload
	mac                       int // the home gateway's address
	sTag, cTag, pppoe, teid   int
	outerIP, innerIP          int
	ueAddress, udpSource, udp int
}

// mac adds n to an address.
func mac(base string, n int) string {
	b, err := net.ParseMAC(base)
	if err != nil {
		panic(err) // a constant of this package
	}
	var wide [8]byte
	copy(wide[2:], b)
	binary.BigEndian.PutUint64(wide[:], binary.BigEndian.Uint64(wide[:])+uint64(n))
	return net.HardwareAddr(wide[2:]).String()
}

func hw(s string) net.HardwareAddr {
	b, err := net.ParseMAC(s)
	if err != nil {
		panic(err) // a constant of this package
	}
	return b
}

func ip(s string) net.IP { return net.IP(netip.MustParseAddr(s).AsSlice()) }

// serialize encodes layers from the inside out. IPv4 checksums are computed, UDP has none (RFC 768 allows 0).
func serialize(list ...gopacket.SerializableLayer) ([]byte, error) {
	b := gopacket.NewSerializeBuffer()
	for i := len(list) - 1; i >= 0; i-- {
		_, udp := list[i].(*layers.UDP)
		if err := list[i].SerializeTo(b, gopacket.SerializeOptions{FixLengths: true,
			ComputeChecksums: !udp}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// inner is the subscriber's own packet with a payload of n bytes.
func inner(h half, uplink bool, n int) []gopacket.SerializableLayer {
	v4 := &layers.IPv4{Version: 4, IHL: 5, TTL: 63, Protocol: layers.IPProtocolUDP, Flags: layers.IPv4DontFragment}
	udp := &layers.UDP{SrcPort: basePort, DstPort: userPort}
	if uplink {
		v4.SrcIP, v4.DstIP = ip(ue(h.first)), ip(serverIP)
		udp.SrcPort, udp.DstPort = userPort, basePort
	} else {
		v4.SrcIP, v4.DstIP = ip(serverIP), ip(ue(h.first))
	}
	return []gopacket.SerializableLayer{v4, udp, gopacket.Payload(make([]byte, n))}
}

// accessHeaders are Ethernet, two tags, and PPPoE where used. Outer TPID 0x88a8, inner 0x8100 (IEEE 802.1ad).
func accessHeaders(h half, uplink bool) []gopacket.SerializableLayer {
	eth := &layers.Ethernet{SrcMAC: hw(mac(homeMAC, h.first)), DstMAC: hw(accessMAC),
		EthernetType: layers.EthernetTypeQinQ}
	if !uplink {
		eth.SrcMAC, eth.DstMAC = eth.DstMAC, eth.SrcMAC
	}
	s := &layers.Dot1Q{VLANIdentifier: uint16(h.sTag), Type: layers.EthernetTypeDot1Q}
	c := &layers.Dot1Q{VLANIdentifier: 1, Type: layers.EthernetTypeIPv4}
	if !h.pppoe {
		return []gopacket.SerializableLayer{eth, s, c}
	}
	c.Type = layers.EthernetTypePPPoESession
	return []gopacket.SerializableLayer{
		eth, s, c, &layers.PPPoE{Version: 1, Type: 1, Code: layers.PPPoECodeSession, SessionId: 1},
		&layers.PPP{PPPType: layers.PPPTypeIPv4},
	}
}

// coreHeaders are Ethernet, IPv4, UDP and GTP-U with a PDU Session Container (TS 38.415: type 1 is uplink, 0 downlink).
func coreHeaders(h half, uplink bool) []gopacket.SerializableLayer {
	eth := &layers.Ethernet{SrcMAC: hw(coreMAC), DstMAC: hw(peerMAC), EthernetType: layers.EthernetTypeIPv4}
	v4 := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: ip(coreIP), DstIP: ip(upfIP)}
	gtp := &layers.GTPv1U{
		Version: 1, MessageType: 255, TEID: uint32(teidUp + h.first),
		GTPExtensionHeaders: []layers.GTPExtensionHeader{{Type: 0x85, Content: []byte{0x10, qfi}}},
	}
	if !uplink {
		eth.SrcMAC, eth.DstMAC = eth.DstMAC, eth.SrcMAC
		v4.SrcIP, v4.DstIP = v4.DstIP, v4.SrcIP
		gtp.TEID = uint32(teidDown + h.first)
		gtp.GTPExtensionHeaders[0].Content[0] = 0
	}
	return []gopacket.SerializableLayer{eth, v4, &layers.UDP{SrcPort: 2152, DstPort: 2152}, gtp}
}

// accessPacket is a frame on the access side whose payload has n bytes.
func accessPacket(h half, uplink bool, n int) (*packet, error) {
	b, err := serialize(append(accessHeaders(h, uplink), inner(h, uplink, n)...)...)
	if err != nil {
		return nil, err
	}
	p := &packet{bytes: b, sTag: 14, cTag: 18, pppoe: -1, teid: -1, outerIP: -1, innerIP: 22, mac: 0}
	if uplink {
		p.mac = 6
	}
	if h.pppoe {
		p.pppoe, p.innerIP = 24, 30
	}
	return p.place(uplink), nil
}

// corePacket is a frame on the core side whose innermost payload has n bytes.
func corePacket(h half, uplink bool, n int) (*packet, error) {
	b, err := serialize(append(coreHeaders(h, uplink), inner(h, uplink, n)...)...)
	if err != nil {
		return nil, err
	}
	p := &packet{bytes: b, mac: -1, sTag: -1, cTag: -1, pppoe: -1, teid: 14 + 20 + 8 + 4, outerIP: 14, innerIP: 14 +
		20 + 8 + 16}
	return p.place(uplink), nil
}

// place derives the offsets inside the subscriber's packet.
func (p *packet) place(uplink bool) *packet {
	p.ueAddress, p.udpSource = p.innerIP+16, p.innerIP+20
	if uplink {
		p.ueAddress, p.udpSource = p.innerIP+12, p.innerIP+22 // the server's port is the destination
	}
	p.udp = p.innerIP + 20
	p.header = p.innerIP + 28
	return p
}
