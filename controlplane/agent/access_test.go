// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/subscriber"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/trace"
)

const signingIn = `
pools: [{name: homes, instance: internet, prefix: 10.64.0.0/30}]
radius: {servers: [{name: one, address: 127.0.0.1, secret: example-only, use: accounting,
  timeout_ms: 10, tries: 1}]}
access:
  ports: [{port: access, pppoe: true, ipoe: true}]
  profiles: [{name: home, instance: internet, pool_ipv4: homes, max_sessions: 1}]
`

type homeClient struct{ ended chan access.Cause }

func (c *homeClient) Ended(cause access.Cause) { c.ended <- cause }
func (c *homeClient) Replanned()               {}
func (c *homeClient) Silent()                  {}

// dial accepts a subscriber whose addresses are not negotiated yet; nil: refused.
func dial(t *testing.T, a *Agent, user string, n byte) (*homeClient, access.Session) {
	t.Helper()
	c, answer := &homeClient{make(chan access.Cause, 4)}, make(chan access.Session, 1)
	loop := a.sessions.SignIns.Loop
	loop.Post(func() {
		r := &access.Request{Kind: access.PPPoE, PPPoE: uint16(n), Line: access.Line{Port: "access",
			MAC: [6]byte{2, 5: n}},
			Credentials: access.Credentials{Method: access.PAP,
				User: user}, Wants: access.Families{V4: true}}
		loop.SignIn(r, c, func(s access.Session, _ *access.Verdict) { answer <- s })
	})
	return c, testkit.Receive(t, answer)
}

// agree brings an accepted subscriber's session up.
func agree(t *testing.T, a *Agent, s access.Session) (id string) {
	t.Helper()
	answer := make(chan string, 1)
	a.sessions.SignIns.Loop.Post(func() {
		s.Up(access.Families{V4: true}, 1492, access.KeepAlive{}, func(error) {
			s.Keep([]byte("x"))
			answer <- s.(*subscriber.Subscriber).ID()
		})
	})
	return testkit.Receive(t, answer)
}

// dialIn signs a subscriber in until it is up; "": refused.
func dialIn(t *testing.T, a *Agent, user string, n byte) (c *homeClient, id string) {
	t.Helper()
	c, s := dial(t, a, user, n)
	if s == nil {
		return c, ""
	}
	return c, agree(t, a, s)
}

// traces holds a trace's choice of a subscriber, or the reason for none.
func traces(t *testing.T, a *Agent, of, session, why string) {
	t.Helper()
	q := trace.Query{Subscriber: of}
	err := a.api.Tracer.SessionOf(&q)
	testkit.ErrorIf(t, q.Session != session || (why == "") != (err == nil), "%s: %+v, %v", of, q, err)
	testkit.ErrorIf(t, err != nil && !strings.Contains(err.Error(), why), "%s: %v", of, err)
}

