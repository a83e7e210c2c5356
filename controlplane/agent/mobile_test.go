// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session"
	"isthmus/controlplane/testkit"
)

const upf = `
ports:
  - {name: access, driver: synth, role: access}
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: n3, port: core, outer_vlan: 3, addresses: [10.1.0.1/24]}
  - {name: n6, port: core, outer_vlan: 6, addresses: [10.6.0.1/24]}
  - {name: n9, port: core, outer_vlan: 9, addresses: [10.9.0.1/24]}
`

const instances = `
instances:
  - {name: access, interfaces: [n3], endpoints: [10.1.0.1], sources: [access]}
  - {name: internet, interfaces: [n6], lookup: destination, sources: [core], pools: [10.45.0.0/16]}
`

const n9 = "  - {name: n9, interfaces: [n9], endpoints: [10.9.0.1]}\n"

// pfcpConfig is a UPF whose PFCP server takes any peer.
func pfcpConfig(t *testing.T) string {
	t.Helper()
	const any = "pfcp: {listen: [\"%s\"], node_id: upf1, roles: [upf], allow_unknown: true}\n"
	return upf + fmt.Sprintf(any, freePort(t))
}

// launchMobile runs an agent with PFCP until stop is called.
func launchMobile(t *testing.T, s *dptest.Server, dir, text string) (a *Agent, stop func()) {
	t.Helper()
	file := dir + "/upf.yaml"
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	opt := outside(s, dir)
	opt.File, opt.State = file, dir
	return restart(t, opt)
}

func ptr[T any](v T) *T { return &v }

// establish makes a session whose uplink comes to an endpoint of ours.
func establish(t *testing.T, a *Agent, teid uint32, endpoint, ue string) *pfcp.SessionEstablishmentResponse {
	t.Helper()
	address := netip.MustParseAddr(ue)
	req := &pfcp.SessionEstablishmentRequest{
		CP: pfcp.FSEID{SEID: uint64(teid), IPv4: netip.MustParseAddr("127.0.0.2")}, UserID: "imsi-1", APN: "internet",
		PDR: []pfcp.CreatePDR{
			{ID: 1, FAR: ptr(uint32(1)), OuterHeaderRemoval: ptr(uint8(0)), PDI: pfcp.PDI{Source: pfcp.Access,
				LocalFTEID: &pfcp.FTEID{TEID: teid, IPv4: netip.MustParseAddr(endpoint)}}},
			{ID: 2, FAR: ptr(uint32(2)), PDI: pfcp.PDI{Source: pfcp.Core,
				UEIP: []pfcp.UEIP{{IPv4: address, Destination: true}}}},
		},
		FAR: []pfcp.CreateFAR{
			{ID: 1, Action: pfcp.ActionForward, Forwarding: &pfcp.Forwarding{Destination: ptr(pfcp.Core)}},
			{ID: 2, Action: pfcp.ActionForward, Forwarding: &pfcp.Forwarding{Destination: ptr(pfcp.Access),
				OuterHeader: &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: teid,
					IPv4: netip.MustParseAddr("10.1.0.99")}}},
		},
	}
	ch := make(chan *pfcp.SessionEstablishmentResponse, 1)
	a.sessions.Manager.Establish(&n4.Association{ID: "smf1"}, req,
		func(r *pfcp.SessionEstablishmentResponse) { ch <- r })
	return testkit.Receive(t, ch)
}

// Usage is read each period, and is in the store when both processes end.
func TestUsageIsRead(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	a, stop := launchMobile(t, s, dir, pfcpConfig(t)+instances+"control: {usage_period: 1}\n")
	up := establish(t, a, 1, "10.1.0.1", "10.45.0.1")
	testkit.FatalIf(t, up.Cause != pfcp.CauseAccepted, "%+v", up)
	row := api.URRRow{URR: 1, Bytes: [3]uint64{3, 1, 2}, QuotaLeft: [3]uint64{1 << 63, 1 << 63, 1 << 63}}
	copy(row.Session[:], rules.Key(up.UP.SEID))
	stored := func() (readings, carried int) {
		c, err := session.Inspect(dir+"/sessions.db", nil)
		testkit.Must(t, err)
		return c.Readings, c.Usages
	}
	s.SetTable(api.TableURR, api.Body(&row))
	testkit.Until(t, "what was used is in the store", func() bool { n, _ := stored(); return n == 1 })
	s.Crash(t)
	testkit.Until(t, "it is carried over", func() bool { n, carried := stored(); return n == 0 && carried == 1 })
	s.SetTable(api.TableURR, api.Body(&row))
	testkit.Until(t, "the next data plane is read", func() bool { n, _ := stored(); return n == 1 })
	s.Kill()
	stop()
	readings, carried := stored()
	testkit.ErrorIf(t, readings != 1 || carried != 1, "%d read, %d carried over", readings, carried)
}

