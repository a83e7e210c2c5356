// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/session"
	"isthmus/controlplane/testkit"
)

const listsFile = `  access_lists:
    - name: web
      default: deny
      rules:
        - {action: deny, destination: 10.9.0.0/16}
        - {action: permit, protocol: tcp, destination_port: 80-443}
    - {name: all}
`

// named is a CoA's Filter-Id.
func named(text string) radius.Attribute { return attribute(radius.FilterId, []byte(text)...) }

func TestAccessLists(t *testing.T) {
	b := start(t, nil)
	b.Configure(SettingsOf(parse(t, file+listsFile)))
	h := b.up(request("anna", 1))
	plain := b.object(h)
	testkit.ErrorIf(t, len(plain.PDR) != 2 || plain.LineFilters != nil, "%+v", plain)
	testkit.Equal(t, b.coa(h, named("web.in"), named("all.out")), aaa.OK, "CoA")
	o := b.object(h)
	all := [2]uint16{0, 65535}
	nine := api.FromPrefix(netip.MustParsePrefix("10.9.0.0/16"))
	testkit.ErrorIf(t, !slices.Equal(o.LineFilters[uplinkRule], []api.SDF{
		{Flags: api.SDFDeny, Remote: nine, RemotePort: all, LocalPort: all},
		{Flags: api.SDFProtocol, Protocol: 6, RemotePort: [2]uint16{80, 443}, LocalPort: all},
		{Flags: api.SDFDeny, RemotePort: all, LocalPort: all},
	}) || !slices.Equal(o.LineFilters[downlinkRule], []api.SDF{{RemotePort: all, LocalPort: all}}),
		"%+v", o.LineFilters)
	for i, source := range []pfcp.Interface{pfcp.Access, pfcp.Core} {
		p, f := o.PDR[2+i], o.FAR[2+i]
		testkit.ErrorIf(t, p.PDI.Source != source || p.Precedence != denied || *p.FAR != f.ID ||
			f.Action != pfcp.ActionDrop || len(p.URR)+len(p.QER) != 0 || len(p.PDI.UEIP) == 0, "%+v", p)
	}
	testkit.Equal(t, b.coa(h, radius.Attribute{Type: radius.CiscoAVPair, Value: []byte("subscriber:acl-up=")},
		named("web.out")), aaa.OK, "CoA")
	o = b.object(h)
	down := o.LineFilters[downlinkRule]
	testkit.ErrorIf(t, o.LineFilters[uplinkRule] != nil || down[0].Local != nine ||
		down[1].LocalPort != [2]uint16{80, 443}, "%+v", o.LineFilters)
}

// A removed list stays with its users; no other subscriber gets it.
func TestAccessListIsTakenAway(t *testing.T) {
	b := start(t, nil)
	with := SettingsOf(parse(t, file+listsFile))
	b.Configure(with)
	b.judge.verdict.Plan.ACLUp = "web"
	h := b.up(request("anna", 1))
	filters := b.object(h).LineFilters[uplinkRule]
	for range 2 {
		b.Configure(SettingsOf(parse(t, file)))
		b.turn()
	}
	b.subscriber(h).commit(func(err error) { testkit.Must(t, err) })
	b.turn()
	testkit.ErrorIf(t, !slices.Equal(b.object(h).LineFilters[uplinkRule], filters), "%+v", b.object(h).LineFilters)
	testkit.Equal(t, b.coa(h, attribute(radius.IdleTimeout, 0, 0, 0, 9)), aaa.OK, "another part of the plan")
	testkit.ErrorIf(t, !slices.Equal(b.object(h).LineFilters[uplinkRule], filters) ||
		b.Rows("anna")[0].UplinkList != "web", "%+v", b.Rows("anna"))
	refused := b.signIn(request("bob", 2))
	testkit.ErrorIf(t, refused.session != nil || !strings.Contains(refused.verdict.Why, `no access list "web"`),
		"%+v", refused.verdict)
	b.Clear("anna", access.AdminReset)
	b.turn()
	b.Configure(SettingsOf(parse(t, file)))
	testkit.Equal(t, len(b.retired), 0, "lists kept for nobody")
}

// A restart finds the session in its final state: nothing is sent again.
func TestAccessListsOverARestart(t *testing.T) {
	b := start(t, nil)
	lists := func(s *Settings) { s.lists = SettingsOf(parse(t, file+listsFile)).lists }
	b.open(lists)
	b.judge.verdict.Plan.ACLUp, b.judge.verdict.Plan.ACLDown = "web", "all"
	seid := seidOf(b.up(request("anna", 1)).session.ID())
	records := []session.LineRecord{{SEID: seid, Data: b.layer.records[seid], Session: b.layer.sessions[seid]}}
	puts := b.layer.puts
	b.open(lists)
	b.Restore(records)
	b.turn()
	testkit.ErrorIf(t, len(b.front.restored) != 1 || b.layer.puts != puts, "%d restored, %d sent again",
		len(b.front.restored), b.layer.puts-puts)
}

// The longest lists of both directions fit a session: a captive subscriber, a portal with many addresses, the most
// routes and the longest URL.
func TestLongestAccessLists(t *testing.T) {
	lists := func(count int) string {
		return file + "  access_lists: [{name: long, rules: [" +
			strings.Repeat("{action: deny, destination: 192.0.2.0/24}, ", count) + "]}]\n"
	}
	_, err := config.Parse("test.yaml", []byte(lists(121)))
	testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), "at most 120"), "%v", err)
	b := start(t, nil)
	b.Configure(SettingsOf(parse(t, lists(120))))
	p := access.Plan{ACLUp: "long", ACLDown: "long", Redirect: "http://pay.test/" + strings.Repeat("x", 111),
		Delegated: netip.MustParsePrefix("2001:db8:f000::/56")}
	for i := range api.MaxRoutes - 1 {
		p.Routes = append(p.Routes, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200, byte(i)}), 24))
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint("198.51.100.", i+1))
	}
	b.says("invalid IP", "pay.test", strings.Join(many, " "))
	b.judge.verdict.Plan = p
	r := request("anna", 1)
	r.Wants = access.Families{V4: true, Delegated: true}
	h := b.up(r)
	b.untilPasses(h, "198.51.100.1/32 198.51.100.2/32 198.51.100.3/32 198.51.100.4/32 198.51.100.5/32 198.51.100.6/32 "+
		"198.51.100.7/32 198.51.100.8/32 198.51.100.9/32 198.51.100.10/32 198.51.100.11/32 198.51.100.12/32")
	total := 0
	for _, filters := range b.object(h).LineFilters {
		total += len(filters)
	}
	testkit.Equal(t, total, api.MaxSDF, "filters")
	left := 0
	for _, e := range b.events {
		if strings.Contains(e, "subscriber.left-out portal") {
			left++
		}
	}
	testkit.ErrorIf(t, left == 0, "nothing says what does not fit: %v", b.events)
	h.session.Up(access.Families{V4: true, Delegated: true}, 1492, access.KeepAlive{},
		func(err error) { testkit.Must(t, err) })
	b.turn()
	testkit.Equal(t, len(b.object(h).PDR[0].PDI.FramedRoutes), api.MaxRoutes, "framed routes")
}
