// SPDX-License-Identifier: Apache-2.0

// Package access has the types shared by subscribers' protocols (pppoe, dhcp), authentication (aaa, radius) and the
// owner of signed-in subscribers (subscriber). It also reads access nodes' options. No state, no goroutine.
//
// One goroutine, subscriber's loop, calls front ends and is called by them: no type here has a lock.
package access

import (
	"net/netip"
	"time"
)

// Line is where a subscriber is attached: what its frames have in common.
type Line struct {
	Port       string  `json:",omitzero"` // access port of the configuration
	TPID       uint16  `json:",omitzero"` // of the outer tag: 0x8100 or 0x88a8; 0 without tags
	STag, CTag uint16  `json:",omitzero"` // 0: none
	MAC        [6]byte `json:",omitzero"`
}

// Reason is why the data plane punted a frame.
type Reason uint8

const (
	PPPoEDiscovery     Reason = iota + 1 // EtherType 0x8863
	PPPControl                           // 0x8864: LCP, PAP, CHAP, IPCP, IPv6CP
	DHCP                                 // UDP to port 67
	DHCPv6                               // UDP to port 547
	RouterSolicitation                   // ICMPv6 133
	FirstPacket                          // of an address unknown to the data plane, where the port asks for it
	NeighbourAnswer                      // of a subscriber, by ARP or neighbour discovery, to a question of ours

	PortChanged Reason = 255 // no frame: Line.Port has other addresses than before, or is new
)

// PortAddresses are an access port's own, for which the data plane answers; zero: no such port.
type PortAddresses struct {
	MAC       [6]byte
	LinkLocal netip.Addr // of the router that its subscribers see
}

// Frame is an Ethernet frame without its addresses and tags, up (Line.MAC is its source) or down (its destination; the
// data plane adds the port's own address).
type Frame struct {
	Line      Line
	Reason    Reason // up only
	EtherType uint16 // 0x8864 also of DHCPv6 and router solicitations in PPP: Payload begins with the PPPoE header
	Payload   []byte // behind EtherType, without padding if its length shows it; valid until the call returns
	Session   uint64 // up: SEID of the subscriber whose frame it is, 0: none
}

// Kind is how a subscriber signs in.
type Kind uint8

const (
	PPPoE  Kind = iota + 1
	IPoE4       // DHCPv4
	IPoE6       // DHCPv6, or a router solicitation
	Packet      // its first packet
)

// Agent is the access node's description of the line (TR-101: option 82, PPPoE tag 0x0105, DHCPv6 options 18 and 37).
type Agent struct {
	CircuitID, RemoteID []byte `json:",omitzero"`
	Line                []byte `json:",omitzero"` // what it measured, as options; see Characteristic
}

// Codes of a line's characteristics, as in option 82, in the PPPoE tag (TR-101 §3.9.3) and in RADIUS (RFC 4679).
const (
	firstRate     = 0x81 // actual, minimum, attainable, maximum, low power; up, then down; kbit/s
	LastRate      = 0x8a
	lastDelay     = 0x8e // interleaving; ms
	Encapsulation = 0x90 // of the access loop: three octets
)

// Characteristic takes a characteristic of the line, the first of each code; other codes are skipped. Always true.
func (a *Agent) Characteristic(code byte, value []byte) bool {
	if (code >= firstRate && code <= lastDelay && len(value) == 4 || code == Encapsulation && len(value) == 3) &&
		a.Of(code) == nil {
		a.Line = append(append(a.Line, code, byte(len(value))), value...)
	}
	return true
}

// Of is the value of a characteristic, nil if the access node did not send it.
func (a *Agent) Of(code byte) (found []byte) {
	Options(a.Line, func(c byte, value []byte) bool {
		if c == code {
			found = value
		}
		return c != code
	})
	return found
}

// Options walks options of one octet of code and one of length; values are parts of b. False: one ends beyond b, or fn
// returned false.
func Options(b []byte, fn func(code byte, value []byte) bool) bool {
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+int(b[1]) || !fn(b[0], b[2:2+int(b[1])]) {
			return false
		}
		b = b[2+int(b[1]):]
	}
	return true
}

// Method is how a subscriber authenticates.
type Method uint8

const (
	None Method = iota // the line is the proof
	PAP
	CHAP     // RFC 1994, MD5
	MSCHAPv2 // RFC 2759
)

// Credentials of one sign-in. A front end checks none of them.
type Credentials struct {
	Method     Method `json:",omitzero"`
	User       string `json:",omitzero"` // empty with None: made of the line by configuration
	Password   []byte `json:",omitzero"` // PAP
	Identifier uint8  `json:",omitzero"` // of CHAP
	Challenge  []byte `json:",omitzero"` // 16 octets with MSCHAPv2
	Response   []byte `json:",omitzero"` // CHAP: 16 octets; MSCHAPv2: 49 (RFC 2759 §4)
}

