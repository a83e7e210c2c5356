// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

const echoPeriod = 60 // seconds between GTP-U Echo Requests to a peer (TS 29.281 §7.2.1: not more often)

// FAR is a FAR from the CP function. Marker counts requested End Markers (SNDEM). Path is a wireline subscriber's
// configured tunnel path: without one its packets leave by the endpoint.
type FAR struct {
	pfcp.CreateFAR
	Marker uint32
	Path   string
}

func (c *codec) far(f *FAR) {
	number(c, &f.ID)
	number(c, &f.Action)
	number(c, &f.Marker)
	c.optional(&f.Forwarding, &f.Duplicating, &f.BAR)
	c.text(&f.Path)
}

func (c *codec) forwarding(w *pfcp.Forwarding) {
	c.text(&w.Policy)
	c.optional(&w.Destination, &w.NetworkInstance, &w.OuterHeader, &w.TransportMarking, &w.Redirect,
		&w.LinkedEndpoint, &w.InterfaceType)
}

func (c *codec) duplicating(d *pfcp.Duplicating) {
	number(c, &d.Destination)
	some(c, &d.OuterHeader)
	some(c, &d.TransportMarking)
}

func (c *codec) redirect(r *pfcp.Redirect) {
	number(c, &r.Type)
	c.text(&r.Address)
	c.text(&r.Other)
}

func (c *codec) outer(o *pfcp.OuterHeader) {
	number(c, &o.Description)
	c.fixed32(&o.TEID)
	c.addr(&o.IPv4)
	c.addr(&o.IPv6)
	number(c, &o.Port)
}

func (c *codec) bar(b *pfcp.CreateBAR) {
	number(c, &b.ID)
	c.optional(&b.NotifyDelay, &b.SuggestedPackets, &b.Duration, &b.BufferPackets)
}

func (s *Session) checkFAR(f *FAR) *pfcp.Error {
	const one = pfcp.ActionDrop | pfcp.ActionForward | pfcp.ActionBuffer
	const known = one | pfcp.ActionNotify | pfcp.ActionDuplicate
	which := f.Action & one
	switch {
	case f.Action&^known != 0:
		return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseServiceNotSupported, ieApplyAction, "an action that is not served")
	// TS 29.244 §8.2.26: one and only one of DROP, FORW and BUFF (row P33).
	case which != pfcp.ActionDrop && which != pfcp.ActionForward && which != pfcp.ActionBuffer:
		return Fault(pfcp.RuleFAR, f.ID, ieApplyAction, "neither drop, forward nor buffer alone")
	case f.Action&pfcp.ActionNotify != 0 && which == pfcp.ActionForward:
		return Fault(pfcp.RuleFAR, f.ID, ieApplyAction, "a notification without buffering")
	case which == pfcp.ActionForward && (f.Forwarding == nil || f.Forwarding.Destination == nil):
		return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseConditionalIEMissing, ieForwarding, "no forwarding parameters")
	case f.Action&pfcp.ActionDuplicate != 0 && f.Duplicating == nil:
		return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseConditionalIEMissing, ieDuplicating, "no duplicating parameters")
	case f.BAR != nil && s.bar(*f.BAR) == nil:
		return Fault(pfcp.RuleFAR, f.ID, 88, fmt.Sprintf("BAR %d is not there", *f.BAR))
	}
	if w := f.Forwarding; w != nil {
		switch {
		case w.Destination != nil && *w.Destination > pfcp.CPSide: // row P21
			return Fault(pfcp.RuleFAR, f.ID, ieDestination, "no such destination interface")
		case w.Policy != "":
			return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseInvalidForwarding, iePolicy, "no such forwarding policy")
		case w.LinkedEndpoint != nil && s.endpoint(*w.LinkedEndpoint) == nil:
			return Fault(pfcp.RuleFAR, f.ID, 131, "the linked traffic endpoint is not there")
		}
	}
	return nil
}

