// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"isthmus/controlplane/access"
	"isthmus/controlplane/radius"
)

// PortID names a line: "port:svlan.cvlan", "port:vlan" or "port" (NAS-Port-Id).
func PortID(l *access.Line) string {
	switch {
	case l.STag == 0 && l.CTag == 0:
		return l.Port
	case l.CTag == 0:
		return fmt.Sprintf("%s:%d", l.Port, l.STag)
	}
	return fmt.Sprintf("%s:%d.%d", l.Port, l.STag, l.CTag)
}

// StationID is a MAC address as in Calling-Station-Id.
func StationID(mac [6]byte) string { return net.HardwareAddr(mac[:]).String() }

// fill makes a user name of a line by a template of the configuration.
func fill(template string, r *access.Request) string {
	if !strings.Contains(template, "{") {
		return template
	}
	return strings.NewReplacer(
		"{port}", r.Line.Port, "{svlan}", strconv.Itoa(int(r.Line.STag)), "{cvlan}",
		strconv.Itoa(int(r.Line.CTag)),
		"{mac}", StationID(r.Line.MAC), "{circuit}", readable(r.Agent.CircuitID), "{remote}",
		readable(r.Agent.RemoteID),
		"{host}", readable([]byte(r.HostName)),
	).Replace(template)
}

// readable is text as it is, and anything else in hexadecimal digits.
func readable(b []byte) string {
	if utf8.Valid(b) && !strings.ContainsFunc(string(b), func(c rune) bool { return !unicode.IsPrint(c) }) {
		return string(b)
	}
	return hex.EncodeToString(b)
}

// Values of NAS-Port-Type, Service-Type and Framed-Protocol.
const (
	portEthernet   = 15
	portPPPoE      = 32
	portPPPoEVLAN  = 33
	portPPPoEQinQ  = 34
	serviceFramed  = 2
	protocolPPP    = 1
	maxVendorValue = 247 // octets of a vendor's attribute
)

func portType(r *access.Request) uint32 {
	switch {
	case r.Kind != access.PPPoE:
		return portEthernet
	case r.Line.CTag != 0:
		return portPPPoEQinQ
	case r.Line.STag != 0:
		return portPPPoEVLAN
	}
	return portPPPoE
}

// nasPort is the two tags of a line, of 12 bits each (NAS-Port).
func nasPort(l *access.Line) uint32 { return uint32(l.STag)<<12 | uint32(l.CTag) }

// identify adds our identity (RFC 2865 §5.4, §5.32).
func identify(p *radius.Packet, identifier string, address netip.Addr) {
	p.Text(radius.NASIdentifier, identifier)
	if address.Is6() {
		p.Address(radius.NASIPv6Address, address)
	} else {
		p.Address(radius.NASIPAddress, address)
	}
}

// describe adds the subscriber's attachment, and the access node's tags (RFC 4679).
func describe(p *radius.Packet, r *access.Request) {
	p.Integer(radius.ServiceType, serviceFramed)
	if r.Kind == access.PPPoE {
		p.Integer(radius.FramedProtocol, protocolPPP)
	}
	p.Integer(radius.NASPort, nasPort(&r.Line))
	p.Integer(radius.NASPortType, portType(r))
	p.Text(radius.NASPortId, PortID(&r.Line))
	p.Text(radius.CallingStationId, StationID(r.Line.MAC))
	a := &r.Agent
	for _, id := range []struct {
		t radius.Type
		v []byte
	}{{radius.ADSLAgentCircuitId, a.CircuitID}, {radius.ADSLAgentRemoteId, a.RemoteID}} {
		if len(id.v) <= maxVendorValue { // longer ones are omitted: cut, two lines might be equal
			p.Add(id.t, id.v)
		}
	}
	access.Options(a.Line, func(code byte, value []byte) bool {
		t := radius.ActualDataRateUpstream&^0xff | radius.Type(code)
		if code > access.LastRate {
			p.Add(t, value)
		} else if kbit := binary.BigEndian.Uint32(value); kbit != 0 { // there in bit/s
			p.Integer(t, uint32(min(uint64(kbit)*1000, math.MaxUint32)))
		}
		return true
	})
}
