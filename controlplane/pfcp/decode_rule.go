// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"net/netip"
	"strings"
	"time"
)

// Tables of PDRs and traffic endpoints (TS 29.244 §7.5.2.2, §7.5.2.7, §7.5.4.2, §7.5.4.13).

// readInterface is TS 29.244 §8.2.2 and §8.2.24; the upper four bits are spare.
func readInterface(v []byte) (Interface, *Error) {
	switch i := Interface(v[0] & 15); {
	case i <= CPSide:
		return i, nil
	case i <= 5: // LI function, 5G VN internal
		return i, unserved("interface %d", i)
	default:
		return i, incorrect("interface %d", i)
	}
}

func readInterfaceType(v []byte) (uint8, *Error) { return v[0] & 63, nil }

func readQFI(v []byte) (uint8, *Error) {
	if v[0] > 63 { // TS 38.415 §5.5.3.3: six bits
		return 0, incorrect("QFI %d", v[0])
	}
	return v[0], nil
}

// SDF Filter flags (TS 29.244 §8.2.5).
const (
	sdfFlow  = 1 << 0
	sdfToS   = 1 << 1
	sdfSPI   = 1 << 2
	sdfLabel = 1 << 3
	sdfID    = 1 << 4
)

// readSDF refuses as failure of the rule (row P22): its PDR is named, not just the IE.
func readSDF(v []byte) (SDFFilter, *Error) {
	f, c := v[0], cursor{b: v[2:]}
	var s SDFFilter
	if f&sdfFlow != 0 {
		s.Flow = c.text()
	}
	if s.HasToS = f&sdfToS != 0; s.HasToS {
		s.ToS, s.Mask = c.byte(), c.byte()
	}
	if s.HasSPI = f&sdfSPI != 0; s.HasSPI {
		s.SPI = c.uint32()
	}
	if s.HasLabel = f&sdfLabel != 0; s.HasLabel {
		s.FlowLabel = uint32(number(c.take(3))) & 0xfffff
	}
	if s.HasID = f&sdfID != 0; s.HasID {
		s.ID = c.uint32()
	}
	fault := ""
	switch {
	case c.short || len(c.b) > 0:
		fault = "SDF filter's length does not fit its flags"
	case f&(sdfFlow|sdfToS|sdfSPI|sdfLabel|sdfID) == 0:
		fault = "SDF filter is empty"
	case f&sdfFlow != 0 && s.Flow == "" || len(s.Flow) > maxText || !printable([]byte(s.Flow), true):
		fault = "flow description is no text of a rule"
	default:
		return s, nil
	}
	return s, &Error{Cause: CauseRuleFailure, Text: fault}
}

// readRoute is a Framed-Route (RFC 2865 §5.22) or Framed-IPv6-Route (RFC 3162 §2.5); only the prefix counts: the
// gateway is the UE.
func readRoute(v4 bool) func(v []byte) (netip.Prefix, *Error) {
	return func(v []byte) (netip.Prefix, *Error) {
		text, _, _ := strings.Cut(string(v), " ")
		route, err := netip.ParsePrefix(text)
		if err != nil {
			if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
				route = netip.PrefixFrom(address, address.BitLen())
			}
		}
		if !route.IsValid() || route.Addr().Is4() != v4 {
			return route, incorrect("framed route %q", text)
		}
		return route.Masked(), nil
	}
}

// routeRows are framed routes of either family.
func routeRows[T any](at func(*T) *[]netip.Prefix) []field[T] {
	v4, v6 := list(ieFramedRoute, readRoute(true), (*writer).route, at),
		list(ieFramedIPv6Route, readRoute(false), (*writer).route, at)
	return []field[T]{v4, {ie: ieFramedRouting, read: func(v []byte, _ *T) *Error {
		if number(v) != 0 { // RFC 2865 §5.10: routing protocols towards the UE
			return unserved("framed routing %d", number(v))
		}
		return nil
	}}, v6.writes(nil)} // v4 writes all
}

