// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"net/netip"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

const (
	maxQERsOfPDR = api.PDRQERs
	maxURRsOfPDR = api.PDRURRs
	noIndex      = 0xff
	pathDSCP     = 0xff // "the path's"
)

// Object is a path or policer that sessions share. The key is the digest of the body, so equal bodies are one object.
type Object struct {
	Kind uint32
	Key  string
	Name string // kind and key: its place among the holdings
	Body []byte
}

// ObjectName is an object's kind and key.
type ObjectName [1 + keyLength]byte

// nameOf is the name of an object with this body.
func nameOf(kind uint32, body []byte) (name ObjectName) {
	name[0] = byte('0' + kind)
	putKey(name[1:], api.BodyDigest(body))
	return name
}

// UEAddress is a UE address in an instance: who receives packets to it (or sends them, on the radio side).
type UEAddress struct {
	Instance string
	Prefix   netip.Prefix
	Framed   bool
}

// Tunnel is an F-TEID at one address.
type Tunnel struct {
	Addr netip.Addr
	TEID uint32
}

// Compiled is a session as the data plane takes it, and what it occupies.
type Compiled struct {
	Body    []byte
	Objects []Object // that the body names, each once
	Local   []Tunnel // our F-TEIDs, each once
	Peers   []Tunnel // F-TEIDs that we send to
	UEs     []UEAddress
	LocalOf []uint16 // the PDR, for each of local
	UEOf    []uint16 // the same of ues
	v4      netip.Addr
	v6      netip.Prefix
}

// Context is what a session is compiled under.
type Context struct {
	Set   *Settings
	PFDs  PFDs
	Known Known  // objects that are there need not be made again; nil: none are
	Arena *Arena // for the body, which lives as long as its transaction; nil: memory of its own
	Bare  bool   // what the session occupies alone, without a body
	// Lenient: filters that cannot be had any more (PFDs were taken away) are left out, so that a session which was
	// accepted always compiles
	Lenient bool
}

// Known finds objects by their names.
type Known interface {
	Object(name ObjectName) (Object, bool)
}

// Compiler makes contract objects of sessions. Its memory is used again for the next one.
type Compiler struct {
	Context
	s     *Session
	out   Compiled
	head  api.Session
	names []*Instance
	pdrs  []api.PDR
	fars  []api.FAR
	qers  []api.QER
	urrs  []api.URR
	sdfs  []api.SDF
	mores []api.FARMore
	route []netip.Prefix
}

// Compile translates a session that check has seen.
func Compile(with Context, s *Session) (*Compiled, *pfcp.Error) {
	return new(Compiler).Compile(with, s)
}

// Occupied compiles a session that was accepted before.
func Occupied(set *Settings, pfds PFDs, s *Session) *Compiled {
	c, err := Compile(Context{Set: set, PFDs: pfds, Lenient: true}, s)
	if err != nil {
		return &Compiled{}
	}
	return c
}

// LineCompiler makes SESSION objects of wireline subscribers. Their bodies, which share memory, live together.
type LineCompiler struct {
	c     Compiler
	set   Settings // of PFCP sessions: none
	arena Arena
}

// Body compiles a session that the configuration's checks have seen.
func (l *LineCompiler) Body(s *Session) ([]byte, error) {
	l.c.Context = Context{Set: &l.set, Arena: &l.arena}
	if err := l.c.compile(s); err != nil {
		return nil, err
	}
	return l.c.out.Body, nil
}

// Compile is the function of this name, with the compiler's memory.
func (c *Compiler) Compile(with Context, s *Session) (*Compiled, *pfcp.Error) {
	c.Context = with
	if err := c.compile(s); err != nil {
		return nil, err
	}
	made := c.out // the compiler may be used again
	return &made, nil
}

// compile leaves what it makes in out.
func (c *Compiler) compile(s *Session) *pfcp.Error {
	c.s, c.out = s, Compiled{}
	c.names, c.pdrs, c.fars, c.qers, c.urrs = c.names[:0], c.pdrs[:0], c.fars[:0], c.qers[:0], c.urrs[:0]
	c.sdfs, c.mores, c.route = c.sdfs[:0], c.mores[:0], c.route[:0]
	c.head = api.Session{SEID: s.SEID, Worker: s.Worker, Encap: api.EncapNone, Inactivity: s.Inactivity, Discard: s.Discards,
		Association: s.Association}
	if s.Line != nil {
		c.head = *s.Line
		c.head.SEID, c.head.Worker = s.SEID, s.Worker
	}
	for _, part := range [...]func(*Compiler) *pfcp.Error{(*Compiler).ue, (*Compiler).allPDRs, (*Compiler).allFARs} {
		if err := part(c); err != nil {
			return err
		}
	}
	c.allQERs()
	c.allURRs()
	if c.Bare {
		return nil
	}
	for i, n := range c.names {
		copy(c.head.Instance[i][:api.NameSize-1], n.Name)
	}
	c.body()
	return nil
}

