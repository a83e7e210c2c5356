// SPDX-License-Identifier: Apache-2.0

package config

// NPTv6 is a pair of prefixes of one length, whose addresses become each other's (RFC 6296).
type NPTv6 struct {
	At      `yaml:""`
	Inside  Prefix `yaml:"inside" req:"true" doc:"IPv6 prefix of subscribers, /16 to /64."`
	Outside Prefix `yaml:"outside" req:"true" doc:"What the data network knows it by; as long."`
}

// nptv6 checks an instance's pairs. No prefix overlaps another one: an address has one translation, in one direction.
func (in *Instance) nptv6(k *checker) {
	if len(in.NPTv6) > 0 && in.Lookup != "destination" {
		k.fail(in.At, "nptv6", "given with lookup %s: the way back needs destination", in.Lookup)
	}
	var all []Prefix
	for i := range in.NPTv6 {
		n := &in.NPTv6[i]
		for _, one := range []struct {
			key string
			Prefix
		}{{"inside", n.Inside}, {"outside", n.Outside}} {
			if !n.prefix(k, one.key, one.Prefix) {
				continue
			}
			for _, other := range all {
				if other.Overlaps(one.Prefix.Prefix) {
					k.fail(n.At, one.key, "%s overlaps %s", one.Prefix, other)
				}
			}
			all = append(all, one.Prefix)
		}
		if a, b := n.Inside.Bits(), n.Outside.Bits(); n.Inside.IsValid() && n.Outside.IsValid() && a != b {
			// RFC 6296 section 3.1 fills the shorter one up: then not all of it can be translated.
			k.fail(n.At, "outside", "%s and %s differ in length: write both as /%d", n.Inside, n.Outside,
				max(a, b))
		}
		n.outside(k, in)
	}
}

func (n *NPTv6) prefix(k *checker, key string, p Prefix) bool {
	a := p.Addr()
	switch {
	case !p.IsValid(): // said already
	case !a.Is6() || p.Bits() < 16 || p.Bits() > 64:
		k.fail(n.At, key, "%s is no IPv6 prefix of 16 to 64 bits", p)
	case !k.network(n.At, key, p):
	case a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsUnspecified():
		k.fail(n.At, key, "%s holds more than unicast addresses that are routed", p)
	default:
		return true
	}
	return false
}

// outside: its addresses must be free, neither ours nor a UE's.
func (n *NPTv6) outside(k *checker, in *Instance) {
	k.notOurs(n.At, "outside", in, n.Outside)
	for i := range k.Instances {
		for _, p := range k.Instances[i].Pools {
			if n.Outside.Overlaps(p.Prefix) && k.vrfOf(&k.Instances[i]) == k.vrfOf(in) {
				k.fail(n.At, "outside", "%s overlaps the pool %s, where subscribers are", n.Outside, p)
			}
		}
	}
}
