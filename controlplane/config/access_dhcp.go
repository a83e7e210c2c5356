// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"time"
)

// AccessDHCP configures DHCPv4 and DHCPv6 of subscribers who sign in.
type AccessDHCP struct {
	At `yaml:""`

	Lease     time.Duration `yaml:"lease" default:"3600" min:"120" max:"31536000" doc:"Seconds of an IPv4 lease."`
	Preferred time.Duration `yaml:"preferred" default:"3600" min:"120" max:"31536000" doc:"Seconds of IPv6, as preferred."`
	Valid     time.Duration `yaml:"valid" default:"7200" min:"120" max:"31536000" doc:"Seconds of IPv6, as valid."`

	RapidCommit   bool `yaml:"rapid_commit" default:"true" doc:"Two messages instead of four, if asked for."`
	Authoritative bool `yaml:"authoritative" default:"true" doc:"Foreign addresses are denied (NAK)."`

	Domain string      `yaml:"domain" max:"200" doc:"Domain name that clients get."`
	MTU    uint16      `yaml:"mtu" max:"9216" doc:"MTU, by DHCP and router advertisements; 0: none."`
	Routes []DHCPRoute `yaml:"routes" maxlen:"8" doc:"Routes beside the default one (option 121)."`
	DUID   string      `yaml:"duid" max:"260" doc:"Our DUID, hexadecimal; empty: of the machine's id, so another machine has another."`

	Address Address     `yaml:"address" doc:"Ours to upstream servers, and where a pool has no gateway."`
	Servers []Collector `yaml:"servers" maxlen:"4" with:"address" doc:"Upstream DHCPv4 servers (relay, proxy)."`

	Address6 Address     `yaml:"address6" doc:"Ours to upstream DHCPv6 servers: link-address of what we relay."`
	Servers6 []Collector `yaml:"servers6" maxlen:"4" with:"address6" doc:"Upstream DHCPv6 servers (relay, proxy)."`

	Limits DHCPLimits `yaml:"limits" doc:"What one line can make us hold."`
}

// DHCPRoute is a static route for clients.
type DHCPRoute struct {
	At     `yaml:""`
	Prefix Prefix  `yaml:"prefix" req:"true" doc:"Destination."`
	Via    Address `yaml:"via" doc:"Next hop; absent: the gateway."`
}

// DHCPLimits bound lines.
type DHCPLimits struct {
	At          `yaml:""`
	Subscribers uint32 `yaml:"subscribers" default:"65536" min:"1" max:"1048576" doc:"Lines, all."`
	PerVLAN     uint32 `yaml:"per_vlan" default:"4096" min:"1" max:"1048576" doc:"MAC addresses of a VLAN."`
	PerCircuit  uint32 `yaml:"per_circuit" default:"16" min:"1" max:"65536" doc:"Those of a trusted circuit id."`
	Waiting     uint32 `yaml:"waiting" default:"8192" min:"1" max:"1048576" doc:"Sign-ins under way."`
	Declines    uint32 `yaml:"declines" default:"3" min:"1" max:"100" doc:"Declined addresses before the penalty."`

	Retry   time.Duration `yaml:"retry" default:"10" max:"3600" doc:"Seconds from a refusal to the next sign-in."`
	Penalty time.Duration `yaml:"penalty" default:"300" max:"86400" doc:"Seconds without an address."`
	Offer   time.Duration `yaml:"offer" default:"60" min:"5" max:"3600" doc:"Seconds that an offer is kept."`
}

// AccessRA configures router advertisements to subscribers who sign in.
type AccessRA struct {
	At       `yaml:""`
	Interval time.Duration `yaml:"interval" default:"600" max:"1800" doc:"Seconds between them; 0: if solicited."`
	Lifetime time.Duration `yaml:"lifetime" default:"1800" max:"9000" doc:"Seconds for which we are the router."`
	Managed  bool          `yaml:"managed" doc:"M: addresses by DHCPv6."`
	Other    bool          `yaml:"other" default:"true" doc:"O: name servers by DHCPv6, too."`
	SLAAC    bool          `yaml:"slaac" default:"true" doc:"A: addresses out of the subscriber's /64."`

	Valid     time.Duration `yaml:"valid" default:"7200" min:"120" max:"31536000" doc:"Seconds of the prefix, valid."`
	Preferred time.Duration `yaml:"preferred" default:"3600" min:"60" max:"31536000" doc:"The same, preferred."`
}

// upstream checks DHCP servers of a family.
func (d *AccessDHCP) upstream(k *checker, key, family string, all []Collector, ours Address,
	fits func(netip.Addr) bool) {
	for i, s := range all {
		if !fits(s.Addr()) || s.Addr() == ours.Addr {
			k.fail(d.At, key, "%s is no %s address of another host", s.Addr(), family)
		}
		if slices.Contains(all[:i], s) {
			k.fail(d.At, key, "%s given twice", s.Addr())
		}
	}
}

// check is of router advertisements, too.
func (d *AccessDHCP) check(k *checker, r *AccessRA) {
	if d.Preferred > d.Valid {
		k.fail(d.At, "preferred", "%.0f is more than valid, %.0f", d.Preferred.Seconds(), d.Valid.Seconds())
	}
	if r.Preferred > r.Valid {
		k.fail(r.At, "preferred", "%.0f is more than valid, %.0f", r.Preferred.Seconds(), r.Valid.Seconds())
	}
	if r.Lifetime != 0 && r.Lifetime < r.Interval {
		k.fail(r.At, "lifetime", "%.0f is less than interval, %.0f: the router would come and go",
			r.Lifetime.Seconds(), r.Interval.Seconds())
	}
	if d.MTU != 0 && d.MTU < 1280 {
		k.fail(d.At, "mtu", "%d is less than 1280, which IPv6 needs", d.MTU)
	}
	if d.Address.IsValid() && !d.Address.Is4() {
		k.fail(d.At, "address", "%s is no IPv4 address", d.Address)
	}
	if a := d.Address6; a.IsValid() && (!a.Is6() || a.IsLinkLocalUnicast()) {
		k.fail(d.At, "address6", "%s is no IPv6 address that servers can answer", a)
	}
	d.upstream(k, "servers", "IPv4", d.Servers, d.Address, func(a netip.Addr) bool { return a.Is4() })
	d.upstream(k, "servers6", "IPv6", d.Servers6, d.Address6,
		func(a netip.Addr) bool { return a.Is6() && !a.IsLinkLocalUnicast() })
	if b, err := hex.DecodeString(d.DUID); d.DUID != "" && (err != nil || len(b) < 3 || len(b) > 130) {
		k.fail(d.At, "duid", "%q is not 3 to 130 bytes in hexadecimal digits", clip(d.DUID))
	}
	for i := range d.Routes {
		one := &d.Routes[i]
		if !one.Prefix.Addr().Is4() || one.Prefix.hostBits() || one.Via.IsValid() && !one.Via.Is4() {
			k.fail(one.At, "prefix", "IPv4 networks and next hops alone")
		}
	}
}
