// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"math/bits"
	"net/netip"
	"time"
)

// Tables of FARs, BARs and QERs (TS 29.244 §7.5.2.3, §7.5.2.5, §7.5.2.6, §7.5.4.3, §7.5.4.5, §7.5.4.11, §7.5.9.2).

// readAction is TS 29.244 §8.2.26. Spare bits of octet 6 are left alone.
func readAction(v []byte) (ApplyAction, *Error) {
	a := ApplyAction(flags(v)) & 0x1fff
	const known = ActionDrop | ActionForward | ActionBuffer | ActionNotify | ActionDuplicate
	switch {
	case a&^known != 0: // IP multicast, redundant transmission, reports of buffered and discarded packets, MBS
		return a, unserved("apply action %#x", uint16(a))
	case bits.OnesCount16(uint16(a&(ActionDrop|ActionForward|ActionBuffer))) != 1:
		return a, incorrect("apply action %#x is not one of drop, forward, buffer", uint16(a)) // row P33
	case a&ActionNotify != 0 && a&ActionBuffer == 0:
		return a, incorrect("apply action %#x notifies without buffering", uint16(a))
	}
	return a, nil
}

// readUpdateAction is readAction of an Update FAR, where the session layer decides about 0.
func readUpdateAction(v []byte) (ApplyAction, *Error) {
	if flags(v)&0x1fff == 0 {
		return 0, nil
	}
	return readAction(v)
}

// readOuterHeader is TS 29.244 §8.2.56; row P19 is a value shorter than its description.
func readOuterHeader(v []byte) (OuterHeader, *Error) {
	c := cursor{b: v}
	o := OuterHeader{Description: c.uint16()}
	const gtpu, udp = OuterGTPUIPv4 | OuterGTPUIPv6, OuterUDPIPv4 | OuterUDPIPv6
	if o.Description&gtpu != 0 {
		o.TEID = c.uint32()
	}
	o.IPv4, o.IPv6 = c.pair(o.Description&(OuterGTPUIPv4|OuterUDPIPv4|OuterIPv4) != 0,
		o.Description&(OuterGTPUIPv6|OuterUDPIPv6|OuterIPv6) != 0)
	if o.Description&udp != 0 {
		o.Port = c.uint16()
	}
	if tags := o.Description >> 14; tags != 0 { // C-TAG, S-TAG
		c.take(3 * bits.OnesCount16(tags))
	}
	if refusal := c.end(ieOuterHeaderCreation, len(v)); refusal != nil {
		return o, refusal
	}
	switch {
	case o.Description&^(gtpu|udp) != 0: // IP in IP, VLAN tags, N19, N6, low layer source specific multicast
		return o, unserved("outer header creation %#04x", o.Description)
	case o.Description == 0 || o.Description&gtpu != 0 && o.Description&udp != 0:
		return o, incorrect("outer header creation %#04x", o.Description)
	case o.Description&udp != 0 && o.Port == 0:
		return o, incorrect("port 0")
	}
	return o, nil
}

// where asks for a header that leads to a host.
func (o *OuterHeader) where() *Error {
	refusal := unicast(o.IPv4, o.IPv6)
	if o.Description&(OuterGTPUIPv4|OuterGTPUIPv6) != 0 && o.TEID == 0 {
		refusal = incorrect("TEID 0")
	}
	if refusal != nil {
		refusal.Offending = ieOuterHeaderCreation
	}
	return refusal
}

// unused removes an outer header without a destination from a FAR that drops or buffers, and refuses it where the FAR
// may forward. CP functions that do not know the radio node's tunnel send TEID 0 or 0.0.0.0 (SD-Core's pfcpsim).
func (f *Forwarding) unused(a *ApplyAction) *Error {
	if f == nil || f.OuterHeader == nil {
		return nil
	}
	refusal := f.OuterHeader.where()
	if refusal != nil && a != nil && *a != 0 && *a&ActionForward == 0 {
		f.OuterHeader, refusal = nil, nil
	}
	return refusal
}

