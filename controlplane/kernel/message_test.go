// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"isthmus/controlplane/testkit"
)

func attribute(kind int, value []byte) []byte { return nl.NewRtAttr(kind, value).Serialize() }

// path is a struct rtnexthop.
func path(device uint32, attributes ...[]byte) []byte {
	rest := slices.Concat(attributes...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(pathHead+len(rest)))
	return append(binary.NativeEndian.AppendUint32(append(b, 0, 0), device), rest...)
}

// flagged is a path with RTNH_F_….
func flagged(flags byte, path []byte) []byte {
	path[2] = flags
	return path
}

// routeMessage is what follows the netlink header.
func routeMessage(family, bits, kind uint8, attributes ...[]byte) []byte {
	m := nl.RtMsg{RtMsg: unix.RtMsg{Family: family, Dst_len: bits, Table: unix.RT_TABLE_MAIN, Type: kind,
		Protocol: unix.RTPROT_BGP}}
	return append(m.Serialize(), slices.Concat(attributes...)...)
}

func twoDevices() *table {
	t := newTable([]Clone{{Interface: "a", Device: "a0"}, {Interface: "b", Device: "b0"}})
	t.setLink(3, "a0", unix.IFF_UP, 1500, false)
	t.setLink(4, "b0", unix.IFF_UP, 1500, false)
	t.setLink(5, "eth0", unix.IFF_UP, 1500, false)
	return t
}

// of is a route to an IPv4 network of 24 bits.
func of(kind uint8, attributes ...[]byte) []byte {
	return routeMessage(unix.AF_INET, 24, kind, attributes...)
}

// multi are next hops of one route.
func multi(paths ...[]byte) []byte { return attribute(unix.RTA_MULTIPATH, slices.Concat(paths...)) }

// paths are count next hops, by one device.
func paths(count int) (list [][]byte) {
	for i := range count {
		list = append(list, path(3, attribute(unix.RTA_GATEWAY, []byte{10, 0, 0, byte(10 + i)})))
	}
	return list
}

func TestMessages(t *testing.T) {
	u32 := nl.Uint32Attr
	ip4 := func(last byte) []byte { return []byte{10, 0, 0, last} }
	to4, by3 := attribute(unix.RTA_DST, []byte{192, 0, 2, 0}), attribute(unix.RTA_OIF, u32(3))
	gateway := attribute(unix.RTA_GATEWAY, ip4(2))
	v6 := netip.MustParseAddr("2001:db8::2").AsSlice()
	many := paths(20)
	for _, row := range []struct {
		what string
		body []byte
		want string // prefix, next hops; empty: none of ours
	}{
		{"by a gateway", of(unix.RTN_UNICAST, to4, gateway, by3), "192.0.2.0/24 10.0.0.2@a"},
		{"on the link", of(unix.RTN_UNICAST, to4, by3), "192.0.2.0/24 link@a"},
		{"default", routeMessage(unix.AF_INET, 0, unix.RTN_UNICAST, gateway, by3), "0.0.0.0/0 10.0.0.2@a"},
		{"IPv6 default", routeMessage(unix.AF_INET6, 0, unix.RTN_UNICAST, attribute(unix.RTA_GATEWAY, v6), by3),
			"::/0 2001:db8::2@a"},
		{"several", of(unix.RTN_UNICAST, to4, multi(path(3, gateway),
			path(4, attribute(unix.RTA_GATEWAY, ip4(9))), path(3, gateway), path(99, gateway))),
			"192.0.2.0/24 10.0.0.2@a 10.0.0.9@b less 1: device"},
		{"more than the data plane has room for", of(unix.RTN_UNICAST, to4, multi(many...)),
			"192.0.2.0/24 10.0.0.10@a 10.0.0.11@a 10.0.0.12@a 10.0.0.13@a 10.0.0.14@a 10.0.0.15@a " +
				"10.0.0.16@a 10.0.0.17@a less 12: many"},
		{"table in an attribute", of(unix.RTN_UNICAST, to4, gateway, by3,
			attribute(unix.RTA_TABLE, u32(unix.RT_TABLE_MAIN))), "192.0.2.0/24 10.0.0.2@a"},
		{"another table", of(unix.RTN_UNICAST, to4, gateway, by3, attribute(unix.RTA_TABLE, u32(100))),
			"192.0.2.0/24  less 0: table"},
		{"another device", of(unix.RTN_UNICAST, to4, gateway, attribute(unix.RTA_OIF, u32(5))),
			"192.0.2.0/24  less 0: device"},
		{"an IPv6 gateway", of(unix.RTN_UNICAST, to4, by3,
			attribute(unix.RTA_VIA, append([]byte{unix.AF_INET6, 0}, v6...))),
			"192.0.2.0/24 2001:db8::2@a"},
		{"several of both families", of(unix.RTN_UNICAST, to4, multi(path(4,
			attribute(unix.RTA_VIA, append([]byte{unix.AF_INET6, 0}, v6...))), path(3, gateway))),
			"192.0.2.0/24 10.0.0.2@a 2001:db8::2@b"},
		{"a gateway of MPLS", of(unix.RTN_UNICAST, to4, by3,
			attribute(unix.RTA_VIA, []byte{unix.AF_MPLS, 0, 1, 2})),
			"192.0.2.0/24  less 0: family"},
		{"in a tunnel", of(unix.RTN_UNICAST, to4, gateway, by3, attribute(unix.RTA_ENCAP, u32(16))),
			"192.0.2.0/24  less 0: encapsulation"},
		{"blackhole", of(unix.RTN_BLACKHOLE, to4), "192.0.2.0/24 discard 1"},
		{"unreachable", of(unix.RTN_UNREACHABLE, to4), "192.0.2.0/24 discard 2"},
		{"prohibit", of(unix.RTN_PROHIBIT, to4), "192.0.2.0/24 discard 3"},
		{"throw", of(unix.RTN_THROW, to4), "192.0.2.0/24 discard 2"},
		{"local", of(unix.RTN_LOCAL, to4, by3), "192.0.2.0/24  less 0: type"},
		{"one that is dead", of(unix.RTN_UNICAST, to4, multi(path(3, gateway),
			flagged(unix.RTNH_F_DEAD, path(4, attribute(unix.RTA_GATEWAY, ip4(9)))))),
			"192.0.2.0/24 10.0.0.2@a less 1: dead"},
		{"one without a carrier", of(unix.RTN_UNICAST, to4,
			multi(flagged(unix.RTNH_F_LINKDOWN, path(3, gateway)),
				path(4, attribute(unix.RTA_GATEWAY, ip4(9))))), "192.0.2.0/24 10.0.0.9@b less 1: dead"},
		{"all without a carrier", of(unix.RTN_UNICAST, to4,
			multi(flagged(unix.RTNH_F_LINKDOWN, path(3, gateway)),
				flagged(unix.RTNH_F_LINKDOWN, path(4, attribute(unix.RTA_GATEWAY, ip4(9)))))),
			"192.0.2.0/24 10.0.0.2@a 10.0.0.9@b"},
		{"all dead", of(unix.RTN_UNICAST, to4, multi(flagged(unix.RTNH_F_DEAD, path(3, gateway)))),
			"192.0.2.0/24  less 0: dead"},
		{"an object that is not there", of(unix.RTN_UNICAST, to4, attribute(attributeNextHop, u32(9))),
			"192.0.2.0/24  less 0: object"},
		{"33 bits", routeMessage(unix.AF_INET, 33, unix.RTN_UNICAST, to4, gateway, by3), ""},
		{"another family's destination", routeMessage(unix.AF_INET6, 24, unix.RTN_UNICAST, to4, gateway, by3),
			""},
		{"of MPLS", routeMessage(unix.AF_MPLS, 20, unix.RTN_UNICAST, by3), ""},
		{"an attribute longer than the message", of(unix.RTN_UNICAST, to4, gateway, by3[:6]), ""},
		{"an attribute without length", of(unix.RTN_UNICAST, to4, []byte{0, 0, 4, 0}), ""},
	} {
		var m message
		is := ""
		if m.decode(row.body) {
			if p, c, ok := twoDevices().candidateOf(&m); ok {
				is = fmt.Sprint(p.Netip(), " ", says(c.Route))
				if c.why != Followed {
					is += fmt.Sprintf(" less %d: %s", c.fate().left.hops, c.why)
				}
			}
		}
		testkit.Equal(t, is, row.want, "%s", row.what)
	}
}