func (c *Compiler) body() {
	h := &c.head
	h.PDRs, h.FARs, h.QERs, h.URRs = uint16(len(c.pdrs)), uint16(len(c.fars)), uint16(len(c.qers)), uint16(len(c.urrs))
	h.SDFs, h.Mores, h.Routes = uint16(len(c.sdfs)), uint16(len(c.mores)), uint16(len(c.route))
	b := c.Arena.get(api.PartRoom(api.SizeofSession, 1) + api.PartRoom(api.SizeofPDR, len(c.pdrs)) + api.PartRoom(api.SizeofFAR, len(c.fars)) +
		api.PartRoom(api.SizeofQER, len(c.qers)) + api.PartRoom(api.SizeofURR, len(c.urrs)) + api.PartRoom(api.SizeofSDF, len(c.sdfs)) +
		api.PartRoom(api.SizeofFARMore, len(c.mores)) + api.PartRoom(api.SizeofAddress, len(c.route)))
	b = api.AppendRow(b, h)
	b = api.AppendRows(b, c.pdrs)
	b = api.AppendRows(b, c.fars)
	b = api.AppendRows(b, c.qers)
	b = api.AppendRows(b, c.urrs)
	b = api.AppendRows(b, c.sdfs)
	b = api.AppendRows(b, c.mores)
	var routes [api.MaxRoutes]api.Address
	for i, p := range c.route {
		routes[i] = api.FromPrefix(p)
	}
	c.out.Body = api.AppendRows(b, routes[:len(c.route)])
}

// need names an object that the session uses; body is not kept.
func (c *Compiler) need(kind uint32, body []byte) string {
	name := nameOf(kind, body)
	for i := range c.out.Objects {
		if o := &c.out.Objects[i]; o.Name == string(name[:]) {
			return o.Key
		}
	}
	var o Object
	there := false
	if c.Known != nil {
		o, there = c.Known.Object(name)
	}
	if !there {
		o = Object{Kind: kind, Name: string(name[:]), Body: slices.Clone(body)}
		o.Key = o.Name[1:]
	}
	if c.out.Objects == nil {
		c.out.Objects = make([]Object, 0, 4)
	}
	c.out.Objects = append(c.out.Objects, o)
	return o.Key
}

// Arena is memory for what ends with a transaction.
type Arena struct{ b []byte }

const arenaSize = 64 << 10

func (a *Arena) get(n int) []byte {
	if a == nil || n > arenaSize {
		return make([]byte, 0, n)
	}
	if cap(a.b)-len(a.b) < n {
		a.b = make([]byte, 0, arenaSize) // what is in the former one stays as long as it is used
	}
	at := len(a.b)
	a.b = a.b[:at+n]
	return a.b[at : at : at+n]
}

func (a *Arena) Reset() { a.b = a.b[:0] }

// instance gives an instance a place in the session's list.
func (c *Compiler) instance(i *Instance) (byte, bool) {
	for n, known := range c.names {
		if known == i {
			return byte(n), true
		}
	}
	if len(c.names) == api.SessionInstances {
		return 0, false
	}
	c.names = append(c.names, i)
	return byte(len(c.names) - 1), true
}

// ue collects the session's own addresses and routes.
func (c *Compiler) ue() *pfcp.Error {
	for i := range c.s.PDR {
		p := &c.s.PDR[i]
		pdi := c.s.pdi(p)
		v4, v6, ok := address(pdi.UEIP)
		if !ok || v4.IsValid() && c.out.v4.IsValid() && v4 != c.out.v4 || v6.IsValid() && c.out.v6.IsValid() && v6 != c.out.v6 {
			return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseNoResources, IEUEIP, "a session has one IPv4 address and one IPv6 prefix")
		}
		if v4.IsValid() {
			c.out.v4 = v4
		}
		if v6.IsValid() {
			c.out.v6 = v6
		}
		for _, r := range pdi.FramedRoutes {
			if !slices.Contains(c.route, r.Masked()) {
				c.route = append(c.route, r.Masked())
			}
		}
		if len(c.route) > api.MaxRoutes {
			return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseNoResources, 153, fmt.Sprintf("more than %d framed routes", api.MaxRoutes))
		}
	}
	c.head.UEIP4, c.head.UEIP6 = api.FromAddr(c.out.v4), api.FromPrefix(c.out.v6)
	return nil
}

