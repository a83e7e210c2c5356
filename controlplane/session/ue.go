// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"

	"github.com/gaissmai/bart"
)

// prefixes finds sessions by UE IPv6 prefix, and by framed route, which may lie within others: a trie for each instance and
// kind, so that the cost of a look-up does not grow with their number or the variety of their lengths.
type prefixes map[prefixKind]*bart.Table[uint64]

type prefixKind struct {
	instance string
	framed   bool
}

func (p prefixes) of(u ueAddress) *bart.Table[uint64] {
	kind := prefixKind{u.instance, u.framed}
	t := p[kind]
	if t == nil {
		t = &bart.Table[uint64]{}
		p[kind] = t
	}
	return t
}

// hostKey is the key of a UE IPv4 address; false for what is no address of a host.
func (x *index) hostKey(u ueAddress) (key uint64, four bool) {
	if !u.prefix.Addr().Is4() || u.framed {
		return 0, false
	}
	a := u.prefix.Addr().As4()
	return x.instance(u.instance)<<32 | uint64(binary.BigEndian.Uint32(a[:])), true
}

// ueOwner returns the session that has a UE address, or one that contains it or lies within it. A framed route is only
// another's when it is the same: the longest decides whose a packet is.
func (x *index) ueOwner(u ueAddress) (seid uint64, used bool) {
	if key, four := x.hostKey(u); four {
		seid, used = x.host[key]
		return seid, used
	}
	t := x.prefix.of(u)
	if u.framed {
		return t.Get(u.prefix)
	}
	if seid, used = t.LookupPrefix(u.prefix); used || !t.OverlapsPrefix(u.prefix) {
		return seid, used
	}
	for _, seid := range t.Subnets(u.prefix) {
		return seid, true
	}
	return 0, false
}