// An address is ours when duplicate address detection has succeeded (RFC 4862 section 5.4), and no more when another
// host has it.
func TestDuplicateAddress(t *testing.T) {
	p := netip.MustParsePrefix("2001:db8::1/64")
	table := twoDevices()
	for _, row := range []struct {
		what          string
		flags         int
		changes, ours bool
	}{
		{"tentative", unix.IFA_F_TENTATIVE, false, false},
		{"found to be another host's", unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED, false, false},
		{"unique", unix.IFA_F_PERMANENT, true, true},
		{"told again", unix.IFA_F_PERMANENT, false, true},
		{"found later", unix.IFA_F_PERMANENT | unix.IFA_F_DADFAILED, true, false},
	} {
		testkit.Equal(t, table.setAddress(3, *ipNet(p), row.flags, true), row.changes, "%s", row.what)
		testkit.Equal(t, table.links[3].addresses[p], row.ours, "%s", row.what)
	}
}

// After any messages the table is as large as its contents, and its counts are right.
func FuzzMessages(f *testing.F) {
	header := func(kind uint16, body []byte) []byte {
		b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
		b = binary.NativeEndian.AppendUint16(b, kind)
		return append(append(b, make([]byte, 10)...), body...)
	}
	body := routeMessage(unix.AF_INET, 24, unix.RTN_UNICAST, attribute(unix.RTA_DST, []byte{192, 0, 2, 0}),
		attribute(unix.RTA_OIF, nl.Uint32Attr(3)))
	f.Add(header(unix.RTM_NEWROUTE, body))
	f.Add(slices.Concat(header(unix.RTM_NEWROUTE, body), header(unix.RTM_DELROUTE, body)))
	f.Add(header(unix.RTM_NEWROUTE, routeMessage(unix.AF_INET6, 128, unix.RTN_UNICAST,
		attribute(unix.RTA_DST, make([]byte, 16)), attribute(unix.RTA_MULTIPATH, path(4)))))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		s := &space{table: twoDevices()}
		eachMessage(datagram, func(kind, flags uint16, body []byte) { s.routeChanged(kind, flags, body) })
		s.table.settleNextHops()
		there := 0
		for p, e := range s.table.routes {
			if s.table.best(p, &e) != (Route{}) {
				there++
			}
			testkit.ErrorIf(t, !p.Netip().IsValid(), "a route to %v", p)
			testkit.Equal(t, PrefixOf(p.Netip()), p, "a prefix to and fro")
		}
		testkit.Equal(t, s.table.prefixes, there, "prefixes")
		testkit.ErrorIf(t, there > len(datagram)/unix.SizeofNlMsghdr, "%d routes of %d bytes", there,
			len(datagram))
	})
}