func heldSession(seid uint64) dptest.ID {
	return dptest.ID{Kind: api.KindSession, Key: rules.Key(seid)}
}

// Sessions over PFCP survive a reload, a restart of either process, and a refused configuration; they end with their
// network instance.
func TestMobileSessionsAndTheConfiguration(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	text := pfcpConfig(t) + instances
	a, stop := launchMobile(t, s, dir, text+n9)
	if err := a.sessions.Manager.KeepAssociation(n4.StoredAssociation{ID: "smf1",
		Addr:  netip.MustParseAddrPort("127.0.0.2:8805"),
		Local: netip.MustParseAddrPort("127.0.0.1:8805")}); err != nil {
		t.Fatal(err)
	}
	stays, goes := establish(t, a, 1, "10.1.0.1", "10.45.0.1"), establish(t, a, 2, "10.9.0.1", "10.45.0.2")
	if stays.Cause != pfcp.CauseAccepted || goes.Cause != pfcp.CauseAccepted || stays.UP.IPv4.String() != "127.0.0.1" ||
		stays.Node.FQDN != "upf1" {
		t.Fatalf("%+v %+v", stays, goes)
	}
	apply := func(more string) (v1.Result, error) {
		plan, err := plan.Make("test", []byte(text+more))
		testkit.Must(t, err)
		return a.owner.Apply(t.Context(), plan)
	}
	before, _ := s.Counts()
	if res, err := apply(n9); err != nil || res.Put+res.Deleted != 0 || res.Note != "" {
		t.Errorf("%+v %v", res, err)
	}
	after, _ := s.Counts()
	testkit.ErrorIf(t, after != before, "an equal configuration was sent")
	s.Refuse("no", func(id dptest.ID, _ []byte) bool { return id.Kind == api.KindRoute })
	if _, err := apply(strings.ReplaceAll(route, "192.0.2.2", "10.6.0.2")); err == nil {
		t.Error("not refused")
	}
	s.Refuse("", nil)
	testkit.ErrorIf(t, s.Held()[heldSession(goes.UP.SEID)] == nil || a.sessions.Manager.Count("") != 2,
		"a refused configuration ended a session")
	if res, err := apply(""); err != nil || !strings.Contains(res.Note, "1 mobile sessions ended") {
		t.Errorf("%+v %v", res, err)
	}
	if held := s.Held(); held[heldSession(goes.UP.SEID)] != nil || held[heldSession(stays.UP.SEID)] == nil {
		t.Error("the wrong session ended")
	}
	if r := establish(t, a, 3, "10.9.0.1", "10.45.0.3"); r.Cause != pfcp.CauseRuleFailure {
		t.Errorf("%+v", r)
	}

	// The data plane restarts with nothing.
	held := s.Held()
	s.Kill()
	testkit.Until(t, "loss noticed", func() bool { return a.owner.Status().DataPlane == v1.StateAway })
	if r := establish(t, a, 4, "10.1.0.1", "10.45.0.4"); r.Cause != pfcp.CauseNoResources {
		t.Errorf("%+v", r)
	}
	s.SetHeld(nil)
	testkit.Must(t, s.Listen())
	testkit.Until(t, "ready again", ready(a))
	now := s.Held()
	for id, body := range held {
		testkit.ErrorIf(t, string(now[id]) != string(body) && id.Kind == api.KindSession,
			"%v was not sent again", id)
	}

	// The control plane restarts: nothing is sent.
	stop()
	_, sent := s.Counts()
	a, _ = launchMobile(t, s, dir, text)
	if _, again := s.Counts(); again != sent || a.sessions.Manager.Count("smf1") != 1 {
		t.Errorf("%d changes sent after a restart, %d sessions", again-sent, a.sessions.Manager.Count("smf1"))
	}
	if r := establish(t, a, 5, "10.1.0.1", "10.45.0.5"); r.Cause != pfcp.CauseAccepted {
		t.Errorf("%+v", r)
	}
}

func TestMobileShow(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	a, _ := launchMobile(t, s, dir, pfcpConfig(t)+instances)
	r := establish(t, a, 1, "10.1.0.1", "10.45.0.1")
	if o, ok := a.sessions.Owner(r.UP.SEID); !ok || o.Association != "smf1" || o.User != "imsi-1" ||
		o.DNN != "internet" || o.CPSEID != 1 {
		t.Errorf("%+v", o)
	}
	if _, ok := a.sessions.Owner(1); ok {
		t.Error("of nobody")
	}
	row := api.SessionRow{SEID: r.UP.SEID}
	s.SetTable(api.TableSession, api.Body(&row))
	w := httptest.NewRecorder()
	a.api.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/show/session", nil))
	testkit.ErrorIf(t, !strings.Contains(w.Body.String(), `"association":"smf1"`), "%s", w.Body)
	m := a.scraper.Snapshot(t.Context()).PFCP
	testkit.ErrorIf(t, m == nil || m.Sessions != 1, "%+v", m)
	const ours = "policers:\n  - {name: n4.x, type: srtcm, cir: 1M, cbs: 10000, ebs: 0}\n"
	if _, err := plan.Make("test", []byte(upf+ours)); err == nil {
		t.Error("a name of ours was accepted")
	}
}

