// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// AddressPool has addresses or prefixes for subscribers who sign in.
type AddressPool struct {
	At       `yaml:""`
	Name     Name    `yaml:"name" req:"true" doc:"The pool's name."`
	Instance Name    `yaml:"instance" doc:"Network instance of the addresses; absent: none."`
	Prefix   Prefix  `yaml:"prefix" req:"true" doc:"Network; with a gateway the subscribers' subnet."`
	Gateway  Address `yaml:"gateway" doc:"Our IPv4 address in it, which DHCP clients get as router."`
	Length   uint8   `yaml:"length" max:"64" doc:"Of what is given out; 0: 32 (IPv4), 64. Delegated: from 48."`

	Ranges   []AddressRange `yaml:"ranges" maxlen:"64" doc:"What is given out; absent: all of prefix."`
	Excluded []AddressRange `yaml:"excluded" maxlen:"256" doc:"Only if authentication names it."`
	Hold     time.Duration  `yaml:"hold" default:"60" max:"604800" doc:"Seconds until another subscriber gets it."`
	DNS      []Address      `yaml:"dns" maxlen:"6" doc:"Name servers."`

	Reservations []Reservation `yaml:"reservations" maxlen:"65536" doc:"What is given to one subscriber."`
}

// Reservation is known by one of user, mac and circuit.
type Reservation struct {
	At      `yaml:""`
	User    string  `yaml:"user" max:"253" private:"true" doc:"User name."`
	MAC     MAC     `yaml:"mac" doc:"MAC address."`
	Circuit string  `yaml:"circuit" max:"253" private:"true" doc:"Circuit id, where the port is trusted to say it."`
	Address Address `yaml:"address" req:"true" doc:"The address, or the first of the prefix."`
}

// AddressRange is an address, or "FIRST-LAST".
type AddressRange struct{ First, Last netip.Addr }

func (r *AddressRange) UnmarshalText(b []byte) error {
	low, high, ranged := strings.Cut(string(b), "-")
	if !ranged {
		high = low
	}
	var first, last Address
	if first.UnmarshalText([]byte(strings.TrimSpace(low))) != nil ||
		last.UnmarshalText([]byte(strings.TrimSpace(high))) != nil ||
		first.Is4() != last.Is4() || last.Less(first.Addr) {
		return fmt.Errorf("%q is no address, and no range FIRST-LAST of them", clip(string(b)))
	}
	*r = AddressRange{first.Addr, last.Addr}
	return nil
}

func (r AddressRange) schema() map[string]any {
	return textLike(`^[0-9A-Fa-f:.]+( *- *[0-9A-Fa-f:.]+)?$`)
}

// Has: an address is in the range.
func (r AddressRange) Has(a netip.Addr) bool { return r.overlaps(AddressRange{a, a}) }

func (r AddressRange) overlaps(o AddressRange) bool {
	return !o.Last.Less(r.First) && !r.Last.Less(o.First)
}

// check fills in the length, too.
func (p *AddressPool) check(k *checker) {
	in := refer(k, p.At, "instance", "instance", p.Instance, k.instances)
	v4 := p.Prefix.Addr().Is4()
	if p.Length == 0 {
		p.Length = 64
		if v4 {
			p.Length = 32
		}
	}
	switch {
	case !k.network(p.At, "prefix", p.Prefix):
	case v4 && p.Length != 32:
		k.fail(p.At, "length", "%d: an IPv4 pool gives out single addresses", p.Length)
	case v4 && p.Prefix.Bits() < 8, p.Prefix.Bits() == 0:
		k.fail(p.At, "prefix", "%s is too large", p.Prefix)
	case !v4 && (p.Length < 48 || int(p.Length) < p.Prefix.Bits()):
		k.fail(p.At, "length", "no /%d can be given out of %s; at least 48", p.Length, p.Prefix)
	}
	if a := p.Gateway; a.IsValid() && (!v4 || !p.Prefix.Contains(a.Addr)) {
		k.fail(p.At, "gateway", "%s is no IPv4 address of %s", a, p.Prefix)
	}
	p.ranges(k)
	p.reservations(k)
	for i := range k.Pools {
		o := &k.Pools[i]
		if o == p {
			break
		}
		if o.Instance == p.Instance && o.Prefix.Overlaps(p.Prefix.Prefix) {
			k.fail(p.At, "prefix", "%s overlaps %s of pool %q, line %d", p.Prefix, o.Prefix, o.Name,
				o.Line("prefix"))
		}
	}
	p.besideUEs(k)
	for own, line := range k.addresses {
		ours := in == nil && own.vrf == "" || in != nil && own.vrf == k.vrfOf(in)
		if ours && p.Prefix.Contains(own.addr) && own.addr != p.Gateway.Addr && !p.excludes(own.addr) {
			k.fail(p.At, "prefix", "%s, an interface's, line %d, is neither gateway nor excluded",
				own.addr, line)
		}
	}
}

