// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// owner is one session, as the owner of sessions knows it.
type owner struct {
	mu   sync.Mutex
	plan access.Plan
	gone bool
	log  []string
}

var ownerAddresses = access.Addresses{IPv4: netip.MustParseAddr("100.64.0.7"),
	IPv6: netip.MustParsePrefix("2001:db8:1::/64")}

func (o *owner) matches(s *Selector) bool {
	return (s.Instance == "" || s.Instance == "red") &&
		s.Matches(&home().Line, "s1", "anna", &ownerAddresses, []byte("me"))
}

func (o *owner) Disconnect(s *Selector, done Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.matches(s) {
		done(NoSession, "")
		return
	}
	o.gone = true
	go done(OK, "")
}

func (o *owner) Change(s *Selector, c *Change, done Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.matches(s) {
		done(NoSession, "")
		return
	}
	plan := o.plan
	if _, err := c.Apply(&plan, &ownerAddresses); err != nil {
		o.log = append(o.log, err.Error())
		done(ResultOf(err), err.Error())
		return
	}
	o.plan = plan
	go done(OK, "")
}

func coa(t testing.TB, o *owner) (*AAA, string) {
	t.Helper()
	return coaWith(t, o, "", nil)
}

// coaWith has more keys of radius.coa.
func coaWith(t testing.TB, o *owner, keys string, notify func(kind, about string, fields ...any)) (*AAA, string) {
	t.Helper()
	port := freePort(t)
	a := aaaOf(t, fmt.Sprintf(`radius:
  nas: {identifier: bng-1, address: 127.0.0.1}
  coa: {listen: ["127.0.0.1:%d"], clients: [{address: 127.0.0.0/8, secret: %s}]%s}
`, port, sharedSecret, keys), Options{Sessions: o, Notify: notify})
	return a, fmt.Sprint("127.0.0.1:", port)
}

// radclient sends a request with FreeRADIUS' program, and returns what it printed.
func radclient(t testing.TB, to, kind, attributes string) string {
	t.Helper()
	if _, err := exec.LookPath("radclient"); err != nil {
		t.Skip("radclient is not installed: ./dev setup")
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "radclient", "-x", "-r", "2", "-t", "20", to, kind, sharedSecret)
	cmd.Stdin = strings.NewReader(attributes)
	out, _ := cmd.CombinedOutput() // a NAK is an error to it
	return string(out)
}

// A real client's requests are carried out, or refused with the right Error-Cause (RFC 5176, row B15).
func TestRadclient(t *testing.T) {
	o := &owner{}
	_, to := coa(t, o)
	now := fmt.Sprintf(", Event-Timestamp = %d", time.Now().Unix())
	for _, row := range []struct{ kind, attributes, want string }{
		{"coa", `Acct-Session-Id = "s1", Cisco-AVPair = "subscriber:up=1Mbit"`, "Received CoA-ACK"},
		{"coa", `User-Name = "anna", Framed-IP-Address = 100.64.0.7, WISPr-Bandwidth-Max-Down = 2000000`,
			"Received CoA-ACK"},
		{"coa", `Framed-IPv6-Prefix = 2001:db8:1::/64, Session-Timeout = 60`, "Received CoA-ACK"},
		{"coa", `NAS-Port-Id = "a1:100.7", NAS-Port = 409607, Calling-Station-Id = "02-00-00-00-00-09",
Idle-Timeout = 60`,
			"Received CoA-ACK"},
		{"coa", `Chargeable-User-Identity = "me", NAS-Identifier = "bng-1", NAS-IP-Address = 127.0.0.1,
Filter-Id = "strict.in"`,
			"Received CoA-ACK"},
		// Attributes that policies add to a good change: ignored, or part of the session's identity.
		{"coa", `Acct-Session-Id = "s1", Called-Station-Id = "isp", NAS-Port-Type = PPPoEoQinQ, Class = 0x61,
Service-Type = Framed-User, Framed-Protocol = PPP, Framed-IP-Netmask = 255.255.255.255, State = 0x62,
Acct-Multi-Session-Id = "m", Idle-Timeout = 60`, "Received CoA-ACK"},
		{"coa", `Acct-Session-Id = "s1", Called-Station-Id = "isp", Framed-Protocol = PPP`,
			"Error-Cause = Missing-Attribute"},
		{"coa", `Acct-Session-Id = "s2", Session-Timeout = 60`, "Error-Cause = Session-Context-Not-Found"},
		{"coa", `Acct-Session-Id = "s1", Calling-Station-Id = "02-00-00-00-00-08", Session-Timeout = 60`,
			"Error-Cause = Session-Context-Not-Found"},
		{"coa", `Acct-Session-Id = "s1", NAS-Identifier = "other", Session-Timeout = 60`,
			"Error-Cause = NAS-Identification-Mismatch"},
		{"coa", `Acct-Session-Id = "s1", NAS-IP-Address = 192.0.2.1, Session-Timeout = 60`,
			"Error-Cause = NAS-Identification-Mismatch"},
		{"coa", `Acct-Session-Id = "s1", Tunnel-Type = L2TP`, "Error-Cause = Unsupported-Attribute"},
		{"coa", `Acct-Session-Id = "s1", Cisco-AVPair = "subscriber:up=quick"`,
			"Error-Cause = Invalid-Attribute-Value"},
		{"coa", `Acct-Session-Id = "s1", Service-Type = Authorize-Only`, "Error-Cause = Unsupported-Service"},
		{"coa", `Acct-Session-Id = "s1"`, "Error-Cause = Missing-Attribute"},
		{"coa", `Session-Timeout = 60`, "Error-Cause = Missing-Attribute"},
		{"coa", `NAS-Port = 0, Session-Timeout = 60`, "Error-Cause = Missing-Attribute"},
		{"disconnect", `Acct-Session-Id = "s1", Session-Timeout = 60`, "Error-Cause = Unsupported-Attribute"},
		{"disconnect", `Cisco-AVPair = "subscriber:instance=red"`, "Error-Cause = Missing-Attribute"},
		{"disconnect", `Framed-IP-Address = 100.64.0.7, Cisco-AVPair = "subscriber:instance=blue"`,
			"Error-Cause = Session-Context-Not-Found"},
		{"disconnect", `Framed-IP-Address = 100.64.0.7, Cisco-AVPair = "subscriber:up=1Mbit"`,
			"Error-Cause = Unsupported-Attribute"},
		{"disconnect", `Framed-IP-Address = 100.64.0.7, Cisco-AVPair = "subscriber:instance=red"`,
			"Received Disconnect-ACK"},
		{"coa", `Framed-IP-Address = 100.64.0.7, Session-Timeout = 60, Cisco-AVPair = "subscriber:instance=blue"`,
			"Error-Cause = Session-Context-Not-Found"},
		{"disconnect", `Acct-Session-Id = "s9"`, "Error-Cause = Session-Context-Not-Found"},
		{"disconnect", `Acct-Session-Id = "s1", Acct-Terminate-Cause = Admin-Reset, Called-Station-Id = "isp",
NAS-Port-Type = PPPoEoQinQ, Class = 0x61, Service-Type = Framed-User`, "Received Disconnect-ACK"},
	} {
		out := radclient(t, to, row.kind, row.attributes+now)
		testkit.ErrorIf(t, !strings.Contains(out, row.want), "%s %s: no %s in %s", row.kind, row.attributes,
			row.want, out)
	}
	out := radclient(t, to, "coa", `Acct-Session-Id = "s1", Session-Timeout = 60`)
	testkit.ErrorIf(t, !strings.Contains(out, "Error-Cause = Missing-Attribute"), "without Event-Timestamp: %s",
		out)
	o.mu.Lock()
	defer o.mu.Unlock()
	want := access.Plan{Up: access.Rate{CIR: 1000}, Down: access.Rate{CIR: 2000}, SessionTimeout: time.Minute,
		IdleTimeout: time.Minute, ACLUp: "strict", Class: [][]byte{[]byte("a")}}
	testkit.Equal(t, fmt.Sprintf("%+v", o.plan), fmt.Sprintf("%+v", want), "plan")
	testkit.ErrorIf(t, !o.gone, "it is still there")
}