// The DSCP of an instance applies to its sessions' tunnels, also to existing ones when the file changes.
func TestTunnelsHaveTheInstancesDSCP(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	text := pfcpConfig(t) + instances
	a, _ := launchMobile(t, s, dir, text)
	seid := establish(t, a, 1, "10.1.0.1", "10.45.0.1").UP.SEID
	dscp := func() [2]uint8 { // of all packets, and of QFI 9
		held := s.Held()
		_, rest, err := api.TakeRows[api.Session](held[heldSession(seid)])
		_, rest, err1 := api.TakeRows[api.PDR](rest)
		fars, _, err2 := api.TakeRows[api.FAR](rest)
		if err := errors.Join(err, err1, err2); err != nil || len(fars) != 2 {
			t.Fatal(fars, err)
		}
		var path api.Path
		if _, err := api.ReadRow(held[dptest.ID{Kind: api.KindPath, Key: api.CString(fars[1].Path[:])}],
			&path); err != nil {
			t.Fatal(err)
		}
		return [2]uint8{path.DSCP, path.QFIDSCP[9]}
	}
	testkit.Equal(t, dscp(), [2]uint8{}, "DSCP")
	const endpoints = "endpoints: [10.1.0.1]"
	plan, err := plan.Make("test", []byte(strings.Replace(text, endpoints, endpoints+", dscp: 26, qfi_dscp: {9: 0}",
		1)))
	if err == nil {
		_, err = a.owner.Apply(t.Context(), plan)
	}
	testkit.Must(t, err)
	testkit.Until(t, "DSCP 26", func() bool { return dscp() == [2]uint8{26, 1 + 0} })
}

// A full comparison with a plan that the data plane refuses leaves sessions and settings unchanged.
func TestMobilePlanRefused(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	text := pfcpConfig(t) + instances
	a, _ := launchMobile(t, s, dir, text+n9)
	stays, goes := establish(t, a, 1, "10.1.0.1", "10.45.0.1"), establish(t, a, 2, "10.9.0.1", "10.45.0.2")
	next, err := plan.Make("test", []byte(text+strings.ReplaceAll(route, "192.0.2.2", "10.6.0.2")))
	testkit.Must(t, err)
	orphan := heldSession(77)
	held := s.Held()
	held[orphan] = []byte{1}
	s.SetHeld(held)
	push := func() error {
		_, err := a.owner.Do(t.Context(), func(ctx context.Context) (v1.Result, error) {
			return a.sessions.Push(ctx, a.owner.Client(), next, true, func(held []api.Digest) []dp.Change {
				return plan.Diff(held, next.Objects)
			})
		})
		return err
	}
	m := a.sessions.Manager
	was := m.Settings()
	s.Refuse("no", func(id dptest.ID, _ []byte) bool { return id.Kind == api.KindRoute })
	testkit.ErrorIf(t, push() == nil, "not refused")
	if m.Settings() != was || m.Count("") != 2 || s.Held()[heldSession(goes.UP.SEID)] == nil {
		t.Error("a refused plan was adopted")
	}
	s.Refuse("", nil)
	testkit.Must(t, push())
	now := s.Held()
	if m.Settings() == was || m.Count("") != 1 || now[heldSession(goes.UP.SEID)] != nil ||
		now[heldSession(stays.UP.SEID)] == nil || now[orphan] != nil {
		t.Error("an accepted plan was not adopted")
	}
}

// A reload reports an unreachable collector, which is shown, counted and an event.
func TestCollectorThatCannotBeReached(t *testing.T) {
	s := dptest.Start(t)
	text := pfcpConfig(t) + instances
	a, stop := launchMobile(t, s, t.TempDir(), text)
	defer stop()
	const address = "[fe80::9]:514" // a link-local address of no link
	plan, err := plan.Make("test", []byte(text+"nat_log: {syslog: ['"+address+"']}\n"))
	testkit.Must(t, err)
	for range 2 {
		res, err := a.owner.Apply(t.Context(), plan)
		testkit.ErrorIf(t, err != nil || !strings.Contains(res.Note, address), "%+v %v", res, err)
	}
	rows := ask(a, "GET", "/v1/show/collector")
	for _, want := range []string{`"address":"` + address + `"`, `"state":"down"`} {
		testkit.ErrorIf(t, !strings.Contains(rows, want), "%s", rows)
	}
	told := ask(a, "GET", "/v1/events?kind=collector.down")
	testkit.Equal(t, strings.Count(told, "collector.down"), 1, "events in %s", told)
	list := a.sessions.Collectors()
	testkit.ErrorIf(t, len(list) != 1 || list[0].State != "down", "%+v", list)
}