// Request asks to let a subscriber in.
type Request struct {
	Kind  Kind   `json:",omitzero"`
	Line  Line   `json:",omitzero"`
	PPPoE uint16 `json:",omitzero"` // session id; 0 with IPoE
	Agent Agent  `json:",omitzero"`
	Credentials
	HostName string   `json:",omitzero"`
	ClientID []byte   `json:",omitzero"` // DHCPv4 option 61, DHCPv6 DUID
	Service  string   `json:",omitzero"` // PPPoE Service-Name
	Wants    Families `json:",omitzero"`
	// Hint has the addresses that a DHCP client claims, or the source of the first packet (Packet): it gets those
	// that are free in a pool.
	Hint Addresses `json:",omitzero"`
	// Given by an upstream DHCP server (relay, proxy): taken as they are, from no pool; the plan's do not count.
	Given *Addresses `json:",omitzero"`
}

// Families of addresses.
type Families struct {
	V4, V6, Delegated bool `json:",omitzero"`
}

// Verdict is the answer to a request.
type Verdict struct {
	Accept  bool
	Why     string // words for log and `show subscriber` when refused
	Proven  bool   // authenticated; refused for lack of room or addresses, and may try again
	Silent  bool   // no decision (servers away): the subscriber gets no refusal, and may try again
	Message string // Reply-Message
	Success string // MSCHAPv2: "S=..." of the Success packet
	Failure string // MSCHAPv2: "E=... R=..." of the Failure packet
	Plan    Plan
	Left    []Left // out of the plan
}

// Left is an unusable tuning part of authentication's answer, which was left out.
type Left struct {
	What string // attribute, or setting
	Why  string // empty: it is not known
}

// Rate polices one direction: trTCM with a peak, else srTCM. kbit/s and bytes; zero CIR: no limit.
type Rate struct {
	CIR, PIR uint64 `json:",omitzero"`
	CBS, PBS uint32 `json:",omitzero"` // 0: 100 ms of the rate
}

// Plan is a subscriber's service: a profile of the configuration, changed by authentication's answer.
type Plan struct {
	Profile         string         `json:",omitzero"` // of `access.profiles`; empty: the default one
	Up, Down        Rate           `json:",omitzero"`
	Scheduler       string         `json:",omitzero"` // pipe profile of the port's scheduler
	ACLUp, ACLDown  string         `json:",omitzero"` // access lists
	Instance        string         `json:",omitzero"` // network instance: VRF, pools; empty: the profile's
	Path            string         `json:",omitzero"` // core side is GTP-U by this path; empty: IP
	Pool4, Pool6    string         `json:",omitzero"`
	PoolPD          string         `json:",omitzero"` // of delegated prefixes
	IPv4            netip.Addr     `json:",omitzero"`
	Mask            int            `json:",omitzero"` // of IPv4's subnet, for IPoE; 0: the pool's
	IPv6, Delegated netip.Prefix   `json:",omitzero"`
	InterfaceID     uint64         `json:",omitzero"` // RFC 3162; 0: ours to choose
	DNS             []netip.Addr   `json:",omitzero"`
	Routes          []netip.Prefix `json:",omitzero"` // framed routes
	Announced       []netip.Prefix `json:",omitzero"` // IPv6 networks in router advertisements
	SessionTimeout  time.Duration  `json:",omitzero"` // 0: none
	IdleTimeout     time.Duration  `json:",omitzero"`
	Quota           uint64         `json:",omitzero"` // bytes, both directions; 0: none
	Interim         time.Duration  `json:",omitzero"`
	Redirect        string         `json:",omitzero"` // captive: URL for HTTP until a change takes it away
	Portal          []string       `json:",omitzero"` // prefixes and names that a captive one may reach; empty: the profile's
	Class           [][]byte       `json:",omitzero"` // RADIUS Class, given back in accounting
	CUI             []byte         `json:",omitzero"` // Chargeable-User-Identity (RFC 4372)
	Max             uint32         `json:",omitzero"` // sign-ins of one user name at once; 0: the profile's
	MTU             uint16         `json:",omitzero"` // Framed-MTU; 0: the profile's
	MSS             uint16         `json:",omitzero"` // of the profile, as in api.Session
	Without         Setting        `json:",omitzero"` // authentication explicitly set none
	User            string         `json:",omitzero"` // name to account by, where authentication changed it
	Local           bool           `json:",omitzero"` // no RADIUS server was asked
}

// Setting has a bit for each Plan value whose "none" equals "the profile's".
type Setting uint8

const (
	RedirectSetting Setting = 1 << iota
	SessionTimeoutSetting
	IdleTimeoutSetting
	InterimSetting
	QuotaSetting
)

// Say notes whether authentication explicitly sets none.
func (s *Setting) Say(one Setting, none bool) {
	*s &^= one
	if none {
		*s |= one
	}
}