// readMarking is TS 29.244 §8.2.12: ToS or traffic class and its mask; only the DSCP is set, ECN is the packet's own.
func readMarking(v []byte) (uint8, *Error) { return v[0] & v[1] >> 2, nil }

// readRedirect is TS 29.244 §8.2.20. Peers of before Release 15 send no second address.
func readRedirect(v []byte) (Redirect, *Error) {
	c := cursor{b: v[1:]}
	r := Redirect{Type: v[0] & 15, Address: c.text()}
	if len(c.b) > 0 {
		r.Other = c.text()
	}
	if refusal := c.end(ieRedirectInformation, len(v)); refusal != nil {
		return r, refusal
	}
	switch {
	case r.Type == 3:
		return r, unserved("redirection to a SIP URI")
	case r.Type > 4:
		return r, incorrect("redirect address type %d", r.Type)
	case len(r.Address)+len(r.Other) > maxText || !printable([]byte(r.Address+r.Other), false):
		return r, incorrect("redirect address")
	case r.Type == 2 && r.Address != "":
		return r, nil
	}
	first, err1 := netip.ParseAddr(r.Address)
	other, err2 := netip.ParseAddr(r.Other)
	ok := err1 == nil && first.Zone() == "" && first.Is4() == (r.Type != 1)
	if r.Type == 4 {
		ok = ok && err2 == nil && other.Zone() == "" && !other.Is4()
	}
	if !ok {
		return r, incorrect("redirect address %q %q of type %d", r.Address, r.Other, r.Type)
	}
	return r, nil
}

var forwardingUnserved = []uint16{ieHeaderEnrichment, ieProxying, ieRedundantForwarding, ieDNAI}

// forwardingFields are those of Forwarding Parameters and Update Forwarding Parameters.
var forwardingFields = []field[Forwarding]{
	optional(ieDestinationInterface, readInterface, write8[Interface],
		func(f *Forwarding) **Interface { return &f.Destination }),
	{ie: ieNetworkInstance, read: func(v []byte, f *Forwarding) *Error {
		name, refusal := nameOrNone(v)
		if name != "" {
			f.NetworkInstance = &name
		}
		return refusal
	}, write: func(w *writer, f *Forwarding) {
		if f.NetworkInstance != nil {
			w.instance(ieNetworkInstance, *f.NetworkInstance)
		}
	}},
	optional(ieRedirectInformation, readRedirect, (*writer).redirect,
		func(f *Forwarding) **Redirect { return &f.Redirect }),
	optional(ieOuterHeaderCreation, readOuterHeader, (*writer).outerHeader,
		func(f *Forwarding) **OuterHeader { return &f.OuterHeader }),
	optional(ieTransportLevelMarking, readMarking, (*writer).marking,
		func(f *Forwarding) **uint8 { return &f.TransportMarking }),
	{ie: ieForwardingPolicy, read: func([]byte, *Forwarding) *Error {
		// No policies are configured, so none is known (TS 29.244 §8.2.1, cause 70).
		return &Error{Cause: CauseInvalidForwarding, Text: "unknown forwarding policy"}
	}, write: func(w *writer, f *Forwarding) {
		if f.Policy != "" {
			w.policy(ieForwardingPolicy, f.Policy)
		}
	}},
	optional(ieEndpointID, readUint8, (*writer).uint8, func(f *Forwarding) **uint8 { return &f.LinkedEndpoint }),
	optional(ieInterfaceType, readInterfaceType, (*writer).uint8,
		func(f *Forwarding) **uint8 { return &f.InterfaceType }),
	{ie: ieSMReqFlags, read: func(v []byte, f *Forwarding) *Error {
		if v[0]&smDefined&^(smDropBuffered|smEndMarker) != 0 { // of the message, not of a FAR
			return unserved("PFCPSMReq-Flags %#x of a FAR", v[0])
		}
		f.DropBuffered, f.SendEndMarker = v[0]&smDropBuffered != 0, v[0]&smEndMarker != 0
		return nil
	}, write: func(w *writer, f *Forwarding) {
		if f.SendEndMarker || f.DropBuffered {
			w.uint8(ieSMReqFlags, when(f.DropBuffered, smDropBuffered)|when(f.SendEndMarker, smEndMarker))
		}
	}},
}

