// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"fmt"
	"net/netip"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

func flag(on bool, bit uint32) uint32 {
	if on {
		return bit
	}
	return 0
}

func (c *compiler) engine() {
	e := &c.Engine
	urrs := e.Limits.URRs
	if urrs == 0 && len(c.Access.Ports) > 0 {
		urrs = 2 * e.Limits.Sessions // sign-in has one of all packets, one of IPv6's
	}
	body := api.Engine{
		Workers: e.Workers, PacketBuffers: e.PacketBuffers, BufferSize: e.BufferSize,
		MaxSessions: e.Limits.Sessions, MaxFlows: e.Limits.Flows,
		MaxHeld: c.Buffers.Neighbour, MaxFragments: c.Buffers.Fragments, MaxScheduled: c.Buffers.Scheduled,
		MaxHandedOver: c.Buffers.HandedOver, MaxPunted: c.Buffers.Punted,
		ICMPErrorRate: e.Rates.ICMPErrors, ErrorIndicationRate: e.Rates.ErrorIndications,
		EchoRate: e.Rates.Echo, PuntRate: e.Rates.Punt,
		MaxNeighbours: e.Limits.Neighbours, MaxUnresolved: e.Limits.Unresolved, SolicitationRate: e.Rates.Solicitations,
		FlowRate: e.Rates.NewFlows, SubscriberFlowRate: e.Rates.SubscriberFlows,
		MaxRules: e.Limits.Rules, MaxURRs: urrs, MaxQERs: e.Limits.SharedMeters,
		MaxBuffered: c.Buffers.Paging, MaxEvents: e.Limits.Events, EventRate: e.Rates.Events,
		BufferSeconds: e.BufferingTime,
		ChannelKib:    e.Limits.Channel, PuntSubscriberRate: e.Rates.PuntSubscriber,
		PuntLineRate: e.Rates.PuntLine, PuntSTagRate: e.Rates.PuntSTag, PuntPortRate: e.Rates.PuntPort,
		FlowIdle: e.FlowIdle, FlowLifetime: e.FlowLifetime, MaxRoutes: e.Limits.Routes,
		MaxTraffic: e.Limits.Traffic,
		Flags: flag(e.DropUEGTPU, api.EngineDropUEGTPU) | flag(e.IdleSleep, api.EngineIdleSleep) |
			flag(e.UDPSums == "zero_over_ipv6", api.EngineUDPSumZero6) |
			flag(e.UDPSums == "ignore", api.EngineUDPSumIgnored),
	}
	for i := range body.CPU {
		body.CPU[i] = -1
		if i < len(e.CPUs) {
			body.CPU[i] = int32(e.CPUs[i])
		}
	}
	c.put(api.KindEngine, "engine", api.Body(&body))
}

var offloads = map[string]uint32{
	"none": api.OffloadNone, "encapsulation": api.OffloadEncapsulation, "full": api.OffloadFull,
	"auto": api.OffloadAuto,
}

func (c *compiler) ports() {
	for _, p := range c.Ports {
		body := api.Port{
			Role: api.RoleAccess, MTU: p.MTU, Queues: p.Queues, QueueSize: p.QueueSize, MAC: p.MAC,
			Promiscuous: byte(flag(p.Promiscuous, 1)), Offload: offloads[p.Offload],
			SignIn: flag(p.SignIn.Packet, api.SignInPacket),
		}
		if p.Role == "core" {
			body.Role = api.RoleCore
		}
		c.text(body.Driver[:], p.Driver)
		c.text(body.Devargs[:], p.DevArgs())
		c.text(body.Xconnect[:], string(p.Xconnect))
		for n, m := range p.Bond.Members {
			c.text(body.Member[n].Driver[:], m.Driver)
			c.text(body.Member[n].Devargs[:], config.DevArgs(m.Driver, m.Device, m.Args))
			body.Members++
		}
		c.put(api.KindPort, string(p.Name), api.Body(&body))
	}
}

func (c *compiler) interfaces() {
	for _, f := range c.Interfaces {
		body := api.Interface{OuterVLAN: f.OuterVLAN, InnerVLAN: f.InnerVLAN, Count: uint32(len(f.Addresses))}
		c.text(body.Port[:], string(f.Port))
		c.text(body.VRF[:], string(f.VRF))
		body.Flags = flag(f.Reverse == "loose", api.InterfaceRPFLoose) |
			flag(f.Reverse == "strict", api.InterfaceRPFStrict) | flag(f.Proxy, api.InterfaceLocalProxy)
		for n, a := range f.Addresses {
			if n < len(body.Address) {
				body.Address[n] = api.FromPrefix(a.Prefix)
			}
		}
		c.put(api.KindInterface, string(f.Name), api.Body(&body))
	}
}