// Addresses are what a subscriber got.
type Addresses struct {
	IPv4        netip.Addr   `json:",omitzero"`
	Mask        int          `json:",omitzero"` // of IPv4's subnet, for IPoE
	Gateway     netip.Addr   `json:",omitzero"` // ours, in that subnet; the PPP peer's address
	IPv6        netip.Prefix `json:",omitzero"`
	Delegated   netip.Prefix `json:",omitzero"`
	InterfaceID uint64       `json:",omitzero"` // of the subscriber's link-local address by PPP
	DNS         []netip.Addr `json:",omitzero"`
}

// Prefixes are the IPv4, IPv6 and delegated ones; invalid: none.
func (a *Addresses) Prefixes() [3]netip.Prefix {
	four := netip.Prefix{}
	if a.IPv4.IsValid() {
		four = netip.PrefixFrom(a.IPv4, a.IPv4.BitLen())
	}
	return [3]netip.Prefix{four, a.IPv6, a.Delegated}
}

// Cause is why a session ended (RFC 2866 §5.10, Acct-Terminate-Cause).
type Cause uint32

const (
	UserRequest        Cause = 1
	LostCarrier        Cause = 2 // keep-alive failed
	LostService        Cause = 3
	IdleTimeout        Cause = 4
	SessionTimeout     Cause = 5
	AdminReset         Cause = 6 // clear subscriber, Disconnect-Request
	AdminReboot        Cause = 7 // planned shutdown
	PortError          Cause = 8
	NASError           Cause = 9
	NASRequest         Cause = 10
	NASReboot          Cause = 11
	ServiceUnavailable Cause = 15
	UserError          Cause = 17
)

// KeepAlive is LCP echo, which the data plane answers and sends (RFC 1661 §5.8).
type KeepAlive struct {
	Magic    uint32        `json:",omitzero"` // ours; the data plane answers with it
	Count    uint8         `json:",omitzero"` // unanswered ones after which Client.Silent is called
	Interval time.Duration `json:",omitzero"` // 0: none are sent
}

// Grant is what a session has now.
type Grant struct {
	Plan      *Plan
	Addresses *Addresses
	Ends      time.Time // Plan.SessionTimeout after the first Up, before that from now; zero: never
}

// Session is an accepted subscriber, as its front end sees it.
type Session interface {
	Grant() Grant
	// Want sets the families for which the session holds addresses: missing ones come from the plan's pools, others
	// go back. done: nil when Grant has all that could be had. SignIn did the same for Request.Wants. Of r, which
	// may be nil, Hint and Given count.
	Want(f Families, r *Request, done func(error))
	// Up has packets of exactly these families pass. done: nil when the data plane has it.
	Up(f Families, mtu uint16, alive KeepAlive, done func(error))
	// Keep stores the front end's state for a restart. It is copied.
	Keep(state []byte)
	// Down ends it; the front end has notified the subscriber, or need not. Client.Ended is not called. UserError:
	// another host on the line uses the IPv4 address (DHCPDECLINE), so the pool withholds it for a while.
	Down(cause Cause)
}

// Client is the front end's side of a session.
type Client interface {
	Ended(cause Cause) // ended from outside: notify the subscriber. Session is dead already.
	Replanned()        // Grant.Plan changed
	Silent()           // keep-alive failed: the front end ends it
}

// Timer is stopped by Stop; stopping twice is harmless.
type Timer interface{ Stop() }

// Host carries out a front end's requests. Every call and callback is on the loop's goroutine.
type Host interface {
	Now() time.Time
	After(d time.Duration, fn func()) Timer
	Send(f *Frame) // copied; dropped and counted when the channel is full
	// SignIn authenticates, and assigns addresses. done is called once, later: with a session, or with the reason.
	// cancel: the subscriber is gone; done is not called any more.
	SignIn(r *Request, c Client, done func(Session, *Verdict)) (cancel func())
	// Failed notes an attempt that ended before SignIn, or behind it before Up (for `show subscriber` and metrics).
	Failed(r *Request, why string)
}

// Bearer carries IPv6 of one subscriber over PPP: pppoe's end, for dhcp's router advertisements and DHCPv6.
type Bearer interface {
	SendIPv6(packet []byte) // copied
	// PassIPv6 has packets of exactly these families pass, beside those that PPP itself lets pass.
	PassIPv6(f Families, done func(error))
	KeepIPv6() // what the other end keeps over a restart has changed
}

// BearerState is what a Bearer begins with.
type BearerState struct {
	Relayed bool     // addresses come from DHCPv6 servers, behind sign-in
	Passing Families // as PassIPv6 was asked before a restart
	Kept    []byte   // the other end's state before a restart; nil: none
}

// FrontEnd is one protocol of subscribers: pppoe, dhcp.
type FrontEnd interface {
	Frame(f *Frame) // punted
	// Restore continues a stored session, from Keep's state; nil: impossible. r is of the sign-in: its kind, line
	// and agent.
	Restore(s Session, r *Request, state []byte) Client
}