// Each request that is not carried out is published with the reason; with the key that the reason names it is accepted.
func TestRefusedChangesAreTold(t *testing.T) {
	var lock sync.Mutex
	var told []string
	notify := func(kind, about string, fields ...any) {
		lock.Lock()
		defer lock.Unlock()
		told = append(told, fmt.Sprint(kind, " ", about, " ", fields))
	}
	o := &owner{}
	_, to := coaWith(t, o, "", notify)
	now := fmt.Sprintf(", Event-Timestamp = %d", time.Now().Unix())
	for i, row := range []struct{ attributes, want string }{
		{`User-Name = "anna", Session-Timeout = 60`,
			"user anna session  cause 402 why without Event-Timestamp: radius.coa.event_timestamp"},
		{`Acct-Session-Id = "s9", Session-Timeout = 60` + now, "session s9 cause 503 why no such session"},
		{`Acct-Session-Id = "s1", Cisco-AVPair = "subscriber:up=x"` + now,
			`session s1 cause 407 why Cisco-AVPair: subscriber:up: "x" is no rate`},
		{`Acct-Session-Id = "s1", NAS-Identifier = "other"` + now, `cause 403 why for NAS "other"`},
		{`Acct-Session-Id = "s1", Tunnel-Type = L2TP` + now, "cause 401 why Tunnel-Type: a tunnel"},
	} {
		radclient(t, to, "coa", row.attributes)
		lock.Lock()
		testkit.FatalIf(t, len(told) != i+1, "%s: %v", row.attributes, told)
		is := strings.HasPrefix(told[i], "radius.change-refused 127.0.0.0/8 [from 127.0.0.1 request CoA-Req")
		testkit.ErrorIf(t, !is || !strings.Contains(told[i], row.want), "%s: %s", row.attributes, told[i])
		lock.Unlock()
	}
	_, to = coaWith(t, o, ", event_timestamp: optional", notify)
	out := radclient(t, to, "coa", `User-Name = "anna", Session-Timeout = 60`)
	testkit.ErrorIf(t, !strings.Contains(out, "Received CoA-ACK"), "%s", out)
}

// Another configuration: clients and addresses change, and a wrong one leaves all as it was.
func TestReplace(t *testing.T) {
	o := &owner{}
	a, to := coa(t, o)
	old := a.now.Load()
	broken := *old.config
	broken.AAA.Methods = []string{"local"}
	broken.AAA.UsersFile = "/nowhere"
	_, err := a.Prepare(&broken)
	testkit.Refused(t, err, "aaa.users_file")
	testkit.ErrorIf(t, a.now.Load() != old, "it was taken")
	out := radclient(t, to, "disconnect", fmt.Sprintf(`User-Name = "anna", Event-Timestamp = %d`,
		time.Now().Unix()))
	testkit.ErrorIf(t, !strings.Contains(out, "Received Disconnect-ACK"), "%s", out)
	none := *old.config
	none.RADIUS.CoA.Listen = nil
	take(t, a, &none)
	testkit.Equal(t, len(a.changes.server.Addresses()), 0, "addresses")
}