func TestSubscribersSignIn(t *testing.T) {
	s := dptest.Start(t)
	dir := t.TempDir()
	a, stop := launchMobile(t, s, dir, upf+instances+signingIn) // without PFCP
	ask := func(path string) string {
		w := httptest.NewRecorder()
		a.api.Handler().ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		return w.Body.String()
	}
	anna, id := dialIn(t, a, "anna", 1)
	up := told(t, a, "subscriber.up")
	testkit.ErrorIf(t, id == "" || len(up) != 1 || up[0].Subject != "anna" || up[0].Fields["ipv4"] != "10.64.0.1",
		"%q %+v", id, up)
	_, bob := dial(t, a, "bob", 2)
	q := trace.Query{Session: a.api.Tables.Subscribers("bob", 0)[0].Object}
	testkit.Refused(t, a.api.Tracer.SessionOf(&q), `subscriber "bob" is starting: `)
	traces(t, a, "bob", q.Session, `subscriber "bob" is starting: `)
	agree(t, a, bob)
	rows := a.api.Tables.Subscribers(q.Session, 0)
	testkit.ErrorIf(t, len(rows) != 1 || rows[0].User != "bob", "by session object: %+v", rows)
	testkit.ErrorIf(t, len(told(t, a, "pool.watermark")) == 0, "the pool is full, and nobody says so")
	_, id = dialIn(t, a, "carl", 3)
	refused := told(t, a, "subscriber.refused")
	testkit.ErrorIf(t, id != "" || len(refused) != 1 || refused[0].Fields["reason"] != "address", "%+v", refused)
	rows = a.api.Tables.Subscribers("anna", 0)
	testkit.ErrorIf(t, len(rows) != 1 || rows[0].IPv4 != "10.64.0.1" || len(rows[0].Attempts) != 1, "%+v", rows)
	rows = a.api.Tables.Subscribers("carl", 0)
	testkit.ErrorIf(t, len(rows) != 1 || rows[0].State != "away" || rows[0].Attempts[0].Why == "", "%+v", rows)
	object, line := a.api.Tables.Subscribers("anna", 0)[0].Object, a.api.Tables.Subscribers("anna", 0)[0].Line
	for _, of := range []string{"anna", "02:00:00:00:00:01", "10.64.0.1"} {
		traces(t, a, of, object, "")
	}
	traces(t, a, line, "", " names 2 sessions; choose one by --session, such as "+object)
	traces(t, a, "carl", "", "is away and has no session; the last attempt to sign in: pool ")
	traces(t, a, "dora", "", `there is no subscriber "dora"`)
	testkit.ErrorIf(t, a.scraper.Snapshot(t.Context()).SignIns.SignedIn[0].Value != 2, "%+v",
		a.scraper.Snapshot(t.Context()).SignIns)
	f := a.scraper.Snapshot(t.Context()).SignIns
	testkit.ErrorIf(t, len(f.Protocol) == 0 || len(f.Changes) == 0 || len(f.AccountingDropped) == 0, "%+v", f)

	testkit.ErrorIf(t, !strings.Contains(ask("/v1/subscriber/clear?subscriber=nobody"), "no subscriber"),
		"nobody is cleared")
	testkit.ErrorIf(t, !strings.Contains(ask("/v1/subscriber/clear?subscriber=anna&cause=x"), "none of"),
		"a cause of no name")
	testkit.Equal(t, strings.TrimSpace(ask("/v1/subscriber/clear?subscriber=anna")), `{"ended":1}`, "cleared")
	testkit.Equal(t, testkit.Receive(t, anna.ended), access.AdminReset, "cause")
	testkit.Until(t, "anna's end", func() bool { return len(told(t, a, "subscriber.down")) == 1 })
	testkit.Equal(t, len(told(t, a, "subscriber.cleared")), 3, "clearings")

	plan, err := plan.Make("new.yaml", []byte(upf+instances+strings.Replace(signingIn, "max_sessions: 1",
		"quota: 5", 1)))
	testkit.Must(t, err)
	_, err = a.owner.Apply(t.Context(), plan)
	testkit.Must(t, err)
	testkit.Until(t, "the quota of a new profile", func() bool {
		var quota uint64
		loop := a.sessions.SignIns.Loop
		loop.Ask(t.Context(), func() { quota = loop.Rows("bob")[0].Quota })
		return quota == 5
	})

	var gone v1.Drained // On, two starts, two stops, Off
	testkit.Must(t, json.Unmarshal([]byte(ask("/v1/drain")), &gone))
	testkit.Equal(t, fmt.Sprintf("%+v", gone), fmt.Sprintf("%+v", v1.Drained{SignIn: true, Ended: 1, Accounting: 6,
		File: store.AccountsPath(dir + "/sessions.db"), Associations: []v1.DrainedAssociation{}}), "drained")
	testkit.Equal(t, len(told(t, a, "gateway.drained")), 1, "events")
	is := a.owner.Status().Drain
	testkit.ErrorIf(t, is.Since.IsZero() || !is.SignIns || is.Announced, "%+v", is)
	testkit.Until(t, "the pool empty", func() bool { return a.api.Tables.AddressPools()[0].Used == 0 })
	_, late := dialIn(t, a, "late", 4)
	testkit.Equal(t, late, "", "who comes after that")
	stop()
	a, _ = launchMobile(t, s, dir, upf+instances+signingIn)
	testkit.Equal(t, a.sessions.SignIns.AAA.State().Queue.Restored, 6, "records that another start finds")
}