func newFAR(f pfcp.CreateFAR) FAR {
	made := FAR{CreateFAR: f}
	if f.Forwarding != nil { // SNDEM and DROBU have no meaning for a tunnel that was never there
		forwarding := *f.Forwarding
		forwarding.SendEndMarker, forwarding.DropBuffered = false, false
		made.Forwarding = &forwarding
	}
	return made
}

func (f *FAR) update(u *pfcp.UpdateFAR, endMarkers bool) {
	if u.Action != nil && *u.Action != 0 { // emptyActions() let it pass
		f.Action = *u.Action
	}
	replace(&f.Duplicating, u.Duplicating)
	replace(&f.BAR, u.BAR)
	if u.Forwarding != nil {
		f.forward(u.Forwarding, endMarkers)
	}
}

// emptyActions refuses Apply Action 0 (TS 29.244 §8.2.26), unless it is to be taken as absent: free5GC's SMF sends it
// with the tunnel of a path switch.
func (m *mutation) emptyActions(req *pfcp.SessionModificationRequest) *pfcp.Error {
	for i := range req.UpdateFAR {
		if a := req.UpdateFAR[i].Action; a != nil && *a == 0 && m.set.EmptyAction != "unchanged" { // row P33
			return Refuse(pfcp.CauseMandatoryIEIncorrect, ieApplyAction,
				"apply action 0 (pfcp.empty_action: unchanged takes it as absent)")
		}
	}
	return nil
}

// forward: the end markers may be asked for by the message as a whole, or by a FAR (TS 29.244 §8.2.31, table
// 7.5.4.3-2).
func (f *FAR) forward(u *pfcp.Forwarding, endMarkers bool) {
	var fresh pfcp.Forwarding
	if f.Forwarding != nil {
		fresh = *f.Forwarding
	}
	if from, to := fresh.Destination, u.Destination; from != nil && to != nil && *from != *to {
		fresh.InterfaceType = nil // it was of the other interface
	}
	merge(&fresh, u)
	fresh.SendEndMarker, fresh.DropBuffered = false, false // of the message, not of the FAR
	if u.SendEndMarker || endMarkers && u.OuterHeader != nil {
		f.Marker++
	}
	f.Forwarding = &fresh
}

func (c *Compiler) far(f *FAR) *pfcp.Error {
	out := api.FAR{ID: f.ID, Action: byte(f.Action), DSCP: pathDSCP, Instance: noIndex, EndMarker: f.Marker}
	c.bar(f, &out)
	var more api.FARMore
	if w := f.Forwarding; w != nil {
		forwarding := c.forwarding
		if c.s.Line != nil {
			forwarding = c.lineFAR
		}
		if err := forwarding(f, w, &out); err != nil {
			return err
		}
		if r := w.Redirect; r != nil {
			if err := redirect(f, r, &more); err != nil {
				return err
			}
		}
	}
	if f.Action&pfcp.ActionDuplicate != 0 {
		if err := c.duplicate(f, &more); err != nil {
			return err
		}
	}
	if more != (api.FARMore{}) {
		c.mores = append(c.mores, more)
		out.More = byte(len(c.mores))
	}
	c.fars = append(c.fars, out)
	return nil
}

const mostBuffered = 1024 // of a session, in the data plane

// bar folds the BAR into its FARs (TS 29.244 §5.2.4).
func (c *Compiler) bar(f *FAR, out *api.FAR) {
	if f.BAR == nil {
		return
	}
	b := c.s.bar(*f.BAR)
	if b == nil {
		return
	}
	if b.NotifyDelay != nil {
		out.NotifyDelay = uint16(min(*b.NotifyDelay/time.Millisecond, 65535))
	}
	if b.SuggestedPackets != nil {
		out.BufferPackets = uint16(*b.SuggestedPackets)
	}
	if b.BufferPackets != nil {
		out.BufferPackets = min(*b.BufferPackets, mostBuffered) // a suggestion (TS 29.244 §8.2.100)
	}
	if b.Duration != nil {
		out.BufferMs = uint32(min(*b.Duration/time.Millisecond, 1<<32-1))
	}
}