func (c *compiler) clones() {
	for _, f := range c.Interfaces {
		if f.Clone.Device == "" {
			continue
		}
		var body api.Clone
		c.text(body.Device[:], f.Clone.Device)
		c.text(body.Netns[:], f.Clone.File())
		c.put(api.KindClone, string(f.Name), api.Body(&body))
	}
}

// discards are the kinds of discard routes, by the configuration's words.
var discards = map[string]uint32{"blackhole": api.DiscardBlackhole, "unreachable": api.DiscardUnreachable,
	"prohibit": api.DiscardProhibit}

// lines sends the VLANs of ports where subscribers sign in.
func (c *compiler) lines() {
	ranges := map[config.Name][]api.LineRange{}
	for i := range c.Access.Ports {
		p := &c.Access.Ports[i]
		ranges[p.Port] = append(ranges[p.Port], api.LineRange{
			STag:  [2]uint16{p.STags.First, p.STags.Last},
			CTag:  [2]uint16{p.CTags.First, p.CTags.Last},
			Flags: flag(p.VLANs == "1:1", api.LineOne) | flag(p.Trusted, api.LineTrusted),
		})
	}
	for _, p := range c.Ports {
		if list := ranges[p.Name]; len(list) > 0 {
			body := api.Body(&api.Lines{Count: uint32(len(list))})
			c.put(api.KindLines, string(p.Name), api.AppendRows(body, list))
		}
	}
}

func (c *compiler) routes() {
	resolver, known := config.NewResolver(c.Config), map[kernel.Destination]bool{}
	for i := range c.Routes {
		r := &c.Routes[i]
		d := kernel.Destination{VRF: string(c.RouteVRF(r)), Prefix: r.Prefix.Prefix}
		known[d] = true
		body := api.Route{Discard: discards[r.Discard]}
		var hops []api.RouteHop
		next, _ := resolver.NextHops(r) // checked
		for _, h := range next {
			hop := api.RouteHop{Via: api.FromAddr(h.Via)}
			c.text(hop.Interface[:], string(h.Interface.Name))
			hops = append(hops, hop)
		}
		if len(hops) > 0 {
			body.Via, body.Interface = hops[0].Via, hops[0].Interface
			hops = hops[1:]
		}
		body.Further = uint32(len(hops))
		c.route(d, body, hops)
	}
	for _, o := range c.Owned() {
		d := kernel.Destination{VRF: string(o.VRF), Prefix: o.Prefix}
		if !known[d] {
			c.route(d, api.Route{Discard: api.DiscardUnassigned}, nil)
		}
	}
}

func (c *compiler) route(d kernel.Destination, body api.Route, hops []api.RouteHop) {
	body.Prefix = api.FromPrefix(d.Prefix)
	c.text(body.VRF[:], d.VRF)
	c.putShort(api.KindRoute, string(appendRouteName(nil, d)), api.AppendRows(api.Body(&body), hops))
}

func (c *compiler) neighbours() {
	for _, n := range c.Neighbours {
		body := api.Neighbour{Address: api.FromAddr(n.Address.Addr), MAC: n.MAC}
		c.text(body.Interface[:], string(n.Interface))
		c.putShort(api.KindNeighbour, string(n.Interface)+"|"+n.Address.String(), api.Body(&body))
	}
}

// putShort is put for objects whose natural name may be too long for a key.
func (c *compiler) putShort(kind uint32, name string, body []byte) {
	if err := c.state.add(kind, api.ShortKey(name), body); err != nil && c.err == nil {
		c.err = err
	}
}

func action(word string) byte {
	if word == "permit" {
		return api.ActionPermit
	}
	return api.ActionDeny
}

