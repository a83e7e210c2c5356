// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"isthmus/api"
)

// Access configures subscribers who sign in. They do when Ports is not empty.
type Access struct {
	At         `yaml:""`
	Ports      []AccessPort    `yaml:"ports" maxlen:"256" doc:"Where subscribers sign in, and how. The first entry that a frame fits counts."`
	Profiles   []AccessProfile `yaml:"profiles" maxlen:"1024" doc:"Services. Authentication names one, and may change all that it says."`
	Lists      []AccessList    `yaml:"access_lists" maxlen:"1024" doc:"Rules on packets, by name."`
	Profile    Name            `yaml:"default_profile" doc:"Profile of who is let in without a word about it; absent: the first."`
	PPPoE      AccessPPPoE     `yaml:"pppoe" doc:"PPPoE server (RFC 2516)."`
	IPoE       AccessIPoE      `yaml:"ipoe" doc:"Subscribers without PPP."`
	DHCP       AccessDHCP      `yaml:"dhcp" doc:"DHCP of subscribers."`
	RA         AccessRA        `yaml:"ra" doc:"Router advertisements to subscribers."`
	Duplicates string          `yaml:"duplicates" default:"replace" enum:"replace|refuse" doc:"What happens when a user or a line has as many sessions as it may: the oldest ends, or the new one is refused."`
	Limits     AccessLimits    `yaml:"limits" doc:"How many may sign in."`
}

// Enabled: sign-in is configured.
func (a *Access) Enabled() bool { return len(a.Ports) > 0 }

// AccessPort is where subscribers sign in.
type AccessPort struct {
	At      `yaml:""`
	Port    Name     `yaml:"port" req:"true" doc:"Access port."`
	STags   TagRange `yaml:"s_tags" doc:"Outer VLAN tags, one or a range; absent: all, and frames without tags."`
	CTags   TagRange `yaml:"c_tags" doc:"Inner VLAN tags; absent: all, and none."`
	PPPoE   bool     `yaml:"pppoe" doc:"PPPoE is served."`
	IPoE    bool     `yaml:"ipoe" doc:"DHCP and router solicitations are served."`
	VLANs   string   `yaml:"vlans" default:"n:1" enum:"1:1|n:1" doc:"1:1: a VLAN is one subscriber's; n:1: of many, which differ by MAC address."`
	DHCP    string   `yaml:"dhcp" default:"server" enum:"server|relay|proxy" doc:"server: from our pools; relay, proxy: from the servers and servers6 of access.dhcp, a family without them from our pools; a proxy hides DHCPv4's."`
	Trusted bool     `yaml:"trusted" doc:"The access node's circuit id (option 82, PPPoE tag 0x0105) is believed; else the tag is ignored, option 82 and Relay-Forward are dropped."`
	Circuit string   `yaml:"circuit_change" default:"refuse" enum:"refuse|sign-in" doc:"A message by another trusted circuit than its session's is refused until that session ends, or ends it and signs in again."`
	Profile Name     `yaml:"profile" doc:"Profile in place of default_profile."`
}

// Moves: a home that moves to another circuit signs in again.
func (p *AccessPort) Moves() bool { return p.Circuit == "sign-in" }

// AccessList is rules on packets of one subscriber, in one direction. The session's filters (api.MaxSDF) have room for
// two of them with their defaults.
type AccessList struct {
	At      `yaml:""`
	Name    Name   `yaml:"name" req:"true" doc:"The list's name."`
	Default string `yaml:"default" default:"permit" enum:"permit|deny" doc:"What happens to the others."`
	Rules   []Rule `yaml:"rules" maxlen:"120" doc:"The first rule that matches decides. Denied packets are not billed."`
}