var pdi = newGroup(append([]field[PDI]{
	need(always(ieSourceInterface, readInterface, write8[Interface], func(p *PDI) *Interface { return &p.Source })),
	optional(ieFTEID, readFTEID, (*writer).fteid, func(p *PDI) **FTEID { return &p.LocalFTEID }),
	value(ieNetworkInstance, nameOrNone, (*writer).instance, func(p *PDI) *string { return &p.NetworkInstance }),
	list(ieUEIP, readUEIP, (*writer).ueip, func(p *PDI) *[]UEIP { return &p.UEIP }),
	{ie: ieEndpointID, many: true, read: func(v []byte, p *PDI) *Error {
		if p.TrafficEndpoint != nil && *p.TrafficEndpoint != v[0] {
			return unserved("PDI of several traffic endpoints")
		}
		id := v[0]
		p.TrafficEndpoint = &id
		return nil
	}, write: func(w *writer, p *PDI) {
		if p.TrafficEndpoint != nil {
			w.uint8(ieEndpointID, *p.TrafficEndpoint)
		}
	}},
	list(ieSDFFilter, readSDF, (*writer).sdf, func(p *PDI) *[]SDFFilter { return &p.SDF }),
	value(ieApplicationID, readName, (*writer).named, func(p *PDI) *string { return &p.Application }),
	list(ieQFI, readQFI, (*writer).uint8, func(p *PDI) *[]uint8 { return &p.QFI }),
	optional(ieInterfaceType, readInterfaceType, (*writer).uint8, func(p *PDI) **uint8 { return &p.InterfaceType }),
}, routeRows(func(p *PDI) *[]netip.Prefix { return &p.FramedRoutes })...),
	[]uint16{ieEthernetSession, ieEthernetPacketFilter, ieIPMulticast, ieRedundantTransmission})

// readRemoval is TS 29.244 §8.2.64. The second octet lists GTP-U extension headers to remove.
func readRemoval(v []byte) (uint8, *Error) {
	switch d := v[0]; {
	case (d <= 1 || d == 6) && len(v) > 1 && v[1]&1 != 0:
		return d | RemoveContainer, nil
	case d <= 3 || d == 6: // GTP-U or UDP over IPv4, IPv6, either
		return d, nil
	case d <= 9: // IP in IP, VLAN tags
		return d, unserved("outer header removal %d", d)
	default:
		return d, incorrect("outer header removal %d", d)
	}
}

var pdrUnserved = []uint16{ieMARID, iePacketReplication, iePoolIdentity, ieMPTCPApplicable, ieTransportDelay,
	ieIPMulticast, ieRedundantTransmission}

var createPDR = newGroup([]field[CreatePDR]{
	need(always(iePDRID, readUint16, (*writer).uint16, func(p *CreatePDR) *uint16 { return &p.ID })),
	need(always(iePrecedence, readUint32, (*writer).uint32, func(p *CreatePDR) *uint32 { return &p.Precedence })),
	need(field[CreatePDR]{ie: iePDI, read: func(v []byte, p *CreatePDR) *Error { return pdi.decode(v, &p.PDI) },
		write: func(w *writer, p *CreatePDR) { w.group(iePDI, func() { pdi.encode(w, &p.PDI) }) }}),
	optional(ieOuterHeaderRemoval, readRemoval, (*writer).removal,
		func(p *CreatePDR) **uint8 { return &p.OuterHeaderRemoval }),
	optional(ieFARID, readUint32, (*writer).uint32, func(p *CreatePDR) **uint32 { return &p.FAR }),
	list(ieURRID, readUint32, (*writer).uint32, func(p *CreatePDR) *[]uint32 { return &p.URR }),
	list(ieQERID, readUint32, (*writer).uint32, func(p *CreatePDR) *[]uint32 { return &p.QER }),
	list(ieActivatePredefined, readName, (*writer).named,
		func(p *CreatePDR) *[]string { return &p.ActivatePredefined }),
	value(ieActivationTime, readTime, (*writer).time, func(p *CreatePDR) *time.Time { return &p.Activation }),
	value(ieDeactivationTime, readTime, (*writer).time, func(p *CreatePDR) *time.Time { return &p.Deactivation }),
}, pdrUnserved).of(RulePDR, iePDRID).without(func(p *CreatePDR, ie uint16) bool {
	// TS 29.244 Table 7.5.2.2-1: no precedence on Sxa, where the F-TEID alone identifies the rule (Open5GS' SGW-C
	// sends none).
	d := &p.PDI
	return ie == iePrecedence && (d.LocalFTEID != nil || d.TrafficEndpoint != nil) &&
		len(d.UEIP)+len(d.SDF)+len(d.QFI)+len(d.FramedRoutes) == 0 && d.Application == ""
}).checked(func(p *CreatePDR) *Error {
	if p.FAR == nil && len(p.ActivatePredefined) == 0 { // row P13
		return absent(ieFARID, "PDR without a FAR")
	}
	return nil
})