// acl: rules as given have falling priorities from the top, so that the first match wins; the subscribers' own rules
// come below them, all alike (they do not overlap).
func (c *compiler) acl(name string, set *config.RuleSet, uplink bool) {
	count := len(set.Rules)
	if set.PerSubscriber {
		for i := range c.Subscribers {
			count += int(flag(c.Subscribers[i].IPv4.IsValid(), 1) + flag(c.Subscribers[i].IPv6.IsValid(), 1))
		}
	}
	const most = (api.MaxObject - api.SizeofACL - 2*api.SizeofPartHead - 7) / api.SizeofACLRule
	if count > most {
		if c.err == nil {
			c.err = fmt.Errorf("firewall.%s: %d rules are more than one message holds (%d)", name, count, most)
		}
		return
	}
	head := api.ACL{DefaultAction: uint32(action(set.Default)), Count: uint32(count)}
	rules := make([]api.ACLRule, 0, count)
	for i, r := range set.Rules {
		rule := api.ACLRule{
			Source: api.FromPrefix(r.Source.Prefix), Destination: api.FromPrefix(r.Destination.Prefix),
			SourcePort: r.SourcePort.Ports(), DestinationPort: r.DestinationPort.Ports(),
			Protocol: r.Protocol.Number, Action: action(r.Action), Priority: uint32(len(set.Rules) - i + 1),
		}
		if !r.Protocol.Any() {
			rule.ProtocolMask = 0xff
		}
		rules = append(rules, rule)
	}
	if set.PerSubscriber {
		for i := range c.Subscribers {
			rules = appendOwn(rules, &c.Subscribers[i], uplink)
		}
	}
	c.put(api.KindACL, name, api.AppendRows(api.Body(&head), rules))
}

// appendOwn permits a subscriber's own addresses.
func appendOwn(rules []api.ACLRule, h *config.Subscriber, uplink bool) []api.ACLRule {
	rule := api.ACLRule{SourcePort: [2]uint16{0, 65535}, DestinationPort: [2]uint16{0, 65535},
		Action: api.ActionPermit, Priority: 1}
	own := &rule.Destination
	if uplink {
		own = &rule.Source
	}
	if h.IPv4.IsValid() {
		*own = api.FromAddr(h.IPv4)
		rules = append(rules, rule)
	}
	if h.IPv6.IsValid() {
		*own = api.FromPrefix(h.IPv6)
		rules = append(rules, rule)
	}
	return rules
}

func colourAction(a config.ColourAction) byte {
	switch a.Verb {
	case "drop":
		return api.ColourActionDrop
	case "remark":
		return api.ColourActionRemark
	}
	return api.ColourActionPass
}

func (c *compiler) policers() {
	for _, p := range c.Policers {
		body := api.Policer{Type: api.MeterSRTCM, CIR: p.CIR.Bytes(), CBS: p.CBS.Bytes(p.CIR), PBS: p.EBS.Bytes(p.CIR)}
		if p.Type == "trtcm" {
			body.Type, body.PIR, body.PBS = api.MeterTRTCM, p.PIR.Bytes(), p.PBS.Bytes(p.PIR)
		}
		for n, a := range []config.ColourAction{p.Green, p.Yellow, p.Red} {
			body.Action[n], body.DSCP[n] = colourAction(a), a.DSCP
		}
		if p.Aware {
			body.ColourAware = 1
		}
		c.put(api.KindPolicer, string(p.Name), api.Body(&body))
	}
}

func (c *compiler) paths() {
	for _, p := range c.Paths {
		body := api.Path{Local: api.FromAddr(p.Local.Addr), Peer: api.FromAddr(p.Peer.Addr),
			SourcePort: p.SourcePort, DSCP: p.DSCP, TTL: p.TTL, EchoInterval: p.EchoInterval,
			QFIDSCP: QFIDSCP(p.QFIDSCP)}
		c.put(api.KindPath, string(p.Name), api.Body(&body))
	}
}

// QFIDSCP is a table of QFI to DSCP in the contract's form: 0 is none.
func QFIDSCP(table map[uint8]uint8) (out [64]byte) {
	for qfi, dscp := range table {
		out[qfi] = 1 + dscp
	}
	return out
}

// defaultClass is the traffic class and queue of an unconfigured DSCP (RFC 4594's order).
func defaultClass(dscp int) config.Class {
	switch {
	case dscp == 46 || dscp == 44 || dscp == 40 || dscp == 48 || dscp == 56: // EF, VOICE-ADMIT, CS5 to CS7
		return config.Class{Class: 0}
	case dscp == 32 || dscp == 34 || dscp == 36 || dscp == 38: // CS4, AF4x
		return config.Class{Class: 1}
	case dscp >= 16 && dscp <= 30 && dscp%2 == 0: // CS2, AF2x, CS3, AF3x
		return config.Class{Class: 2}
	case dscp == 10 || dscp == 12 || dscp == 14: // AF1x
		return config.Class{Class: 3, Queue: 1}
	case dscp == 8: // CS1: lower effort
		return config.Class{Class: 3, Queue: 3}
	}
	return config.Class{Class: 3, Queue: 0}
}

