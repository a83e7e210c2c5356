// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
)

// Result of a change: 0, or why not.
type Result = radius.Cause

// Answer ends a change. why has more words than the result, or none.
type Answer = radius.Answer

const (
	OK          Result = 0
	BadValue           = radius.InvalidValue
	NotPossible        = radius.ResourcesUnavailable
	NoSession          = radius.SessionNotFound
	Several            = radius.SeveralSessions
)

// Sessions carries out a RADIUS server's requests (RFC 5176). It is called from goroutines of this package, must not
// wait, and answers once, from anywhere.
type Sessions interface {
	Disconnect(s *Selector, done Answer)
	Change(s *Selector, c *Change, done Answer)
}

// Selector names sessions: every field that is given must match, and one at least is.
type Selector struct {
	Session        string // Acct-Session-Id
	User           string
	PortID         string // NAS-Port-Id
	CallingStation string // MAC address, in any notation
	Port           uint32 // NAS-Port; 0: none
	IPv4           netip.Addr
	IPv6           netip.Prefix // Framed-IPv6-Prefix or -Address
	Delegated      netip.Prefix
	InterfaceID    uint64
	CUI            []byte
	Instance       string // network instance of the addresses; alone it selects no session
}

// Matches: the selector selects a session.
func (s *Selector) Matches(line *access.Line, session, user string, at *access.Addresses, cui []byte) bool {
	return (s.Session == "" || s.Session == session) &&
		(s.User == "" || s.User == user) &&
		(s.PortID == "" || s.PortID == PortID(line)) &&
		(s.CallingStation == "" || hexDigits(s.CallingStation) == hexDigits(StationID(line.MAC))) &&
		(s.Port == 0 || s.Port == nasPort(line)) &&
		(!s.IPv4.IsValid() || s.IPv4 == at.IPv4) &&
		(!s.IPv6.IsValid() || s.IPv6 == at.IPv6) &&
		(!s.Delegated.IsValid() || s.Delegated == at.Delegated) &&
		(s.InterfaceID == 0 || s.InterfaceID == at.InterfaceID) &&
		(len(s.CUI) == 0 || bytes.Equal(s.CUI, cui))
}

// none: no field is given.
func (s *Selector) none() bool {
	return s.OnlyAddresses() && !s.IPv4.IsValid() && !s.IPv6.IsValid() && !s.Delegated.IsValid() &&
		s.InterfaceID == 0
}

// OnlyAddresses: only addresses select the session; they may repeat in each network instance.
func (s *Selector) OnlyAddresses() bool {
	return s.Session == "" && s.User == "" && s.PortID == "" && s.CallingStation == "" && s.Port == 0 &&
		len(s.CUI) == 0
}

const instancePair = "subscriber:instance="

// scope reads the network instance that an AVPair names.
func (s *Selector) scope(a *radius.Attribute) (named bool) {
	name, named := strings.CutPrefix(string(a.Value), instancePair)
	if named {
		s.Instance = name
	}
	return named
}

func hexDigits(mac string) string {
	return strings.Map(func(c rune) rune {
		if c == ':' || c == '-' || c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(mac))
}

// Change is what a CoA-Request wants of a session's plan.
type Change struct{ List []radius.Attribute }

// Apply lays the change over authentication's plan, without the profile, of a subscriber with addresses. After an error
// the plan is invalid; ResultOf returns the answer.
func (c *Change) Apply(p *access.Plan, at *access.Addresses) ([]access.Left, error) {
	return apply(p, c.List, at)
}

// unsupportedError is of an attribute whose every value is refused.
type unsupportedError struct{ why string }

func (e unsupportedError) Error() string { return e.why }

// ResultOf is the answer to an error of Apply.
func ResultOf(err error) Result {
	var u unsupportedError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &u):
		return radius.UnsupportedAttribute
	}
	return BadValue
}

// changes is the server of RFC 5176, and what it is configured with.
type changes struct {
	sessions Sessions
	notify   func(kind, about string, fields ...any)
	server   *radius.Dynamic
	nas      atomic.Pointer[config.NAS]
}

func newChanges(sessions Sessions, notify func(kind, about string, fields ...any)) *changes {
	c := &changes{sessions: sessions, notify: notify}
	c.server = radius.NewDynamic(c.handle, c.refused)
	return c
}

// changing is the configuration of changes, ready for use.
type changing struct {
	config config.CoA
	bound  *radius.Bound
	nas    *config.NAS
}

// prepare reads what a configuration needs, and opens its addresses.
func (c *changes) prepare(r *config.RADIUS) (*changing, error) {
	made, err := withSecrets(r.CoA)
	if err != nil {
		return nil, err
	}
	var listen []netip.AddrPort
	if c.sessions != nil {
		listen = coaAddresses(&r.CoA)
	}
	bound, err := c.server.Bind(listen)
	if err != nil {
		return nil, fmt.Errorf("radius.coa.listen: %w", err)
	}
	return &changing{made, bound, &r.NAS}, nil
}

func (c *changes) use(next *changing) {
	c.nas.Store(next.nas)
	c.server.Use(next.config, next.bound)
}

func coaAddresses(c *config.CoA) (list []netip.AddrPort) {
	for _, l := range c.Listen {
		list = append(list, l.Or(3799))
	}
	return list
}