var updatePDR = newGroup([]field[UpdatePDR]{
	need(always(iePDRID, readUint16, (*writer).uint16, func(p *UpdatePDR) *uint16 { return &p.ID })),
	optional(iePrecedence, readUint32, (*writer).uint32, func(p *UpdatePDR) **uint32 { return &p.Precedence }),
	inner(iePDI, pdi, func(p *UpdatePDR) **PDI { return &p.PDI }),
	optional(ieOuterHeaderRemoval, readRemoval, (*writer).removal,
		func(p *UpdatePDR) **uint8 { return &p.OuterHeaderRemoval }),
	optional(ieFARID, readUint32, (*writer).uint32, func(p *UpdatePDR) **uint32 { return &p.FAR }),
	ids(ieURRID, func(p *UpdatePDR) **[]uint32 { return &p.URR }),
	ids(ieQERID, func(p *UpdatePDR) **[]uint32 { return &p.QER }),
	list(ieActivatePredefined, readName, (*writer).named,
		func(p *UpdatePDR) *[]string { return &p.ActivatePredefined }),
}, append([]uint16{ieDeactivatePredefined, ieActivationTime, ieDeactivationTime}, pdrUnserved...)).of(RulePDR, iePDRID)

// ids is a list whose absence differs from an empty one.
func ids(ie uint16, at func(*UpdatePDR) **[]uint32) field[UpdatePDR] {
	return field[UpdatePDR]{ie: ie, many: true, read: func(v []byte, p *UpdatePDR) *Error {
		places := at(p)
		if *places == nil {
			*places = new([]uint32)
		}
		**places = append(**places, uint32(number(v)))
		return nil
	}, write: func(w *writer, p *UpdatePDR) {
		for _, id := range of(*at(p)) {
			w.uint32(ie, id)
		}
	}}
}

var createEndpoint = newGroup(append([]field[CreateTrafficEndpoint]{
	need(always(ieEndpointID, readUint8, (*writer).uint8, func(e *CreateTrafficEndpoint) *uint8 { return &e.ID })),
	optional(ieFTEID, readFTEID, (*writer).fteid, func(e *CreateTrafficEndpoint) **FTEID { return &e.LocalFTEID }),
	value(ieNetworkInstance, nameOrNone, (*writer).instance,
		func(e *CreateTrafficEndpoint) *string { return &e.NetworkInstance }),
	list(ieUEIP, readUEIP, (*writer).ueip, func(e *CreateTrafficEndpoint) *[]UEIP { return &e.UEIP }),
	list(ieQFI, readQFI, (*writer).uint8, func(e *CreateTrafficEndpoint) *[]uint8 { return &e.QFI }),
}, routeRows(func(e *CreateTrafficEndpoint) *[]netip.Prefix { return &e.FramedRoutes })...),
	[]uint16{ieEthernetSession, ieIPMulticast, ieRedundantTransmission})

func created[ID uint8 | uint16](ie uint16, read func([]byte) (ID, *Error),
	write func(*writer, uint16, ID)) *group[Created[ID]] {
	return newGroup([]field[Created[ID]]{
		need(always(ie, read, write, func(c *Created[ID]) *ID { return &c.ID })),
		optional(ieFTEID, readFTEID, (*writer).fteid, func(c *Created[ID]) **FTEID { return &c.LocalFTEID }),
		list(ieUEIP, readUEIP, (*writer).ueip, func(c *Created[ID]) *[]UEIP { return &c.UEIP }),
	}, nil)
}

var (
	createdPDR      = created(iePDRID, readUint16, (*writer).uint16)
	createdEndpoint = created(ieEndpointID, readUint8, (*writer).uint8)
)