func (c *compiler) schedulers() {
	for _, s := range c.Schedulers {
		body := api.Scheduler{
			Rate: s.Rate.Bytes(), FrameOverhead: s.FrameOverhead,
			QueueSize: s.QueueSize, Subports: uint32(len(s.Groups)), Profiles: uint32(len(s.Profiles)),
		}
		body.PrecedenceSize = [2][api.TrafficClasses]uint32{s.YellowSize, s.RedSize}
		for class, size := range s.RedSize {
			if size == 0 {
				body.PrecedenceSize[1][class] = s.YellowSize[class]
			}
		}
		for _, r := range s.RED {
			body.Red[r.Class] = api.Red{Min: r.Min, Max: r.Max, Probability: r.Probability, Weight: r.Weight}
		}
		for n := range body.DSCPClass {
			class, ok := s.Classes.DSCP[uint8(n)]
			if !ok {
				class = defaultClass(n)
			}
			body.DSCPClass[n] = class.Class<<2 | class.Queue
			body.QFIClass[n] = 0xff
			if class, ok := s.Classes.QFI[uint8(n)]; ok {
				body.QFIClass[n] = class.Class<<2 | class.Queue
			}
		}
		for n := range min(len(s.Groups), len(body.Subport)) {
			g, to := &s.Groups[n], &body.Subport[n]
			to.Rate, to.Burst, to.Pipes, to.Worker = g.Rate.Bytes(), g.Burst.Bytes(g.Rate), g.Pipes, uint32(g.Worker)
			for t, rate := range g.ClassRates {
				to.ClassRate[t] = rate.Bytes()
			}
		}
		for n := range min(len(s.Profiles), len(body.Profile)) {
			p, to := &s.Profiles[n], &body.Profile[n]
			c.text(to.Name[:], string(p.Name))
			to.Rate, to.Burst, to.Weight = p.Rate.Bytes(), p.Burst.Bytes(p.Rate), p.Weights
			for t, rate := range p.ClassRates {
				to.ClassRate[t] = rate.Bytes()
			}
		}
		c.put(api.KindScheduler, string(s.Port), api.Body(&body))
	}
}

// Rules of every session that comes from the file. Numbers are the session's own.
const (
	uplinkRule   = 1
	downlinkRule = 2
	precedence   = 100 // leaves room on both sides for rules that a policy adds; QoS rules are before it
)

var access, core = pfcp.Access, pfcp.Core

// sessions: a subscriber is one session with two rules, as TS 23.316 has it for a wireline access gateway. The uplink
// rule leads from its traffic endpoint into the GTP-U path, the downlink rule from our F-TEID back to the endpoint.
func (c *compiler) sessions() {
	locals := make(map[config.Name]netip.Addr, len(c.Paths))
	for i := range c.Paths {
		locals[c.Paths[i].Name] = c.Paths[i].Local.Addr
	}
	var compile rules.LineCompiler
	var s *subscriber
	for i := range c.Subscribers {
		h := &c.Subscribers[i]
		if s == nil || s.from != h.From {
			s = c.subscriber(h.From, locals[h.From.Path])
		}
		body, err := compile.Body(s.is(h))
		if err != nil && c.err == nil {
			c.err = err
		}
		c.put(api.KindSession, h.Name, body)
	}
}

// subscriber is a session of one range after the other.
type subscriber struct {
	rules.Session
	from  *config.SubscriberRange
	line  api.Session
	ue    []pfcp.UEIP
	teid  *uint32 // that we receive on
	outer *pfcp.OuterHeader
}