// besideUEs refuses a pool that shares addresses with UEs of the same VRF: both would be given to two.
func (p *AddressPool) besideUEs(k *checker) {
	vrf := Name("")
	if in := k.instances[p.Instance]; in != nil {
		vrf = k.vrfOf(in)
	}
	for i := range k.Instances {
		in := &k.Instances[i]
		if k.vrfOf(in) != vrf {
			continue
		}
		for _, ues := range in.Pools {
			if p.Prefix.Overlaps(ues.Prefix) {
				k.fail(p.At, "prefix", "%s overlaps %s, UE addresses of network instance %q, line %d",
					p.Prefix, ues, in.Name, in.Line("pools"))
			}
		}
	}
}

func (p *AddressPool) excludes(a netip.Addr) bool {
	return slices.ContainsFunc(p.Excluded, func(r AddressRange) bool { return r.Has(a) })
}

func (p *AddressPool) ranges(k *checker) {
	check := func(key string, list []AddressRange) {
		for i, r := range list {
			if !p.Prefix.Contains(r.First) || !p.Prefix.Contains(r.Last) {
				k.fail(p.At, key, "%s-%s is not in %s", r.First, r.Last, p.Prefix)
			}
			for _, o := range list[:i] {
				if r.overlaps(o) {
					k.fail(p.At, key, "%s-%s overlaps %s-%s", r.First, r.Last, o.First, o.Last)
				}
			}
		}
	}
	check("ranges", p.Ranges)
	check("excluded", p.Excluded)
}

func (p *AddressPool) reservations(k *checker) {
	seen, owners := map[netip.Addr]Line{}, map[string]Line{}
	for i := range p.Reservations {
		r := &p.Reservations[i]
		owner := "user " + r.User + "\x00circuit " + r.Circuit + "\x00mac " + r.MAC.String()
		given := 0
		for _, one := range []bool{r.User != "", r.Circuit != "", r.MAC != (MAC{})} {
			if one {
				given++
			}
		}
		switch {
		case given != 1:
			k.fail(r.At, "", "give one of user, mac and circuit")
		case !p.Prefix.Contains(r.Address.Addr):
			k.fail(r.At, "address", "%s is not in %s", r.Address, p.Prefix)
		case r.Address == p.Gateway:
			k.fail(r.At, "address", "%s is the gateway", r.Address)
		}
		once(k, r.At, "address", seen, netip.PrefixFrom(r.Address.Addr, int(p.Length)).Masked().Addr(),
			"reserved in line %d as well")
		once(k, r.At, "", owners, owner, "the same subscriber has one in line %d")
	}
}

// givenByPools refuses subscribers of the file whose addresses a pool of the same VRF may give to others.
func givenByPools(k *checker) {
	for i := range k.Pools {
		p := &k.Pools[i]
		if in := k.instances[p.Instance]; in != nil && k.vrfOf(in) != "" {
			continue
		}
		for j := range k.Subscribers {
			h := &k.Subscribers[j]
			switch {
			case p.Prefix.Contains(h.IPv4) && !p.excludes(h.IPv4):
				k.fail(p.At, "prefix", "%s holds %s of subscriber %q, line %d: exclude it", p.Prefix, h.IPv4, h.Name,
					h.From.Line("ipv4"))
			case h.IPv6.IsValid() && p.Prefix.Overlaps(h.IPv6) && !p.excludes(h.IPv6.Addr()):
				k.fail(p.At, "prefix", "%s overlaps %s of subscriber %q, line %d: exclude it", p.Prefix, h.IPv6,
					h.Name, h.From.Line("ipv6"))
			default:
				continue
			}
			break // of a range of thousands, the first
		}
	}
}