// withSecrets reads those of files.
func withSecrets(c config.CoA) (config.CoA, error) {
	c.Clients = slices.Clone(c.Clients)
	for i := range c.Clients {
		one := &c.Clients[i]
		secret, err := secretOf(one.Secret, one.SecretFile, false)
		if err != nil {
			return c, fmt.Errorf("radius.coa.clients: %w", err)
		}
		one.Secret = secret
	}
	return c, nil
}

func (c *changes) counters() radius.DynamicCounters { return c.server.Counters() }

// handle is an authentic request.
func (c *changes) handle(p *radius.Packet, answer Answer) {
	s, rest, cause, why := c.selector(p)
	switch {
	case cause != 0:
		answer(cause, why)
	case p.Code == radius.DisconnectRequest:
		if len(rest) > 0 {
			answer(radius.UnsupportedAttribute, rest[0].Type.String()+" names no session")
			return
		}
		c.sessions.Disconnect(s, answer)
	case len(rest) == 0:
		answer(radius.MissingAttribute, "nothing that is to be changed")
	default:
		c.sessions.Change(s, &Change{rest}, answer)
	}
}

// refused logs and publishes a request that was not carried out.
func (c *changes) refused(r *radius.Refused) {
	client, cause, request, user, session := r.Client, "dropped", "", "", ""
	if client == "" {
		client = "unlisted"
	}
	if r.Cause != 0 {
		cause = fmt.Sprint(uint32(r.Cause))
	}
	if p := r.Packet; p != nil {
		request, user = p.Code.String(), string(p.Get(radius.UserName))
		session = string(p.Get(radius.AcctSessionId))
	}
	c.notify("radius.change-refused", client, "from", r.From.String(), "request", request, "user", user,
		"session", session, "cause", cause, "why", r.Why)
}

// beside are attributes of a session that neither identify nor change it: they may accompany those that do.
var beside = map[radius.Type]bool{radius.FramedProtocol: true, radius.FramedIPNetmask: true, radius.ConnectInfo: true}

// selector reads the session that a request names, and checks that it is for us (RFC 5176 §3). rest is the change.
func (c *changes) selector(p *radius.Packet) (s *Selector, rest []radius.Attribute, cause Result, why string) {
	s = &Selector{}
	nas := c.nas.Load()
	for i := range p.Attributes {
		a := &p.Attributes[i]
		known := true
		switch a.Type {
		case radius.AcctTerminateCause, radius.Class:
			known = p.Code == radius.DisconnectRequest // the reason, or a further name
		case radius.ServiceType: // Authorize-Only (RFC 5176 §3.2) and the like
			if v, _ := a.Uint32(); v != serviceFramed {
				return nil, nil, radius.UnsupportedService, fmt.Sprintf("Service-Type %d", v)
			}
		case radius.CiscoAVPair: // to a change, it is one too
			known = s.scope(a) && p.Code == radius.DisconnectRequest
		case radius.NASIdentifier:
			if string(a.Value) != nas.Identifier {
				return nil, nil, radius.NASMismatch, fmt.Sprintf("for NAS %q", clip(string(a.Value)))
			}
		case radius.NASIPAddress, radius.NASIPv6Address:
			if v, err := a.Address(); err != nil || v != nas.Address.Addr {
				return nil, nil, radius.NASMismatch, fmt.Sprintf("for NAS %s", v)
			}
		default:
			r, listed := fields[a.Type]
			if listed && r.use == nil && r.no == "" || beside[a.Type] {
				break
			}
			var err error
			if known, err = s.read(a); err != nil {
				return nil, nil, BadValue, err.Error()
			}
		}
		if !known {
			rest = append(rest, *a)
		}
	}
	if p.Code == radius.CoARequest && !s.OnlyAddresses() {
		s.Instance = "" // another instance refuses a session known otherwise
	}
	if s.none() { // an attribute of no length or zero selects nothing
		return nil, nil, radius.MissingAttribute, "no session is named"
	}
	return s, rest, OK, ""
}

// read takes an attribute that identifies sessions; false: it does not.
func (s *Selector) read(a *radius.Attribute) (known bool, err error) {
	switch a.Type {
	case radius.AcctSessionId:
		s.Session = string(a.Value)
	case radius.UserName:
		s.User = string(a.Value)
	case radius.NASPortId:
		s.PortID = string(a.Value)
	case radius.CallingStationId:
		s.CallingStation = string(a.Value)
	case radius.NASPort:
		s.Port, err = a.Uint32()
	case radius.FramedIPAddress:
		s.IPv4, err = a.Address()
	case radius.FramedIPv6Address:
		var v netip.Addr
		if v, err = a.Address(); err == nil {
			s.IPv6 = netip.PrefixFrom(v, 128)
		}
	case radius.FramedIPv6Prefix:
		s.IPv6, err = a.Prefix()
	case radius.DelegatedIPv6Prefix:
		s.Delegated, err = a.Prefix()
	case radius.FramedInterfaceId:
		if len(a.Value) == 8 {
			s.InterfaceID = binary.BigEndian.Uint64(a.Value)
		}
	case radius.ChargeableUserIdentity:
		s.CUI = a.Value
	default:
		return false, nil
	}
	return true, err
}