// AccessProfile is a service.
type AccessProfile struct {
	At              `yaml:""`
	Name            Name          `yaml:"name" req:"true" doc:"The profile's name."`
	Instance        Name          `yaml:"instance" req:"true" doc:"Network instance (lookup: destination) that the subscriber's packets leave by and are looked up in."`
	PoolIPv4        Name          `yaml:"pool_ipv4" doc:"Pool of its IPv4 address; absent: none."`
	PoolIPv6        Name          `yaml:"pool_ipv6" doc:"Pool of its IPv6 prefix; absent: none."`
	PoolPD          Name          `yaml:"pool_delegated" doc:"Pool of its delegated IPv6 prefix; absent: none."`
	DNS             []Address     `yaml:"dns" maxlen:"6" doc:"Name servers, in place of the pool's."`
	FramedRoutes    []Prefix      `yaml:"framed_routes" maxlen:"15" doc:"Networks behind the subscriber; what authentication says takes their place."`
	UplinkPolicer   Name          `yaml:"uplink_policer" doc:"Policer profile."`
	DownlinkPolicer Name          `yaml:"downlink_policer" doc:"Policer profile."`
	Scheduler       Name          `yaml:"scheduler" doc:"Pipe profile of the port's scheduler; absent: the scheduler's first."`
	UplinkList      Name          `yaml:"uplink_list" doc:"Access list of packets from it."`
	DownlinkList    Name          `yaml:"downlink_list" doc:"Access list of packets to it."`
	Mirror          Name          `yaml:"mirror" doc:"Mirror of its packets."`
	Counter         Name          `yaml:"counter" doc:"Counter of its packets."`
	MRU             uint16        `yaml:"mru" max:"9216" doc:"Largest IP packet to the subscriber; 0: what its protocol says."`
	MSS             MSS           `yaml:"mss" default:"path" doc:"TCP's MSS in SYNs: path, none, 536 and up."`
	SessionTimeout  time.Duration `yaml:"session_timeout" max:"31536000" doc:"Seconds after which the session ends; 0: never."`
	IdleTimeout     time.Duration `yaml:"idle_timeout" max:"2592000" doc:"Seconds without a packet after which the session ends; 0: never."`
	Quota           uint64        `yaml:"quota" doc:"Bytes, both directions; 0: no limit."`
	Exhausted       string        `yaml:"exhausted" default:"end" enum:"end|redirect" doc:"When the quota is used up: the session ends, or goes on to redirect."`
	Redirect        string        `yaml:"redirect" max:"127" doc:"URL that HTTP requests are answered with, with exhausted: redirect; and from the start with captive."`
	Portal          []Reachable   `yaml:"portal" maxlen:"16" with:"redirect" doc:"Prefixes and names that pass meanwhile."`
	Captive         bool          `yaml:"captive" with:"redirect" doc:"Redirect from the start, until authentication changes the plan."`
	Interim         time.Duration `yaml:"interim" default:"600" max:"86400" doc:"Seconds between accounting records of a session; 0: none but its first and last."`
	Max             uint32        `yaml:"max_sessions" doc:"Sessions of one user name at once; 0: no limit."`
}

// AccessPPPoE is the PPPoE server.
type AccessPPPoE struct {
	At       `yaml:""`
	ACName   string   `yaml:"ac_name" default:"isthmus" max:"64" doc:"AC-Name."`
	Services []string `yaml:"service_names" maxlen:"32" doc:"Service-Names that are offered; absent: any is served."`
	Auth     []string `yaml:"auth" maxlen:"4" enum:"pap|chap|mschapv2|none" doc:"Authentication protocols, the first one is proposed first. Absent: chap, then pap."`
	MRU      uint16   `yaml:"mru" default:"1492" min:"1280" max:"9206" doc:"MRU that we propose; above 1492 where the client says PPP-Max-Payload (RFC 4638)."`
	PerMAC   uint8    `yaml:"per_mac" default:"1" min:"1" doc:"Sessions of one MAC address of a line; one more ends the oldest: its home dialled again."`

	OffersPerLine uint32 `yaml:"offers_per_line" default:"5000" max:"1000000" doc:"PADO a second of a pair of tags."`
	OffersPerPort uint32 `yaml:"offers_per_port" default:"50000" max:"1000000" doc:"The same of a port."`

	Limits PPPoELimits `yaml:"limits" doc:"Sessions."`

	KeepAlive struct {
		At       `yaml:""`
		Interval time.Duration `yaml:"interval" default:"30" max:"3600" doc:"Seconds between LCP echo requests; 0: none are sent, and profiles have a time-out."`
		Count    uint8         `yaml:"count" default:"3" min:"1" max:"20" doc:"Unanswered ones after which the session ends."`
	} `yaml:"keep_alive" doc:"LCP echo, by the data plane."`
}

