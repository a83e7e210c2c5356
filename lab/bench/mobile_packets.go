// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"isthmus/api"
)

// Packets of the mobile functions, encoded with gopacket as those of the access gateway are: no code is shared with
// the gateway.

// vary is a field that grows from flow to flow: base + flow / divide % modulo.
type vary struct {
	offset, width  int
	divide, modulo uint32 // modulo 0: none
}

// mobileFrame is an encoded frame with what changes in it.
type mobileFrame struct {
	bytes   []byte
	header  int // bytes before the payload
	outerIP int // -1: none
	innerIP int // -1: none, or IPv6
	vary    []vary
}

// template is the frame for the data plane's synth ports.
func (f *mobileFrame) template(strict bool) (api.SynthTemplate, error) {
	t := api.SynthTemplate{Length: uint16(f.header)}
	if f.header > len(t.Bytes) {
		return t, fmt.Errorf("%d bytes of headers, %d fit a template", f.header, len(t.Bytes))
	}
	copy(t.Bytes[:], f.bytes[:f.header])
	for i := range f.header {
		t.Mask[i] = 0xff
	}
	var sums []int
	if f.innerIP >= 0 {
		sums = append(sums, f.innerIP)
	}
	if f.outerIP >= 0 {
		sums = append(sums, f.outerIP)
		if !strict { // the outer header's identification is the gateway's own choice, and its checksum follows
			for _, i := range []int{4, 5, 10, 11} {
				t.Mask[f.outerIP+i] = 0
			}
		}
	}
	add := func(field api.SynthField) {
		t.Field[t.Fields] = field
		t.Fields++
	}
	for _, v := range f.vary {
		add(api.SynthField{Offset: uint16(v.offset), Width: byte(v.width), Type: api.FieldAdd, Divide: v.divide,
			Modulo: v.modulo, Step: 1})
	}
	for _, offset := range sums {
		add(api.SynthField{Offset: uint16(offset), Type: api.FieldIP4Sum, Width: 2, Divide: 1})
	}
	return t, nil
}

// frame makes the packet that enters, of size bytes in memory, and the expected one.
func (l *mobileLayout) frame(uplink bool, size int) (in, out *mobileFrame, err error) {
	enter, leave := &l.core, &l.access
	if uplink {
		enter, leave = leave, enter
	}
	empty, err := l.encode(enter, uplink, false, 0)
	if err != nil {
		return nil, nil, err
	}
	payload := size - empty.header
	if payload < 16 {
		return nil, nil, fmt.Errorf("a frame of %d bytes does not hold its headers and a tag", size+fcs)
	}
	if in, err = l.encode(enter, uplink, false, payload); err != nil {
		return nil, nil, err
	}
	out, err = l.encode(leave, uplink, true, payload)
	return in, out, err
}

// encode is the first session's packet on one side, on its way in or out.
func (l *mobileLayout) encode(e *leg, uplink, leaving bool, payload int) (*mobileFrame, error) {
	ours, theirs := accessMAC, AccessFarMAC
	if e == &l.core {
		ours, theirs = coreMAC, peerMAC
	}
	eth := &layers.Ethernet{SrcMAC: hw(theirs), DstMAC: hw(ours), EthernetType: layers.EthernetTypeIPv4}
	if leaving {
		eth.SrcMAC, eth.DstMAC = eth.DstMAC, eth.SrcMAC
	}
	f := &mobileFrame{outerIP: -1, innerIP: 14}
	list := []gopacket.SerializableLayer{eth}
	if e.tunnel() {
		list = append(list, l.outer(e, leaving, f)...)
	}
	user := inner(half{}, uplink, payload)
	if v4, ok := user[0].(*layers.IPv4); ok && leaving && uplink && !e.tunnel() {
		v4.TTL-- // routed, RFC 1812 §5.3.1
	}
	b, err := serialize(append(list, user...)...)
	if err != nil {
		return nil, err
	}
	f.bytes, f.header = b, f.innerIP+28
	at := f.innerIP + 16
	if uplink {
		at = f.innerIP + 12
	}
	f.vary = append(f.vary, vary{at, 4, uint32(l.each()), 0})
	if l.flows > 0 { // the server's port is the flow's
		port := f.innerIP + 20
		if uplink {
			port += 2
		}
		f.vary = append(f.vary, vary{port, 2, 1, uint32(l.flows)})
	}
	return f, nil
}

// outer is IPv4, UDP and GTP-U (TS 29.281), with a PDU Session Container where the function has a QFI on this side
// (TS 38.415).
func (l *mobileLayout) outer(e *leg, leaving bool, f *mobileFrame) []gopacket.SerializableLayer {
	v4 := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: ip(e.peers[0]),
		DstIP: ip(e.local)}
	gtp := &layers.GTPv1U{Version: 1, MessageType: 255, TEID: e.teid}
	peer := 14 + 15 // last byte of the source
	if leaving {
		v4.SrcIP, v4.DstIP, gtp.TEID, peer = v4.DstIP, v4.SrcIP, e.peerTEID, 14+19
	}
	f.outerIP, f.innerIP = 14, 14+20+8+8
	if l.qfi != 0 && e == &l.access {
		way := byte(0x10) // UL PDU SESSION INFORMATION
		if leaving {
			way = 0
		}
		gtp.GTPExtensionHeaders = []layers.GTPExtensionHeader{{Type: 0x85, Content: []byte{way, l.qfi}}}
		f.innerIP += 8
		if l.flows > 0 { // each bearer has its QFI
			f.vary = append(f.vary, vary{f.innerIP - 2, 1, bearerFlows, 2})
		}
	}
	f.vary = append(f.vary, vary{14 + 20 + 8 + 4, 4, uint32(l.each()), 0})
	if n := len(e.peers); n > 1 {
		f.vary = append(f.vary, vary{peer, 1, uint32(l.each()), uint32(n)})
	}
	return []gopacket.SerializableLayer{v4, &layers.UDP{SrcPort: 2152, DstPort: 2152}, gtp}
}
