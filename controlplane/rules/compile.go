// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

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

// UEAddress is a UE address in an instance: the receiver of packets to it (or their sender, on the radio side).
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
	Port    string   // with the pipe
	Pipe    Pipe
	v4      netip.Addr
	v6      netip.Prefix
}

// Context is what a session is compiled under.
type Context struct {
	Set   *Settings
	PFDs  PFDs
	Known Known  // existing objects need not be made again; may be nil
	Arena *Arena // for the body, which lives as long as its transaction; nil: memory of its own
	Bare  bool   // what the session occupies alone, without a body
	// Lenient: unavailable filters (of removed PFDs) are left out, so that an accepted session always compiles
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
	c.head = api.Session{SEID: s.SEID, Worker: s.Worker, Encap: api.EncapNone, Inactivity: s.Inactivity,
		Discard:     s.Discards,
		Association: s.Association}
	copy(c.head.DNN[:api.NameSize-1], strings.ToValidUTF8(s.APN[:min(len(s.APN), api.NameSize-1)], ""))
	if s.Line != nil {
		c.head = *s.Line
		c.head.SEID, c.head.Worker, c.head.Inactivity = s.SEID, s.Worker, s.Inactivity
	}
	err := c.ue()
	if err == nil {
		err = each(s.PDR, c.pdr)
	}
	if err == nil {
		err = each(s.FAR, c.far)
	}
	if err != nil {
		return err
	}
	c.allQERs()
	c.allURRs()
	c.shaping()
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
	b := c.Arena.get(api.PartRoom(api.SizeofSession, 1) + api.PartRoom(api.SizeofPDR, len(c.pdrs)) +
		api.PartRoom(api.SizeofFAR, len(c.fars)) +
		api.PartRoom(api.SizeofQER, len(c.qers)) + api.PartRoom(api.SizeofURR, len(c.urrs)) +
		api.PartRoom(api.SizeofSDF, len(c.sdfs)) +
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
	if n := slices.Index(c.names, i); n >= 0 {
		return byte(n), true
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
		if !ok || v4.IsValid() && c.out.v4.IsValid() && v4 != c.out.v4 || v6.IsValid() && c.out.v6.IsValid() &&
			v6 != c.out.v6 {
			return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseNoResources, IEUEIP,
				"a session has one IPv4 address and one IPv6 prefix")
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
			return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseNoResources, 153,
				fmt.Sprintf("more than %d framed routes", api.MaxRoutes))
		}
	}
	c.head.UEIP4, c.head.UEIP6 = api.FromAddr(c.out.v4), api.FromPrefix(c.out.v6)
	return nil
}