// PPPoELimits bound sessions. 0: no limit.
type PPPoELimits struct {
	At       `yaml:""`
	Sessions uint32 `yaml:"sessions" default:"131072" min:"1" max:"1048576" doc:"All."`
	PerPort  uint32 `yaml:"per_port" max:"1048576" doc:"Of a port; 0: no limit."`
	PerLine  uint32 `yaml:"per_line" max:"1048576" doc:"Of a pair of tags; 0: no limit."`
	HalfOpen uint32 `yaml:"half_open" default:"16384" min:"1" max:"1048576" doc:"Without address yet, all."`
	HalfLine uint32 `yaml:"half_open_per_line" default:"4096" min:"1" max:"1048576" doc:"Those of a pair of tags."`
}

// AccessIPoE is about who is there.
type AccessIPoE struct {
	At        `yaml:""`
	KeepAlive struct {
		At       `yaml:""`
		Interval time.Duration `yaml:"interval" default:"120" min:"1" max:"3600" doc:"Seconds between questions."`
		Count    uint8         `yaml:"count" default:"3" min:"1" max:"20" doc:"Unanswered ones that end the session."`
	} `yaml:"keep_alive" doc:"ARP, neighbour solicitations: of homes without leases (SLAAC, first packet)."`
}

// AccessLimits bounds sign-ins.
type AccessLimits struct {
	At      `yaml:""`
	Pending uint32 `yaml:"pending" default:"1024" min:"1" max:"65536" doc:"Sign-ins that are being authenticated at once; others wait 5 s at most."`
	Rate    uint32 `yaml:"rate" default:"10000" max:"1000000" doc:"Sign-ins per second; 0: no limit."`
	PerLine uint32 `yaml:"per_line" default:"4" min:"1" max:"65536" doc:"Sessions of one line: port, tags and MAC address."`
}

// TagRange is a VLAN tag or a range: "100", "100-199".
type TagRange struct {
	First, Last uint16
	set         bool
}

func (r *TagRange) UnmarshalText(b []byte) error {
	low, high, ranged := strings.Cut(string(b), "-")
	if !ranged {
		high = low
	}
	first, err1 := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
	last, err2 := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
	if err1 != nil || err2 != nil || first == 0 || first > last || last > 4094 {
		return fmt.Errorf("%q is no VLAN tag from 1 to 4094, and no range FIRST-LAST of them", clip(string(b)))
	}
	*r = TagRange{uint16(first), uint16(last), true}
	return nil
}

func (r TagRange) schema() map[string]any {
	s := textLike(`^[0-9]{1,4}( *- *[0-9]{1,4})?$`)
	return map[string]any{"anyOf": []any{s, map[string]any{"type": "integer", "minimum": 1, "maximum": 4094}}}
}

// Has: a tag is in the range; 0 is no tag.
func (r TagRange) Has(tag uint16) bool { return !r.set || r.First <= tag && tag <= r.Last }

// relays checks the upstream servers of a port.
func (p *AccessPort) relays(k *checker) {
	four, six := len(k.Access.DHCP.Servers) > 0, len(k.Access.DHCP.Servers6) > 0
	switch {
	case p.DHCP == "server":
	case !four && (p.DHCP == "proxy" || !six):
		k.fail(p.At, "dhcp", "%s without servers in access.dhcp", p.DHCP)
	}
}

// Checks what a port's DHCP assigns to homes: the data plane answers for addresses of its interfaces.
func (p *AccessPort) told(k *checker, port *Port, profiles map[Name]*AccessProfile) {
	a := &k.Access
	if uint32(a.DHCP.MTU) > port.MTU {
		k.fail(a.DHCP.At, "mtu", "%d is more than the MTU of port %q, %d", a.DHCP.MTU, port.Name, port.MTU)
	}
	name := cmp.Or(p.Profile, a.Profile)
	if name == "" && len(a.Profiles) > 0 {
		name = a.Profiles[0].Name
	}
	profile := profiles[name]
	if profile == nil || p.DHCP != "server" && len(a.DHCP.Servers) > 0 {
		return
	}
	pool := k.leases[profile.PoolIPv4]
	if pool == nil || !pool.Gateway.IsValid() {
		return
	}
	for i := range k.Interfaces {
		f := &k.Interfaces[i]
		if f.Port == p.Port && slices.ContainsFunc(f.Addresses, func(one Prefix) bool {
			return one.Addr() == pool.Gateway.Addr || f.Proxy && one.Contains(pool.Gateway.Addr)
		}) {
			return
		}
	}
	k.fail(pool.At, "gateway", "no interface of port %q has %s, the gateway of pool %q: nobody would be answered",
		p.Port, pool.Gateway, pool.Name)
}

