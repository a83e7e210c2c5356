// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"isthmus/controlplane/rules"

	"github.com/gaissmai/bart"
)

// prefixes finds sessions by UE IPv6 prefix and by framed route, which may nest: one trie per instance and kind.
// Look-up cost does not grow with their number or lengths.
type prefixes map[prefixKind]*bart.Table[uint64]

type prefixKind struct {
	instance string
	framed   bool
}

func (p prefixes) of(u rules.UEAddress) *bart.Table[uint64] {
	kind := prefixKind{u.Instance, u.Framed}
	t := p[kind]
	if t == nil {
		t = &bart.Table[uint64]{}
		p[kind] = t
	}
	return t
}

// hostKey is the key of a UE IPv4 address; false for what is no address of a host.
func (x *index) hostKey(u rules.UEAddress) (key uint64, four bool) {
	if !u.Prefix.Addr().Is4() || u.Framed {
		return 0, false
	}
	a := u.Prefix.Addr().As4()
	return x.instance(u.Instance)<<32 | uint64(binary.BigEndian.Uint32(a[:])), true
}

// ueOwner returns the session that has a UE address, or an overlapping prefix. Framed routes conflict only when equal:
// otherwise the longest match decides.
func (x *index) ueOwner(u rules.UEAddress) (seid uint64, used bool) {
	if key, four := x.hostKey(u); four {
		seid, used = x.host[key]
		return seid, used
	}
	t := x.prefix.of(u)
	if u.Framed {
		return t.Get(u.Prefix)
	}
	if seid, used = t.LookupPrefix(u.Prefix); used || !t.OverlapsPrefix(u.Prefix) {
		return seid, used
	}
	for _, seid := range t.Subnets(u.Prefix) {
		return seid, true
	}
	return 0, false
}