// 3GPP interface types (TS 29.244 §8.2.118) without PDU Session Containers: S1, S5, S4, S11, S12, Gn, S2a, S2b,
// eNodeBs' forwarding, SGi, N6, S8, Gp, Iu, Sxa, Sxb, Sxc, N4.
const withoutContainer = 0x3ff | 1<<16 | 1<<17 | 1<<19 | 1<<20 | 1<<22 | 0xf<<24

// containerType is the PDU Session Container of the packets in a tunnel: on N3 and N9 alone (TS 29.281 §5.2.2.7),
// towards the radio network DL, else UL (TS 38.415 §5.5.2). Without interface type, access is N3 and core N9.
func containerType(w *pfcp.Forwarding) byte {
	switch {
	case w.InterfaceType != nil && uint64(withoutContainer)>>*w.InterfaceType&1 != 0:
		return api.PDUTypeNone
	case *w.Destination == pfcp.Access:
		return api.PDUTypeDL
	case *w.Destination == pfcp.Core:
		return api.PDUTypeUL
	}
	return api.PDUTypeNone
}

func (c *Compiler) forwarding(f *FAR, w *pfcp.Forwarding, out *api.FAR) *pfcp.Error {
	if w.TransportMarking != nil {
		if *w.TransportMarking > 63 {
			return Fault(pfcp.RuleFAR, f.ID, 30, "DSCP above 63")
		}
		out.DSCP = *w.TransportMarking
	}
	if w.Destination == nil {
		return nil
	}
	out.Destination = byte(*w.Destination)
	out.PDUType = containerType(w)
	name := ""
	if w.NetworkInstance != nil {
		name = *w.NetworkInstance
	}
	need := needNothing
	if w.OuterHeader != nil {
		need = needEndpoint
	}
	instance := c.Set.find(name, *w.Destination, need)
	if instance == nil && (name != "" || w.OuterHeader != nil) {
		return Fault(pfcp.RuleFAR, f.ID, ieNetworkInstance, c.Set.lacks(name, *w.Destination))
	}
	if instance != nil {
		var ok bool
		if out.Instance, ok = c.instance(instance); !ok {
			return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseNoResources, ieNetworkInstance,
				"more than 4 network instances in one session")
		}
	}
	if w.OuterHeader == nil {
		if c.Set.relay() && f.Action&pfcp.ActionForward != 0 {
			return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseServiceNotSupported, ieOuterCreation,
				"an SGW-U forwards into tunnels only")
		}
		// free5GC's SMF forwards to the gNB before it knows its tunnel: as IP the packet would loop. CP
		// functions are reached by tunnels only (TS 29.244 §5.3.2): as IP the UE's packets would follow the
		// routes.
		if f.Action&pfcp.ActionForward != 0 && (*w.Destination == pfcp.Access || *w.Destination == pfcp.CPSide) &&
			w.Redirect == nil &&
			(instance == nil || !instance.can(needLookup)) {
			out.Action = byte(f.Action&^pfcp.ActionForward | pfcp.ActionDrop)
		}
		return nil
	}
	var err *pfcp.Error
	out.Outer, out.Path, out.TEID, out.Port, err = c.creation(f, w.OuterHeader, instance)
	return err
}