func (a *Access) check(k *checker) {
	profiles := named(k, a.Profiles, "name", func(p *AccessProfile) (Name, At) { return p.Name, p.At })
	refer(k, a.At, "default_profile", "profile", a.Profile, profiles)
	if a.Enabled() && len(a.Profiles) == 0 {
		k.fail(a.At, "profiles", "ports are given and no profile")
	}
	for i := range a.Ports {
		p := &a.Ports[i]
		port := refer(k, p.At, "port", "port", p.Port, k.ports)
		if port != nil && port.Role != "access" {
			k.fail(p.At, "port", "%q is no access port", p.Port)
		}
		refer(k, p.At, "profile", "profile", p.Profile, profiles)
		if !p.PPPoE && !p.IPoE {
			k.fail(p.At, "", "neither pppoe nor ipoe is served")
		}
		if p.Has("circuit_change") && !p.Trusted {
			k.fail(p.At, "circuit_change", "given without trusted: no circuit id is believed")
		}
		p.relays(k)
		if port != nil && p.IPoE {
			p.told(k, port, profiles)
		}
		if p.STags.First == 0 && p.CTags.First != 0 {
			k.fail(p.At, "c_tags", "given without s_tags")
		}
	}
	for _, one := range []struct {
		at  At
		key string
		n   uint32
	}{
		{a.PPPoE.Limits.At, "sessions", a.PPPoE.Limits.Sessions},
		{a.DHCP.Limits.At, "subscribers", a.DHCP.Limits.Subscribers},
	} {
		if most := k.Engine.Limits.Sessions; one.at.Has(one.key) && one.n > most {
			k.fail(one.at, one.key, "%d is more than engine.limits.sessions (%d)", one.n, most)
		}
	}
	a.DHCP.check(k, &a.RA)
	lists := named(k, a.Lists, "name", func(l *AccessList) (Name, At) { return l.Name, l.At })
	for i := range a.Lists {
		each(k, a.Lists[i].Rules, (*Rule).check)
	}
	for i := range a.Profiles {
		p := &a.Profiles[i]
		p.check(k)
		refer(k, p.At, "uplink_list", "access list", p.UplinkList, lists)
		refer(k, p.At, "downlink_list", "access list", p.DownlinkList, lists)
		if a.Enabled() && !p.addressed(k) {
			k.fail(p.At, "", "profile %q names no pool, and nothing else gives addresses: add pool_ipv4, pool_ipv6 "+
				"or pool_delegated", p.Name)
		}
		if echo := &a.PPPoE.KeepAlive; echo.Interval == 0 && p.SessionTimeout == 0 && p.IdleTimeout == 0 &&
			slices.ContainsFunc(a.Ports, func(port AccessPort) bool { return port.PPPoE }) {
			k.fail(echo.At, "interval", "0, and profile %q has neither session_timeout nor idle_timeout: "+
				"a home that is cut off would stay on line", p.Name)
		}
	}
	if slices.Contains(a.PPPoE.Auth, "none") && len(a.PPPoE.Auth) > 1 {
		k.fail(a.PPPoE.At, "auth", "none beside others: who is not asked cannot be asked")
	}
	for i := range k.AAA.Users {
		if len(a.Profiles) == 0 {
			break // no sign-in there
		}
		u := &k.AAA.Users[i]
		refer(k, u.At, "profile", "profile", u.Profile, profiles)
	}
}