// subscriber has what all of a range have.
func (c *compiler) subscriber(from *config.SubscriberRange, local netip.Addr) *subscriber {
	fteid := &pfcp.FTEID{IPv6: local}
	if local.Is4() {
		fteid.IPv4, fteid.IPv6 = local, netip.Addr{}
	}
	s := &subscriber{from: from, ue: make([]pfcp.UEIP, 1), teid: &fteid.TEID, outer: &pfcp.OuterHeader{}}
	s.line = api.Session{Encap: api.EncapQinQ, OuterTPID: from.TPID, MRU: from.MRU, MSS: uint16(from.MSS)}
	c.text(s.line.Port[:], string(from.Port))
	c.text(s.line.Mirror[:], string(from.Mirror))
	c.text(s.line.Counter[:], string(from.Counter))
	rule := func(id uint16, from pfcp.Interface, f *pfcp.FTEID) pfcp.CreatePDR {
		number := uint32(id)
		return pfcp.CreatePDR{ID: id, Precedence: precedence, FAR: &number, QER: []uint32{number},
			PDI: pfcp.PDI{Source: from, UEIP: s.ue, LocalFTEID: f}}
	}
	far := func(id uint32, path config.Name, w pfcp.Forwarding) rules.FAR {
		return rules.FAR{CreateFAR: pfcp.CreateFAR{ID: id, Action: pfcp.ActionForward, Forwarding: &w},
			Path: string(path)}
	}
	up := pfcp.Forwarding{Destination: &core, OuterHeader: s.outer}
	if from.OwnDSCP {
		up.TransportMarking = &from.DSCP
	}
	s.Line, s.QER = &s.line, qers(from)
	s.PDR = []pfcp.CreatePDR{rule(uplinkRule, pfcp.Access, nil), rule(downlinkRule, pfcp.Core, fteid)}
	for i := range from.QoSRules { // TS 23.501 clause 5.7.1.4: the rest has the default QoS rule
		r := &from.QoSRules[i]
		id := uint32(downlinkRule + 1 + i)
		up := rule(uint16(id), pfcp.Access, nil)
		up.Precedence, up.FAR = uint32(r.Precedence), s.PDR[0].FAR
		up.QER = append([]uint32{uplinkRule}, id) // the later QFI counts
		s.PDR = append(s.PDR, up)
		s.QER = append(s.QER, qosFlow(id, r))
		if s.LineFilters == nil {
			s.LineFilters = map[uint16][]api.SDF{}
		}
		s.LineFilters[uint16(id)] = filters(r)
	}
	s.FAR = []rules.FAR{far(uplinkRule, from.Path, up), far(downlinkRule, "", pfcp.Forwarding{Destination: &access})}
	return s
}

// is makes it one subscriber of the range.
func (s *subscriber) is(h *config.Subscriber) *rules.Session {
	s.SEID, s.Worker = api.DigestOf([]byte(h.Name)), h.Worker
	l := &s.line
	l.STag, l.CTag, l.PPPoESession, l.MAC, l.Subport, l.Pipe = h.STag, h.CTag, h.PPPoESession, h.MAC, h.Subport, h.Pipe
	if l.Encap = api.EncapQinQ; h.PPPoESession != 0 {
		l.Encap = api.EncapQinQPPPoE
	}
	l.PipeProfile = [api.NameSize]byte{}
	copy(l.PipeProfile[:api.NameSize-1], h.Profile)
	s.ue[0] = pfcp.UEIP{IPv4: h.IPv4, IPv6: h.IPv6}
	*s.teid, s.outer.TEID = h.TEIDDownlink, h.TEIDUplink
	return &s.Session
}

// qosFlow is a rule's own QER. Gate and meter of the subscriber's whole uplink are in another.
func qosFlow(id uint32, r *config.QoSRule) rules.QER {
	open := uint8(0)
	return rules.QER{CreateQER: pfcp.CreateQER{ID: id, GateUplink: &open, GateDownlink: &open, QFI: &r.QFI},
		UplinkPolicer: string(r.Policer)}
}

// filters: one for each DSCP.
func filters(r *config.QoSRule) []api.SDF {
	bits := func(list []uint8) (mask uint8) {
		for _, n := range list {
			mask |= 1 << n
		}
		return mask
	}
	one := api.SDF{Remote: api.FromPrefix(r.Destination.Prefix), Local: api.FromPrefix(r.Source.Prefix),
		RemotePort: r.DestinationPort.Ports(), LocalPort: r.SourcePort.Ports(),
		SPcp: bits(r.STagPriority), CPcp: bits(r.CTagPriority)}
	if !r.Protocol.Any() {
		one.Flags, one.Protocol = api.SDFProtocol, r.Protocol.Number
	}
	if len(r.DSCP) == 0 {
		return []api.SDF{one}
	}
	list := make([]api.SDF, len(r.DSCP))
	for i, dscp := range r.DSCP {
		list[i] = one
		list[i].Flags |= api.SDFTOS
		list[i].TOS, list[i].TOSMask = dscp<<2, 0xfc
	}
	return list
}

func qers(from *config.SubscriberRange) []rules.QER {
	open := uint8(0)
	qer := func(id uint32, qfi uint8) rules.QER {
		return rules.QER{CreateQER: pfcp.CreateQER{ID: id, GateUplink: &open, GateDownlink: &open, QFI: &qfi}}
	}
	gate := func(word string) *uint8 {
		closed := byte(flag(word == "closed", 1))
		return &closed
	}
	up, down := qer(uplinkRule, from.QFIUplink), qer(downlinkRule, from.QFIDownlink)
	up.GateUplink, up.UplinkPolicer = gate(from.UplinkGate), string(from.UplinkPolicer)
	down.GateDownlink, down.DownlinkPolicer = gate(from.DownlinkGate), string(from.DownlinkPolicer)
	return []rules.QER{up, down}
}
