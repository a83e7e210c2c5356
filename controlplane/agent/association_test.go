// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
	"isthmus/lab/smf"
)

const mobileConfig = `
ports:
  - {name: n3, driver: synth, role: core}
  - {name: n6, driver: synth, role: core}
interfaces:
  - {name: n3, port: n3, addresses: [10.1.0.1/24]}
  - {name: n6, port: n6, addresses: [10.6.0.1/24]}
instances:
  - {name: access, interfaces: [n3], endpoints: [10.1.0.1], sources: [access]}
  - {name: internet, interfaces: [n6], lookup: destination, pools: [10.45.0.0/24], sources: [core]}
pfcp:
  listen: ["%s"]
  node_id: upf1.isthmus
  roles: [upf]
  peers: [{address: "%s", node_id: smf1.isthmus}]
  store: "%s"
`

// freePort is a port that is free at the moment.
func freePort(t *testing.T) netip.AddrPort {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func ask(a *Agent, method, path string) string {
	w := httptest.NewRecorder()
	a.api.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Body.String()
}

// A CP function associates and establishes a session. Another control plane process takes over and knows both.
// Releasing the association then deletes the session.
func TestMobileLife(t *testing.T) {
	s := dptest.Start(t)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	c := smf.New(smf.Options{Node: pfcp.NodeID{FQDN: "smf1.isthmus"}, Conn: conn})
	defer c.Close()
	n4, dir := freePort(t), t.TempDir()
	file := filepath.Join(dir, "upf.yaml")
	text := fmt.Sprintf(mobileConfig, n4, c.Address(), filepath.Join(dir, "sessions.db"))
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	opt := outside(s, t.TempDir())
	opt.File = file
	a, stop := restart(t, opt)
	static := len(s.Held())
	association, err := c.Associate(t.Context(), n4)
	testkit.Must(t, err)
	anchor := smf.Anchor{Access: "access", Core: "internet", UE: smf.UE{IPv4: netip.MustParseAddr("10.45.0.7")},
		Peer: &pfcp.FTEID{TEID: 9, IPv4: netip.MustParseAddr("10.1.0.9")}}
	session, err := association.Establish(t.Context(), anchor.Request(), nil)
	testkit.Must(t, err)
	testkit.ErrorIf(t, session.UP().IPv4 != n4.Addr(), "UP F-SEID %+v", session.UP())
	held := len(s.Held())
	testkit.FatalIf(t, held <= static, "the data plane holds no session")
	for path, want := range map[string]string{
		"/v1/show/association":          `"id":"smf1.isthmus"`,
		"/v1/show/n4":                   `"session-establishment-request":1`,
		"/v1/show/association?key=smf9": `[]`,
	} {
		if got := ask(a, "GET", path); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	p := a.scraper.Snapshot(t.Context()).PFCP
	testkit.ErrorIf(t, p == nil || p.Associations != 1 || p.Sessions != 1 || len(p.Answers) != 2, "metrics: %+v", p)
	recovery := association.Recovery()
	stop()

	commits, _ := s.Counts()
	a, stop = restart(t, opt)
	defer stop()
	if after, _ := s.Counts(); len(s.Held()) != held || after > commits+1 {
		t.Errorf("%d objects held, %d before; %d transactions", len(s.Held()), held, after-commits)
	}
	if err := association.Beat(t.Context()); err != nil || !association.Recovery().Equal(recovery) {
		t.Errorf("heartbeat after the restart: %v, time stamp %v, before %v", err, association.Recovery(), recovery)
	}
	if got := ask(a, "POST", "/v1/association/release?id=smf9"); !strings.Contains(got, "error") {
		t.Errorf("release of nobody: %s", got)
	}
	if got := ask(a, "POST", "/v1/association/release?id=smf1.isthmus&graceful=1"); strings.Contains(got, "error") {
		t.Errorf("release: %s", got)
	}
	testkit.Until(t, "association gone", func() bool { return ask(a, "GET", "/v1/show/association") == "[]\n" })
	testkit.Until(t, "session gone", func() bool { return a.sessions.Manager.Count("") == 0 })

	_, err = c.Associate(t.Context(), n4)
	testkit.Must(t, err)
	testkit.ErrorIf(t, !strings.Contains(ask(a, "GET", "/v1/status"), `"associations":1,`), "%s",
		ask(a, "GET", "/v1/status"))
	got := ask(a, "POST", "/v1/drain?graceful=1")
	testkit.ErrorIf(t, !strings.Contains(got, `"associations":[{"id":"smf1.isthmus","state":"released"}],"sessions":0`),
		"a drain: %s", got)
	_, err = c.Associate(t.Context(), n4)
	testkit.ErrorIf(t, err == nil, "an association with a drained user plane")
	is := a.owner.Status().Drain
	testkit.ErrorIf(t, is.Since.IsZero() || !is.Associations || is.SignIns || is.Announced, "%+v", is)
	testkit.ErrorIf(t, strings.Contains(ask(a, "POST", "/v1/resume"), "error"), "no resume")
	_, err = c.Associate(t.Context(), n4)
	testkit.Must(t, err)
	for _, query := range []string{"graceful=no", "graceful=91"} {
		got := ask(a, "POST", "/v1/drain?"+query)
		testkit.ErrorIf(t, !strings.Contains(got, "error"), "%s: %s", query, got)
	}
}

func TestReleaseWithoutPFCP(t *testing.T) {
	s := dptest.Start(t)
	plan, err := plan.Make("x", []byte(small))
	testkit.Must(t, err)
	a := launch(t, s, plan)
	for _, query := range []string{"id=x", "id=x&graceful=no", "id=x&graceful=4000000000"} {
		got := ask(a, "POST", "/v1/association/release?"+query)
		testkit.ErrorIf(t, !strings.Contains(got, "error"), "%s: %s", query, got)
	}
}