// creation is Outer Header Creation (TS 29.244 §8.2.56). With both families, IPv4 is used where we have an address of
// it.
func (c *Compiler) creation(f *FAR, o *pfcp.OuterHeader, instance *Instance) (outer byte, path [api.NameSize]byte,
	teid uint32, port uint16, err *pfcp.Error) {
	const gtpu, udp = pfcp.OuterGTPUIPv4 | pfcp.OuterGTPUIPv6, pfcp.OuterUDPIPv4 | pfcp.OuterUDPIPv6
	form := o.Description & (gtpu | udp)
	if form == 0 || form != o.Description&0xff00 || form&gtpu != 0 && form&udp != 0 {
		return 0, path, 0, 0, Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseServiceNotSupported, ieOuterCreation,
			fmt.Sprintf("outer header creation %#04x", o.Description))
	}
	var local, peer netip.Addr
	for _, a := range []netip.Addr{o.IPv4, o.IPv6} {
		if a.IsValid() && !peer.IsValid() {
			if local = c.source(f, instance, a.Is4()); local.IsValid() {
				peer = a
			}
		}
	}
	if !peer.IsValid() || peer.IsUnspecified() || peer.IsMulticast() {
		return 0, path, 0, 0, Fault(pfcp.RuleFAR, f.ID, ieOuterCreation,
			"no address of ours in "+instance.Name+" for this peer")
	}
	body := api.Path{Local: api.FromAddr(local), Peer: api.FromAddr(peer), DSCP: instance.DSCP,
		QFIDSCP: instance.QFIDSCP}
	outer = api.OuterUDP
	if form&gtpu != 0 {
		if o.TEID == 0 {
			return 0, path, 0, 0, Fault(pfcp.RuleFAR, f.ID, ieOuterCreation, "TEID 0")
		}
		outer, teid = api.OuterGTPU, o.TEID
		body.EchoInterval = echoPeriod
		if t := (Tunnel{peer, teid}); !slices.Contains(c.out.Peers, t) {
			c.out.Peers = append(c.out.Peers, t)
		}
	} else if port = o.Port; port == 0 {
		return 0, path, 0, 0, Fault(pfcp.RuleFAR, f.ID, ieOuterCreation, "UDP port 0")
	}
	var b [api.SizeofPartHead + api.SizeofPath]byte
	copy(path[:], c.need(api.KindPath, api.AppendRow(b[:0], &body)))
	return outer, path, teid, port, nil
}

// source is our end of a tunnel that a FAR makes: where the linked traffic endpoint receives the reverse direction (TS
// 29.244 table 7.5.2.3-2, §5.2.3.1), else the instance's own address.
func (c *Compiler) source(f *FAR, instance *Instance, v4 bool) netip.Addr {
	if w := f.Forwarding; w != nil && w.LinkedEndpoint != nil {
		if e := c.s.endpoint(*w.LinkedEndpoint); e != nil && e.LocalFTEID != nil {
			if a := e.LocalFTEID.IPv6; !v4 && a.IsValid() {
				return a
			}
			if a := e.LocalFTEID.IPv4; v4 && a.IsValid() {
				return a
			}
		}
	}
	return instance.endpoint(v4)
}

func (c *Compiler) duplicate(f *FAR, more *api.FARMore) *pfcp.Error {
	d := f.Duplicating
	more.DuplicateDSCP = pathDSCP
	if d.TransportMarking != nil {
		more.DuplicateDSCP = *d.TransportMarking
	}
	if d.OuterHeader == nil {
		return nil
	}
	instance := c.Set.find("", d.Destination, needEndpoint)
	if instance == nil {
		return Fault(pfcp.RuleFAR, f.ID, ieDuplicating, c.Set.lacks("", d.Destination))
	}
	outer, path, teid, _, err := c.creation(f, d.OuterHeader, instance)
	if err == nil && outer != api.OuterGTPU {
		err = Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseServiceNotSupported, ieOuterCreation,
			"copies go out by GTP-U or as they are")
	}
	if err == nil {
		more.DuplicateOuter, more.DuplicatePath, more.DuplicateTEID = outer, path, teid
	}
	return err
}

// redirect is Redirect Information (TS 29.244 §8.2.20). The data plane answers HTTP requests with the URL; it has no
// address translation, which the other types would need.
func redirect(f *FAR, r *pfcp.Redirect, more *api.FARMore) *pfcp.Error {
	const url = 2
	if r.Type != url {
		return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseServiceNotSupported, 38,
			fmt.Sprintf("redirect address type %d", r.Type))
	}
	more.Redirect = api.RedirectURL
	if err := api.PutURL(more.RedirectTo[:], r.Address); err != nil {
		return Fault(pfcp.RuleFAR, f.ID, 38, "URL "+err.Error())
	}
	return nil
}
