// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/subscriber"
	"isthmus/controlplane/view"
)

// mobile is view.Mobile.
type mobile struct {
	Sessions
	state *reconcile.Published
}

// Instances is view.Mobile's.
func (m mobile) Instances() []config.Instance { return m.state.Plan().Instances }

// Associations is view.Mobile's.
func (m mobile) Associations() []view.Association {
	list := []view.Association{}
	for _, r := range m.N4().Associations {
		list = append(list, associationOf(&r))
	}
	return list
}

func associationOf(r *n4.AssociationRow) view.Association {
	since := r.Since
	if r.State == "failed" {
		since = r.FailedAt
	}
	return view.Association{ID: r.ID, Set: r.Set, Address: r.Address, State: r.State, Since: since,
		Recovery: r.Recovery, Sessions: r.Sessions, Features: strings.Join(r.Features, " "),
		Heartbeat: int64(r.RoundTrip * 1000)}
}

// routes is view.Kernel.
type routes struct{ Kernel }

// IgnoredRoutes is view.Kernel's: as many as are shown at once.
func (o routes) IgnoredRoutes() []view.IgnoredRoute {
	ctx, cancel := context.WithTimeout(context.Background(), showTime)
	defer cancel()
	list, err := o.Ignored(ctx, mostIgnored)
	if err != nil {
		return nil
	}
	rows := make([]view.IgnoredRoute, 0, len(list))
	for i := range list {
		r := &list[i]
		v := view.IgnoredRoute{Prefix: r.Prefix.String(), VRF: r.VRF, Namespace: r.Namespace, Table: r.Table,
			Metric: r.Metric, Device: r.Device, Hops: r.Hops, Reason: r.Reason.String(),
			Text: cmp.Or(r.Text, r.Reason.Text())}
		if r.Via.IsValid() {
			v.Via = r.Via.String()
		}
		rows = append(rows, v)
	}
	return rows
}

// mostIgnored of each kind are shown; the metric counts all.
const mostIgnored = 16384

// showTime bounds what a table waits for.
const showTime = 5 * time.Second

// subscribers is view.Access.
type subscribers struct {
	SignIns
	state *reconcile.Published
}

// Subscribers is view.Access's. Counters are the data plane's at this moment.
func (s subscribers) Subscribers(key string, limit uint32) []view.Subscriber {
	ctx, cancel := context.WithTimeout(context.Background(), showTime)
	defer cancel()
	rows, attempts, err := s.Rows(ctx, key)
	if err != nil {
		return nil
	}
	object := ""
	if _, ours := rules.SEIDOf(key); ours { // all of a large table for one row would be dear
		object = key
	}
	live := s.lines(ctx, object)
	list := make([]view.Subscriber, 0, len(rows))
	for i := range rows {
		list = append(list, subscriberOf(&rows[i], live))
	}
	for _, r := range live { // the configuration's
		if v := staticOf(r); key == "" || v.User == key || v.MAC == strings.ToLower(key) || v.IPv4 == key ||
			v.IPv6 == key || v.Line == key {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b view.Subscriber) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.MAC, b.MAC), cmp.Compare(a.Object, b.Object))
	})
	if limit > 0 && len(list) > int(limit) {
		list = list[:limit]
	}
	if len(attempts) == 0 {
		return list
	}
	if len(list) == 0 { // they were never let in, or have left
		one := &attempts[0]
		list = append(list, view.Subscriber{User: one.User, State: "away", Kind: one.Kind, Line: one.Line,
			MAC: one.MAC})
	}
	for _, n := range attempts {
		list[0].Attempts = append(list[0].Attempts, view.Attempt{User: n.User, Kind: n.Kind, First: n.First,
			Last: n.Last, Count: n.Count,
			Why: n.Why})
	}
	return list
}

// lines are the data plane's sessions of access lines, or one alone, by name; none while it is away.
func (s subscribers) lines(ctx context.Context, name string) map[string]*api.SessionRow {
	client := s.state.Client()
	if client == nil {
		return nil
	}
	rows, err := dp.Table[api.SessionRow](ctx, client, api.TableSession, name, 0)
	if err != nil {
		return nil
	}
	by := map[string]*api.SessionRow{}
	for i := range rows {
		if rows[i].Encap != api.EncapNone {
			by[api.CString(rows[i].Name[:])] = &rows[i]
		}
	}
	return by
}

// subscriberOf takes what it finds out of live.
func subscriberOf(r *subscriber.Row, live map[string]*api.SessionRow) view.Subscriber {
	v := view.Subscriber{User: r.User, State: r.State, Kind: r.Kind, Line: r.Line, MAC: r.MAC,
		PPPoESession: r.PPPoE, Circuit: r.Circuit,
		Remote: r.Remote, IPv4: r.IPv4, IPv6: r.IPv6, Delegated: r.Delegated, Profile: r.Profile,
		Instance: r.Instance, UplinkList: r.UplinkList, DownlinkList: r.DownlinkList, Scheduler: r.Scheduler,
		UpRate: r.Up.CIR, DownRate: r.Down.CIR, Since: r.Since, Session: r.Session, Object: rules.Key(r.SEID),
		UplinkPackets: r.UpPackets, UplinkBytes: r.UpBytes, DownlinkPackets: r.DownPackets,
		DownlinkBytes: r.DownBytes}
	if now := live[v.Object]; now != nil {
		countLine(&v, now)
		delete(live, v.Object)
	}
	return v
}

// staticOf is a subscriber of the configuration.
func staticOf(r *api.SessionRow) view.Subscriber {
	v := view.Subscriber{User: api.CString(r.Name[:]), State: "static", Kind: "static"}
	v.Line, v.MAC, v.PPPoESession = lineOf(r), net.HardwareAddr(r.MAC[:]).String(), r.PPPoESession
	v.IPv4, v.IPv6, v.Object = r.UEIP4.String(), r.UEIP6.String(), v.User
	countLine(&v, r)
	return v
}

func lineOf(r *api.SessionRow) string {
	return subscriber.LineText(&access.Line{Port: api.CString(r.Port[:]), STag: r.STag, CTag: r.CTag})
}

func countLine(v *view.Subscriber, r *api.SessionRow) {
	v.UplinkPackets, v.UplinkBytes = r.UplinkPackets, r.UplinkBytes
	v.DownlinkPackets, v.DownlinkBytes = r.DownlinkPackets, r.DownlinkBytes
}