var createForwarding = newGroup(append([]field[Forwarding]{need(forwardingFields[0])}, forwardingFields[1:]...),
	forwardingUnserved)

var updateForwarding = newGroup(forwardingFields, forwardingUnserved)

// A copy may go to the LI function (4) as well: it is a tunnel like the others.
func readDuplicateInterface(v []byte) (Interface, *Error) {
	if v[0]&15 == 4 {
		return 4, nil
	}
	return readInterface(v)
}

func readCopyHeader(v []byte) (OuterHeader, *Error) {
	o, refusal := readOuterHeader(v)
	if refusal == nil {
		refusal = o.where()
	}
	return o, refusal
}

// duplicating is of creations and updates. The destination of an update is optional in the standard; we keep no old
// copy to merge with, so it is asked for.
var duplicating = newGroup([]field[Duplicating]{
	need(always(ieDestinationInterface, readDuplicateInterface, write8[Interface],
		func(d *Duplicating) *Interface { return &d.Destination })),
	optional(ieOuterHeaderCreation, readCopyHeader, (*writer).outerHeader,
		func(d *Duplicating) **OuterHeader { return &d.OuterHeader }),
	optional(ieTransportLevelMarking, readMarking, (*writer).marking,
		func(d *Duplicating) **uint8 { return &d.TransportMarking }),
	{ie: ieForwardingPolicy, read: func([]byte, *Duplicating) *Error {
		return &Error{Cause: CauseInvalidForwarding, Text: "unknown forwarding policy"}
	}},
}, nil)

var createFAR = newGroup([]field[CreateFAR]{
	need(always(ieFARID, readUint32, (*writer).uint32, func(f *CreateFAR) *uint32 { return &f.ID })),
	need(always(ieApplyAction, readAction, (*writer).action, func(f *CreateFAR) *ApplyAction { return &f.Action })),
	inner(ieForwardingParameters, createForwarding, func(f *CreateFAR) **Forwarding { return &f.Forwarding }),
	inner(ieDuplicatingParameters, duplicating, func(f *CreateFAR) **Duplicating { return &f.Duplicating }),
	optional(ieBARID, readUint8, (*writer).uint8, func(f *CreateFAR) **uint8 { return &f.BAR }),
}, []uint16{ieRedundantForwarding}).of(RuleFAR, ieFARID).checked(func(f *CreateFAR) *Error {
	if f.Action&ActionForward != 0 && f.Forwarding == nil {
		return absent(ieForwardingParameters, "FAR forwards nowhere")
	}
	if f.Action&ActionDuplicate != 0 && f.Duplicating == nil {
		return absent(ieDuplicatingParameters, "FAR duplicates to nowhere")
	}
	return f.Forwarding.unused(&f.Action)
})

var updateFAR = newGroup([]field[UpdateFAR]{
	need(always(ieFARID, readUint32, (*writer).uint32, func(f *UpdateFAR) *uint32 { return &f.ID })),
	optional(ieApplyAction, readUpdateAction, (*writer).action,
		func(f *UpdateFAR) **ApplyAction { return &f.Action }),
	inner(ieUpdateForwarding, updateForwarding, func(f *UpdateFAR) **Forwarding { return &f.Forwarding }),
	inner(ieUpdateDuplicating, duplicating, func(f *UpdateFAR) **Duplicating { return &f.Duplicating }),
	optional(ieBARID, readUint8, (*writer).uint8, func(f *UpdateFAR) **uint8 { return &f.BAR }),
}, []uint16{ieRedundantForwarding}).of(RuleFAR, ieFARID).checked(func(f *UpdateFAR) *Error {
	return f.Forwarding.unused(f.Action)
})

// delayStep is the unit of a Downlink Data Notification Delay (TS 29.244 §8.2.28).
const delayStep = 50 * time.Millisecond

func readDelay(v []byte) (time.Duration, *Error) { return time.Duration(v[0]) * delayStep, nil }