// Servers of a newly applied configuration are asked at once, of both families: requests leave from the listening
// sockets. The sockets go with them.
func TestUpstreamSockets(t *testing.T) {
	s := dptest.Start(t)
	a, stop := launchMobile(t, s, t.TempDir(), upf+instances+signingIn)
	defer stop()
	in, dhcp := a.sessions.SignIns, config.AccessDHCP{}
	apply := func() error {
		plan, err := plan.Make("new.yaml", []byte(upf+instances+signingIn))
		testkit.Must(t, err)
		d := &plan.SignIn.Access.DHCP
		d.Address, d.Servers, d.Address6, d.Servers6 = dhcp.Address, dhcp.Servers, dhcp.Address6, dhcp.Servers6
		res, err := a.owner.Apply(t.Context(), plan)
		testkit.Equal(t, res.Note, "", "note")
		return err
	}
	ours := []*net.UDPAddr{{IP: net.IPv4(127, 83, 67, 1), Port: 67}, {IP: net.IPv6loopback, Port: 547}}
	for i, from := range ours {
		server, err := net.ListenUDP("udp", &net.UDPAddr{IP: from.IP})
		testkit.Must(t, err)
		defer server.Close()
		at := server.LocalAddr().(*net.UDPAddr).AddrPort()
		at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
		address, servers := &dhcp.Address, &dhcp.Servers
		if i == 1 {
			address, servers = &dhcp.Address6, &dhcp.Servers6
		}
		*servers = make([]config.Collector, 1)
		testkit.Must(t, address.UnmarshalText([]byte(from.IP.String())))
		testkit.Must(t, (*servers)[0].UnmarshalText([]byte(at.String())))
		testkit.Until(t, "a socket that is another's", func() bool { // a test's that runs beside this one
			err := apply()
			if errors.Is(err, os.ErrPermission) {
				t.Skip(err)
			}
			return err == nil
		})
		testkit.Must(t, in.Loop.Ask(t.Context(), func() {
			send := in.DHCP.Upstream
			if i == 1 {
				send = in.DHCP.Upstream6
			}
			testkit.ErrorIf(t, send == nil, "nothing sends")
			if send != nil {
				send(at, []byte("asked"))
			}
		}))
		testkit.Must(t, server.SetReadDeadline(time.Now().Add(testkit.Limit)))
		b := make([]byte, 16)
		n, came, err := server.ReadFromUDP(b)
		testkit.Must(t, err)
		testkit.Equal(t, string(b[:n]), "asked", "sent")
		testkit.Equal(t, came.String(), from.String(), "from")
		_, err = server.WriteToUDP([]byte("no answer"), came)
		testkit.Must(t, err)
	}
	testkit.Until(t, "both to be counted", func() (both bool) {
		testkit.Must(t, in.Loop.Ask(t.Context(), func() { both = in.DHCP.Counts()[0].Value == 2 })) // malformed
		return both
	})
	dhcp = config.AccessDHCP{}
	testkit.Must(t, apply())
	for _, from := range ours {
		testkit.Until(t, "a socket that is free", func() bool {
			free, err := net.ListenUDP("udp", from)
			if err == nil {
				free.Close()
			}
			return err == nil
		})
	}
}

func TestNobodySignsIn(t *testing.T) {
	s := dptest.Start(t)
	a, _ := launchMobile(t, s, t.TempDir(), upf)
	w := httptest.NewRecorder()
	a.api.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/drain", nil))
	testkit.ErrorIf(t, w.Code != 200 || !strings.Contains(w.Body.String(), `"sign_in":false`), "%s", w.Body)
	w = httptest.NewRecorder()
	a.api.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/resume", nil))
	testkit.ErrorIf(t, w.Code != 200 || !a.owner.Status().Drain.Since.IsZero(), "a resume: %s", w.Body)
	testkit.Equal(t, len(told(t, a, "gateway.resumed")), 1, "events of a resume")
	plan, err := plan.Make("new.yaml", []byte(upf+instances+signingIn))
	testkit.Must(t, err)
	res, err := a.owner.Apply(t.Context(), plan)
	testkit.ErrorIf(t, err != nil || !strings.Contains(res.Note, "access:"), "%+v %v", res, err)
}

func TestCauses(t *testing.T) {
	for _, word := range subscriber.Causes() {
		c, ok := subscriber.CauseOf(word)
		testkit.ErrorIf(t, !ok || subscriber.CauseText(c) != word, "%s", word)
	}
}