// pool checks a reference: addresses are given back to the profile's instance, so the pool is of that.
func (p *AccessProfile) pool(k *checker, key string, name Name, shortest, longest uint8) {
	switch pool := refer(k, p.At, key, "pool", name, k.leases); {
	case pool == nil:
	case pool.Instance != p.Instance:
		k.fail(p.At, key, "%q is of network instance %q, not of %q", name, pool.Instance, p.Instance)
	case pool.Prefix.Addr().Is4() != (longest == 32), pool.Length < shortest, pool.Length > longest:
		k.fail(p.At, key, "%q gives out /%d of %s", name, pool.Length, pool.Prefix)
	}
}

// addressed: its subscribers can get an address. RADIUS, DHCP servers behind us and a file of users may give one.
func (p *AccessProfile) addressed(k *checker) bool {
	upstream := len(k.Access.DHCP.Servers)+len(k.Access.DHCP.Servers6) > 0
	relayed := func(port AccessPort) bool { return upstream && port.IPoE && port.DHCP != "server" }
	given := func(u User) bool {
		return (u.Profile == "" || u.Profile == p.Name) &&
			(u.IPv4.IsValid() || u.IPv6.IsValid() || u.Delegated.IsValid())
	}
	return p.PoolIPv4 != "" || p.PoolIPv6 != "" || p.PoolPD != "" || slices.Contains(k.AAA.Methods, "radius") ||
		slices.Contains(k.AAA.Methods, "local") && (k.AAA.UsersFile != "" || slices.ContainsFunc(k.AAA.Users, given)) ||
		slices.ContainsFunc(k.Access.Ports, relayed)
}

func (p *AccessProfile) check(k *checker) {
	in := refer(k, p.At, "instance", "instance", p.Instance, k.instances)
	if in != nil && in.Lookup != "destination" {
		k.fail(p.At, "instance", "%q has lookup %s: what comes back needs destination", p.Instance, in.Lookup)
	}
	p.pool(k, "pool_ipv4", p.PoolIPv4, 32, 32)
	p.pool(k, "pool_ipv6", p.PoolIPv6, 64, 64)
	p.pool(k, "pool_delegated", p.PoolPD, 48, 64)
	refer(k, p.At, "uplink_policer", "policer", p.UplinkPolicer, k.policers)
	refer(k, p.At, "downlink_policer", "policer", p.DownlinkPolicer, k.policers)
	has := func(a AccessPort) bool { return k.schedulers[a.Port].has(p.Scheduler) }
	if p.Scheduler != "" && !slices.ContainsFunc(k.Access.Ports, has) {
		k.fail(p.At, "scheduler", "the scheduler of no port in access.ports has a profile %q", p.Scheduler)
	}
	refer(k, p.At, "mirror", "mirror", p.Mirror, k.mirrors)
	refer(k, p.At, "counter", "counter", p.Counter, k.counters)
	if p.Exhausted == "redirect" && p.Redirect == "" {
		k.fail(p.At, "exhausted", "redirect without the URL of redirect")
	}
	if p.Redirect != "" {
		if err := CheckRedirect(p.Redirect); err != nil {
			k.fail(p.At, "redirect", "%v", err)
		}
	}
	if p.Redirect != "" && p.Exhausted != "redirect" && !p.Captive {
		k.fail(p.At, "redirect", "without captive, and without exhausted: redirect")
	}
	if p.Interim != 0 && p.Interim < 10*time.Second {
		k.fail(p.At, "interim", "%v: at least 10 s, or 0", p.Interim)
	}
	k.framedRoutes(p.At, p.FramedRoutes)
	if p.MRU != 0 && p.MRU < api.MRUMin {
		k.fail(p.At, "mru", "%d is less than %d", p.MRU, api.MRUMin)
	}
}

// CheckRedirect is of a URL that HTTP requests are answered with.
func CheckRedirect(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is no URL of http or https", clip(text))
	}
	return api.PutURL(make([]byte, api.Redirect), text)
}

// IsBehind: a prefix can be a network behind a subscriber.
func IsBehind(r netip.Prefix) bool {
	return r.Bits() > 0 && r == r.Masked() && !r.Addr().IsMulticast() && !r.Addr().IsLinkLocalUnicast() &&
		!r.Addr().IsLoopback()
}

func (k *checker) framedRoutes(at At, list []Prefix) {
	for _, r := range list {
		if !IsBehind(r.Prefix) {
			k.fail(at, "framed_routes", "%s is no network behind a subscriber", r)
		}
	}
}