func (c *Compiler) allPDRs() *pfcp.Error {
	for i := range c.s.PDR {
		if err := c.pdr(&c.s.PDR[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Compiler) pdr(p *pfcp.CreatePDR) *pfcp.Error {
	pdi := c.s.pdi(p)
	id := uint32(p.ID)
	// TS 29.244 §5.2.1: first the session is found, then the PDR in it. A rule of nothing but flows (Open5GS'
	// dedicated QoS flows) is for the session's UE.
	if pdi.LocalFTEID == nil && len(pdi.UEIP) == 0 && len(pdi.FramedRoutes) == 0 && (c.out.v4.IsValid() || c.out.v6.IsValid()) {
		pdi.UEIP = []pfcp.UEIP{{IPv4: c.out.v4, IPv6: c.out.v6}}
	}
	out := api.PDR{Precedence: p.Precedence, ID: p.ID, Source: byte(pdi.Source), FAR: *p.FAR,
		QERs: byte(len(p.QER)), URRs: byte(len(p.URR))}
	copy(out.QER[:], p.QER)
	copy(out.URR[:], p.URR)
	if c.s.Line != nil {
		c.linePDR(&pdi, out)
		return nil
	}
	instance, err := c.where(p, &pdi)
	if err != nil {
		return err
	}
	var ok bool
	if out.Instance, ok = c.instance(instance); !ok {
		return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, ieNetworkInstance, "more than 4 network instances in one session")
	}
	if err := c.outer(p, &pdi, instance, &out); err != nil {
		return err
	}
	for _, q := range pdi.QFI {
		if q > 63 {
			return Fault(pfcp.RulePDR, id, 124, "QFI above 63")
		}
		out.Match |= api.PDRQFI
		out.QFIs |= 1 << q
	}
	if !c.Bare {
		if err := c.filters(p, &pdi, &out); err != nil {
			return err
		}
	}
	c.match(&pdi, instance, &out)
	if out.Match&api.PDRUEIP == 0 && pdi.LocalFTEID == nil {
		return Fault(pfcp.RulePDR, id, 2, "neither F-TEID nor UE address: no packet could be found to belong to it")
	}
	return c.tunnels(p, &pdi, instance, out)
}

// where finds a PDR's network instance. The one that the F-TEID's address belongs to counts when it was given.
func (c *Compiler) where(p *pfcp.CreatePDR, pdi *pfcp.PDI) (*Instance, *pfcp.Error) {
	if f := pdi.LocalFTEID; f != nil {
		a := f.IPv4
		if !a.IsValid() {
			a = f.IPv6
		}
		i := c.Set.Owner(a)
		if i == nil || f.IPv4.IsValid() && f.IPv6.IsValid() && c.Set.Owner(f.IPv6) != i {
			return nil, Fault(pfcp.RulePDR, uint32(p.ID), IEFTEID, "the F-TEID is at no address of ours")
		}
		return i, nil
	}
	need := needLookup
	if r := p.OuterHeaderRemoval; r != nil && (*r == 2 || *r == 3) { // UDP
		need = needNothing
	}
	if i := c.Set.find(pdi.NetworkInstance, pdi.Source, need); i != nil {
		return i, nil
	}
	return nil, Fault(pfcp.RulePDR, uint32(p.ID), ieNetworkInstance,
		fmt.Sprintf("no network instance %q that serves interface %d", pdi.NetworkInstance, pdi.Source))
}

// outer is Outer Header Removal (TS 29.244 §8.2.64): 0, 1, 6 GTP-U over IPv4, IPv6, any; 2, 3 UDP.
func (c *Compiler) outer(p *pfcp.CreatePDR, pdi *pfcp.PDI, instance *Instance, out *api.PDR) *pfcp.Error {
	tunnelled := pdi.LocalFTEID != nil
	if p.OuterHeaderRemoval == nil {
		if !tunnelled || c.Set.Relay {
			out.OuterHeaderRemoval = 1 // nothing is there that could be kept; Open5GS' SGW-C asks for it nowhere
		}
		return nil
	}
	out.OuterHeaderRemoval = uint8(api.RemovalOuter)
	if *p.OuterHeaderRemoval&pfcp.RemoveContainer != 0 {
		out.OuterHeaderRemoval = uint8(api.RemovalContainer)
	}
	switch *p.OuterHeaderRemoval &^ pfcp.RemoveContainer {
	case 0, 1, 6:
		return nil
	case 2, 3:
		if tunnelled || instance.UDPPort == 0 {
			return Fault(pfcp.RulePDR, uint32(p.ID), ieOuterRemoval, "no UDP port in network instance "+instance.Name)
		}
		return nil
	}
	return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseServiceNotSupported, ieOuterRemoval,
		fmt.Sprintf("outer header removal %d", *p.OuterHeaderRemoval))
}

func (c *Compiler) match(pdi *pfcp.PDI, instance *Instance, out *api.PDR) {
	v4, v6, _ := address(pdi.UEIP)
	switch {
	case v4.IsValid() && v6.IsValid():
		out.Match |= api.PDRUEIP
	case v4.IsValid():
		out.Match |= api.PDRUEIP | api.PDRUe4Only
	case v6.IsValid():
		out.Match |= api.PDRUEIP | api.PDRUe6Only
	}
	if len(pdi.FramedRoutes) > 0 {
		out.Match |= api.PDRUEIP | api.PDRFramed
	}
	if pdi.LocalFTEID != nil {
		return
	}
	own := func(p netip.Prefix, framed bool) {
		u := UEAddress{instance.Name, p, framed}
		if !slices.Contains(c.out.UEs, u) {
			c.out.UEs = append(c.out.UEs, u)
			c.out.UEOf = append(c.out.UEOf, out.ID)
		}
	}
	if v4.IsValid() {
		own(netip.PrefixFrom(v4, 32), false)
	}
	if v6.IsValid() {
		own(v6, false)
	}
	for _, r := range pdi.FramedRoutes {
		own(r.Masked(), true)
	}
}

// tunnels adds the PDR. One whose F-TEID has an address of either family stands twice, the second time under an id that
// the CP function does not use: the contract's F-TEID has one address.
func (c *Compiler) tunnels(p *pfcp.CreatePDR, pdi *pfcp.PDI, instance *Instance, out api.PDR) *pfcp.Error {
	f := pdi.LocalFTEID
	if f == nil {
		c.pdrs = append(c.pdrs, out)
		return nil
	}
	first := true
	for _, a := range []netip.Addr{f.IPv4, f.IPv6} {
		if !a.IsValid() {
			continue
		}
		if !first {
			if len(c.s.PDR)+c.twins() >= api.MaxPDR {
				return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseNoResources, IEFTEID, "no room for F-TEIDs of both families")
			}
			out.ID = c.freeID()
		}
		out.Match |= api.PDRFTEID
		out.TEID, out.Local = f.TEID, api.FromAddr(a)
		c.pdrs = append(c.pdrs, out)
		if t := (Tunnel{a, f.TEID}); !slices.Contains(c.out.Local, t) {
			c.out.Local = append(c.out.Local, t)
			c.out.LocalOf = append(c.out.LocalOf, p.ID)
		}
		first = false
	}
	return nil
}

// twins counts the PDRs that stand for another of the CP function's.
func (c *Compiler) twins() int {
	n := 0
	for i := range c.pdrs {
		if c.s.pdr(c.pdrs[i].ID) == nil {
			n++
		}
	}
	return n
}

func (c *Compiler) freeID() uint16 {
	for id := uint16(0xffff); ; id-- {
		if c.s.pdr(id) == nil && !slices.ContainsFunc(c.pdrs, func(p api.PDR) bool { return p.ID == id }) {
			return id
		}
	}
}

// RealPDR is the CP function's PDR that a rule of the data plane stands for.
func (s *Session) RealPDR(set *Settings, pfds PFDs, id uint16) uint16 {
	if s.pdr(id) != nil {
		return id
	}
	c := &Compiler{Context: Context{Set: set, PFDs: pfds}, s: s}
	if c.allPDRs() != nil {
		return id
	}
	for i := range c.pdrs {
		if c.pdrs[i].ID == id && i > 0 {
			return c.pdrs[i-1].ID // twins follow each other
		}
	}
	return id
}
