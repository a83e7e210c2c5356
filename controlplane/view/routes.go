// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"cmp"
	"io"
	"reflect"
	"slices"

	"isthmus/api"
)

// Route is one route, by one of its next hops.
type Route struct {
	Prefix    string `json:"prefix"`
	Via       string `json:"via"` // empty: directly attached
	Interface string `json:"interface"`
	Resolved  bool   `json:"resolved"`               // the next hop can be used
	VRF       string `json:"vrf"`                    // empty: the default one
	Discard   string `json:"discard" word:"discard"` // blackhole, unreachable, prohibit, unassigned
}

// finish writes the prefix with its length, also of a host.
func (v *Route) finish(r *api.RouteRow) {
	if prefix := r.Prefix.Netip(); prefix.IsValid() {
		v.Prefix = prefix.String()
	}
}

// byPrefix orders by VRF, family, address, length.
func byPrefix(a, b api.RouteRow) int {
	return cmp.Or(bytes.Compare(a.VRF[:], b.VRF[:]), cmp.Compare(a.Prefix.Family, b.Prefix.Family),
		bytes.Compare(a.Prefix.Bytes[:], b.Prefix.Bytes[:]), cmp.Compare(a.Prefix.Prefix, b.Prefix.Prefix))
}

var routeTable = inOrder("route", "routes, longest prefix wins", true, api.TableRoute,
	columns("PREFIX, VIA, INTERFACE, RESOLVED, VRF",
		str("VIA", func(v *Route) string { return cmp.Or(v.Via, v.Discard) })),
	byPrefix, (*Route).finish)

// IgnoredRoute is one of the kernel's that the data plane does not have, or some of whose next hops it has not.
type IgnoredRoute struct {
	Prefix    string `json:"prefix"`
	VRF       string `json:"vrf"`       // empty: the default one
	Namespace string `json:"namespace"` // empty: our own, or several
	Table     uint32 `json:"table"`     // of the kernel; 0: main
	Metric    uint32 `json:"metric"`
	Via       string `json:"via"`    // of the first next hop that is left out
	Device    string `json:"device"` // of that next hop
	Hops      int    `json:"hops"`   // next hops that are left out; 0: the whole route
	// table, type, tos, source, encapsulation, device, dead, many, link, family, object, configured, ours, gateway,
	// limit, refused
	Reason string `json:"reason"`
	Text   string `json:"text"` // the reason in words
}

// Kernel is the part of Control that is about the routes of the kernel.
type Kernel interface {
	IgnoredRoutes() []IgnoredRoute
}

// IgnoredRouteTable stands beside the routes: `show route --ignored`.
const IgnoredRouteTable = "ignored-route"

var ignoredColumns = columns[IgnoredRoute]("PREFIX, VRF, NAMESPACE, TABLE, METRIC, VIA, DEVICE, HOPS, REASON, TEXT")

var ignoredRouteTable = &Table{
	Name: IgnoredRouteTable, Short: "routes of the kernel's that are not followed", Key: true,
	Answer: reflect.TypeFor[[]IgnoredRoute](), Titles: titlesOf(ignoredColumns),
	Own: func(c Control, key string, limit uint32) any {
		list := append([]IgnoredRoute{}, c.IgnoredRoutes()...)
		list = slices.DeleteFunc(list, func(r IgnoredRoute) bool { return key != "" && r.Prefix != key })
		if limit > 0 && len(list) > int(limit) {
			list = list[:limit]
		}
		return list
	},
	Print: printer(IgnoredRouteTable, func(w io.Writer, list []IgnoredRoute) error {
		return write(w, ignoredColumns, list)
	}),
}