var createBAR = newGroup([]field[CreateBAR]{
	need(always(ieBARID, readUint8, (*writer).uint8, func(b *CreateBAR) *uint8 { return &b.ID })),
	optional(ieNotificationDelay, readDelay, (*writer).delay,
		func(b *CreateBAR) **time.Duration { return &b.NotifyDelay }),
	optional(ieBufferingDuration, readTimer, (*writer).timer,
		func(b *CreateBAR) **time.Duration { return &b.Duration }),
	optional(ieBufferingPacketCount, readUint16, (*writer).packets,
		func(b *CreateBAR) **uint16 { return &b.BufferPackets }),
	optional(ieSuggestedPackets, readUint8, (*writer).uint8, func(b *CreateBAR) **uint8 { return &b.SuggestedPackets }),
}, []uint16{ieMTEDTControl}).of(RuleBAR, ieBARID)

// rates reads the 40 bits of each direction (TS 29.244 §8.2.8, §8.2.9).
func rates(ie uint16, at func(*CreateQER) (up, down **uint64)) field[CreateQER] {
	return field[CreateQER]{ie: ie, read: func(v []byte, q *CreateQER) *Error {
		u, d := number(v[:5]), number(v[5:])
		up, down := at(q)
		*up, *down = &u, &d
		return nil
	}, write: func(w *writer, q *CreateQER) {
		up, down := at(q)
		w.rates(ie, *up, *down)
	}}
}

// qerFields begins with what a creation must have.
var qerFields = []field[CreateQER]{
	need(always(ieQERID, readUint32, (*writer).uint32, func(q *CreateQER) *uint32 { return &q.ID })),
	{ie: ieGateStatus, read: func(v []byte, q *CreateQER) *Error {
		up, down := v[0]>>2&3, v[0]&3
		if up > 1 || down > 1 {
			return incorrect("gate status %#x", v[0])
		}
		q.GateUplink, q.GateDownlink = &up, &down
		return nil
	}, write: func(w *writer, q *CreateQER) { w.gate(ieGateStatus, q.GateUplink, q.GateDownlink) }},
	optional(ieQERCorrelationID, readUint32, (*writer).uint32, func(q *CreateQER) **uint32 { return &q.Correlation }),
	rates(ieMBR, func(q *CreateQER) (up, down **uint64) { return &q.MBRUplink, &q.MBRDownlink }),
	rates(ieGBR, func(q *CreateQER) (up, down **uint64) { return &q.GBRUplink, &q.GBRDownlink }),
	optional(ieQFI, readQFI, (*writer).uint8, func(q *CreateQER) **uint8 { return &q.QFI }),
	optional(ieRQI, func(v []byte) (bool, *Error) { return v[0]&1 != 0, nil },
		func(w *writer, ie uint16, on bool) { w.uint8(ie, when(on, 1)) }, func(q *CreateQER) **bool { return &q.RQI }),
	optional(ieAveragingWindow, readUint32, (*writer).uint32,
		func(q *CreateQER) **uint32 { return &q.AveragingWindow }),
	{ie: ieFlowLevelMarking, read: func(v []byte, q *CreateQER) *Error {
		switch { // TS 29.244 §8.2.66
		case v[0]&2 != 0: // GERAN's (TS 29.281 §5.2.2.3)
			return unserved("service class indicator")
		case len(v) != 1+2*int(v[0]&1):
			return badLength(ieFlowLevelMarking, len(v))
		case v[0]&1 != 0:
			dscp, _ := readMarking(v[1:])
			q.FlowMarking = &dscp
		}
		return nil
	}, write: func(w *writer, q *CreateQER) {
		if q.FlowMarking != nil {
			w.octets(ieFlowLevelMarking, 1, *q.FlowMarking<<2, 0xfc)
		}
	}},
}

var qerUnserved = []uint16{iePacketRate, iePagingPolicy, iePacketRateStatus, ieQERControl}

var (
	createQER = newGroup(append([]field[CreateQER]{qerFields[0], need(qerFields[1])}, qerFields[2:]...), qerUnserved).
			of(RuleQER, ieQERID)
	updateQER = newGroup(qerFields, qerUnserved).of(RuleQER, ieQERID)
)
