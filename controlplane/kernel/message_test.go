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

// routeMessage is what follows the netlink header.
func routeMessage(family, bits, kind uint8, attributes ...[]byte) []byte {
	m := nl.RtMsg{RtMsg: unix.RtMsg{Family: family, Dst_len: bits, Table: unix.RT_TABLE_MAIN, Type: kind,
		Protocol: unix.RTPROT_BGP}}
	return append(m.Serialize(), slices.Concat(attributes...)...)
}

func twoDevices() *table {
	t := newTable([]Clone{{Interface: "a", Device: "a0"}, {Interface: "b", Device: "b0"}})
	t.setLink(3, "a0", unix.IFF_UP, 1500)
	t.setLink(4, "b0", unix.IFF_UP, 1500)
	return t
}

func TestMessages(t *testing.T) {
	u32 := nl.Uint32Attr
	ip4 := func(last byte) []byte { return []byte{10, 0, 0, last} }
	to4, by3 := attribute(unix.RTA_DST, []byte{192, 0, 2, 0}), attribute(unix.RTA_OIF, u32(3))
	gateway := attribute(unix.RTA_GATEWAY, ip4(2))
	v6 := netip.MustParseAddr("2001:db8::2").AsSlice()
	of := func(kind uint8, attributes ...[]byte) []byte {
		return routeMessage(unix.AF_INET, 24, kind, attributes...)
	}
	multi := func(paths ...[]byte) []byte { return attribute(unix.RTA_MULTIPATH, slices.Concat(paths...)) }
	many := [][]byte{}
	for i := range 20 {
		many = append(many, path(3, attribute(unix.RTA_GATEWAY, ip4(byte(10+i)))))
	}
	for _, row := range []struct {
		what string
		body []byte
		want string // prefix, next hops; empty: none of ours
	}{
		{"by a gateway", of(unix.RTN_UNICAST, to4, gateway, by3), "192.0.2.0/24 10.0.0.2a"},
		{"on the link", of(unix.RTN_UNICAST, to4, by3), "192.0.2.0/24 invalid IPa"},
		{"default", routeMessage(unix.AF_INET, 0, unix.RTN_UNICAST, gateway, by3), "0.0.0.0/0 10.0.0.2a"},
		{"IPv6 default", routeMessage(unix.AF_INET6, 0, unix.RTN_UNICAST, attribute(unix.RTA_GATEWAY, v6), by3),
			"::/0 2001:db8::2a"},
		{"several", of(unix.RTN_UNICAST, to4, multi(path(3, gateway),
			path(4, attribute(unix.RTA_GATEWAY, ip4(9))), path(3, gateway), path(99, gateway))),
			"192.0.2.0/24 10.0.0.2a 10.0.0.9b"},
		{"more than the data plane has room for", of(unix.RTN_UNICAST, to4, multi(many...)),
			"192.0.2.0/24 10.0.0.10a 10.0.0.11a 10.0.0.12a 10.0.0.13a 10.0.0.14a 10.0.0.15a 10.0.0.16a " +
				"10.0.0.17a"},
		{"table in an attribute", of(unix.RTN_UNICAST, to4, gateway, by3,
			attribute(unix.RTA_TABLE, u32(unix.RT_TABLE_MAIN))), "192.0.2.0/24 10.0.0.2a"},
		{"another table", of(unix.RTN_UNICAST, to4, gateway, by3, attribute(unix.RTA_TABLE, u32(100))), ""},
		{"another device", of(unix.RTN_UNICAST, to4, gateway, attribute(unix.RTA_OIF, u32(5))), ""},
		{"a gateway of another family", of(unix.RTN_UNICAST, to4, by3,
			attribute(unix.RTA_VIA, append([]byte{unix.AF_INET6, 0}, v6...))), ""},
		{"blackhole", of(unix.RTN_BLACKHOLE, to4), ""},
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
				first := c.First()
				is = fmt.Sprint(p.Netip(), " ", first.Via, first.Interface)
				for _, h := range c.Further() {
					is += fmt.Sprint(" ", h.Via, h.Interface)
				}
			}
		}
		testkit.Equal(t, is, row.want, "%s", row.what)
	}
}

// An address is ours when duplicate address detection has ended well (RFC 4862 section 5.4), and no more when another
// host turns out to have it.
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

// Whatever comes, the table stays as large as what came, and counts right.
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
		eachMessage(datagram, s.routeChanged)
		there := 0
		for p, e := range s.table.routes {
			if e.Route != (Route{}) {
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
