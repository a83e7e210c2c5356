// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

const users = `
anna Cleartext-Password := "pw"
	Framed-IP-Address = 100.64.0.7,
	Delegated-IPv6-Prefix = 2001:db8:aa00::/56,
	Framed-IPv6-Prefix = 2001:db8:1::/64,
	Framed-Pool = "homes",
	Session-Timeout = 3600,
	Class = 0x616263,
	WISPr-Bandwidth-Max-Down = 50000000,
	Cisco-AVPair = "subscriber:up=5Mbit/10Mbit",
	Filter-Id = "profile=gold",
	Port-Limit = 2,
	WISPr-Bandwidth-Min-Up = 64000,
	Framed-Compression = Van-Jacobson-TCP-IP,
	Reply-Message = "welcome"
User Cleartext-Password := "clientPass"
02:00:00:00:00:09 Cleartext-Password := "02:00:00:00:00:09", NAS-Port-Id == "a1:100.7", ` +
	`Chargeable-User-Identity == 0x00, ADSL-Agent-Circuit-Id == "olt1"
	Reply-Message = "by line"
broken Cleartext-Password := "pw"
	NAS-Filter-Rule = "deny in ip from any to any"
vpn Cleartext-Password := "pw"
	Tunnel-Type:1 = L2TP,
	Tunnel-Server-Endpoint:1 = 192.0.2.9
DEFAULT Auth-Type := Reject
	Reply-Message = "no contract"
`

func home() *access.Request {
	return &access.Request{Kind: access.PPPoE, PPPoE: 5, Service: "internet",
		Line: access.Line{Port: "a1", TPID: 0x88a8, STag: 100, CTag: 7, MAC: [6]byte{2, 0, 0, 0, 0, 9}},
		Agent: access.Agent{CircuitID: []byte("olt1"), RemoteID: []byte("modem"), Line: []byte{
			0x81, 4, 0, 0, 0x9c, 0x40, 0x85, 4, 0, 0x4c, 0x4b, 0x40,
			0x8c, 4, 0, 0, 0, 8, 0x90, 3, 1, 2, 0}}}
}

func with(c access.Credentials) *access.Request {
	r := home()
	r.Credentials = c
	return r
}

// A real server answers as we read it.
func TestFreeRADIUS(t *testing.T) {
	realServer(t, server(t, users, true), ", message_authenticator: anywhere")
}

// A server that signs with our defaults: the Message-Authenticator of every answer is valid and the first attribute.
func TestSigningFreeRADIUS(t *testing.T) {
	root, err := filepath.Abs(signing)
	testkit.Must(t, err)
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/freeradius")); err != nil {
		t.Skip("no FreeRADIUS of Debian's backports: ./dev setup")
	}
	realServer(t, start(t, users, false, root), "")
}

func realServer(t *testing.T, f *freeRADIUS, options string) {
	t.Helper()
	a := aaaOf(t, f.yaml(options), Options{})
	v := decide(t, a, with(pap("anna", "pw").Credentials))
	testkit.FatalIf(t, !v.Accept, "%s %+v", v.Why, a.State().Authentication)
	want := access.Plan{IPv4: netip.MustParseAddr("100.64.0.7"),
		Delegated: netip.MustParsePrefix("2001:db8:aa00::/56"),
		IPv6:      netip.MustParsePrefix("2001:db8:1::/64"), Pool4: "homes", SessionTimeout: time.Hour,
		Class: [][]byte{[]byte("abc")},
		Down:  access.Rate{CIR: 50_000}, Up: access.Rate{CIR: 5000, PIR: 10_000}, Profile: "gold", Max: 2}
	testkit.Equal(t, fmt.Sprintf("%+v", v.Plan), fmt.Sprintf("%+v", want), "plan")
	testkit.Equal(t, v.Message, "welcome", "message")
	testkit.Equal(t, fmt.Sprint(v.Left), "[{WISPr-Bandwidth-Min-Up }]", "left out")
	testkit.Equal(t, a.State().Ignored["WISPr-Bandwidth-Min-Up"], 1, "ignored")

	for _, row := range []struct {
		name string
		r    *access.Request
		why  string
	}{
		{"PAP, wrong", with(pap("anna", "no").Credentials), "refused by RADIUS"},
		{"PAP, long", with(pap("anna", strings.Repeat("x", 129)).Credentials), "User-Password has at most 128"},
		{"CHAP", with(byCHAP("anna", "pw").Credentials), ""},
		{"CHAP, wrong", with(byCHAP("anna", "no").Credentials), "refused by RADIUS"},
		{"MS-CHAPv2", with(exampleMSCHAP(t).Credentials), ""},
		{"unknown", with(pap("nobody", "pw").Credentials), "refused by RADIUS: no contract"},
		{"line", home(), ""},
		{"impossible", with(pap("broken", "pw").Credentials), "RADIUS: NAS-Filter-Rule: cannot be applied"},
		{"tunnel", with(pap("vpn", "pw").Credentials), "RADIUS: Tunnel-Type: a tunnel is not served"},
	} {
		v := decide(t, a, row.r)
		testkit.Equal(t, v.Accept, row.why == "", "%s: %s", row.name, v.Why)
		testkit.ErrorIf(t, !strings.Contains(v.Why, row.why), "%s: %s", row.name, v.Why)
		if row.name == "MS-CHAPv2" {
			testkit.Equal(t, v.Success, "S=407A5589115FD0D6209F510FE9C04566932CDA56", "success")
		}
	}
	wrong := exampleMSCHAP(t)
	wrong.Response[30] ^= 1
	v = decide(t, a, with(wrong.Credentials))
	testkit.ErrorIf(t, v.Accept || !strings.HasPrefix(v.Failure, "E=691"), "%+v", v)
	testkit.ErrorIf(t, v.Silent, "silent")
}

// A server that does not sign its answers is not believed, unless so configured (row B12).
func TestUnsignedServer(t *testing.T) {
	f := server(t, users, false)
	a := aaaOf(t, f.yaml(", timeout_ms: 500, tries: 2"), Options{})
	v := decide(t, a, with(pap("anna", "pw").Credentials))
	testkit.ErrorIf(t, v.Accept || !v.Silent, "%+v", v)
	testkit.ErrorIf(t, a.State().Authentication[0].Counters.Unsigned == 0, "%+v", a.State().Authentication)
	b := aaaOf(t, f.yaml(", message_authenticator: optional"), Options{})
	testkit.ErrorIf(t, !decide(t, b, with(pap("anna", "pw").Credentials)).Accept, "the opt-out has no effect")
}

// A server that hangs: the subscriber gets no answer, late answers are dropped, and Status-Server finds the server
// again.
func TestHangingServer(t *testing.T) {
	f := server(t, users, true)
	a := aaaOf(t,
		f.yaml(", message_authenticator: anywhere, timeout_ms: 50, tries: 2, status: 1, dead_time: 3600"),
		Options{})
	testkit.Must(t, f.process.Signal(syscall.SIGSTOP))
	v := decide(t, a, with(pap("anna", "pw").Credentials))
	testkit.ErrorIf(t, v.Accept || !v.Silent, "%+v", v)
	testkit.Equal(t, v.Why, "no RADIUS server answers; a wrong secret looks the same", "why")
	testkit.ErrorIf(t, a.State().Authentication[0].Alive, "alive")
	testkit.Must(t, f.process.Signal(syscall.SIGCONT))
	alive := func() bool { return a.State().Authentication[0].Alive }
	testkit.Until(t, "it is back", alive)
	s := a.State().Authentication[0].Counters
	testkit.ErrorIf(t, s.Late == 0 || s.ProbeAnswers == 0, "%+v", s)
	v = decide(t, a, with(pap("anna", "pw").Credentials))
	testkit.ErrorIf(t, !v.Accept, "%+v", v)
}

// RadSec: the same over TLS, with certificates on both sides.
func TestRadSec(t *testing.T) {
	f := server(t, users, true)
	a := aaaOf(t, f.tlsYAML(), Options{})
	for range 3 {
		v := decide(t, a, with(pap("anna", "pw").Credentials))
		testkit.FatalIf(t, !v.Accept, "%s %+v", v.Why, a.State().Authentication)
	}
	s := a.State().Authentication[0]
	testkit.Equal(t, s.Transport, "tls", "transport")
	testkit.Equal(t, s.Sockets, 1, "connections")
	testkit.Must(t, a.Account(sample(Start, "s1")))
	testkit.Until(t, "accounting over TLS", func() bool { return a.State().Queue.Sent == 1 })
}

func sample(kind Kind, session string) *Record {
	now := time.Now()
	r := &Record{Kind: kind, Session: session, At: now, Began: now.Add(-time.Hour), User: "anna", Request: home(),
		Addresses: access.Addresses{IPv4: netip.MustParseAddr("100.64.0.7"),
			IPv6:      netip.MustParsePrefix("2001:db8:1::/64"),
			Delegated: netip.MustParsePrefix("2001:db8:aa00::/56"), InterfaceID: 0x102},
		Class: [][]byte{[]byte("abc")}, CUI: []byte("me"), Cause: access.UserRequest,
		Total: Counters{UpBytes: 5<<32 + 7, DownBytes: 6<<32 + 8, UpPackets: 9, DownPackets: 10},
		V6:    Counters{UpBytes: 1<<32 + 1, DownBytes: 2, UpPackets: 3, DownPackets: 4}}
	if kind == On || kind == Off {
		r.Session, r.Request = "", nil
	}
	return r
}

// A real server writes what we accounted.
func TestAccountingFreeRADIUS(t *testing.T) {
	f := server(t, users, true)
	a := aaaOf(t, f.yaml(""), Options{})
	for _, kind := range []Kind{On, Start, Interim, Stop, Off} {
		testkit.Must(t, a.Account(sample(kind, "s1")))
		testkit.Until(t, kind.String(), func() bool { return a.State().Queue.Waiting == 0 })
	}
	got := f.detail()
	for _, want := range []string{"Acct-Status-Type = Accounting-On", "Acct-Status-Type = Start",
		"Acct-Status-Type = Interim-Update", "Acct-Status-Type = Stop", "Acct-Status-Type = Accounting-Off",
		"Acct-Authentic = RADIUS", "Acct-Session-Id = \"s1\"", "NAS-Identifier = \"bng-1\"",
		"NAS-IP-Address = 127.0.0.1",
		"NAS-Port-Type = PPPoEoQinQ", "NAS-Port-Id = \"a1:100.7\"", "NAS-Port = 409607",
		"Calling-Station-Id = \"02:00:00:00:00:09\"", "Acct-Session-Time = 3600", "Acct-Input-Octets = 7",
		"Acct-Input-Gigawords = 5", "Acct-Output-Octets = 8", "Acct-Output-Gigawords = 6",
		"Acct-Input-Packets = 9",
		"Acct-Output-Packets = 10", "ERX-IPv6-Acct-Input-Octets = 1", "ERX-IPv6-Acct-Input-Gigawords = 1",
		"Acct-Terminate-Cause = User-Request", "Class = 0x616263", "Chargeable-User-Identity = 0x6d65",
		"Framed-IP-Address = 100.64.0.7", "Framed-IPv6-Prefix = 2001:db8:1::/64",
		"Delegated-IPv6-Prefix = 2001:db8:aa00::/56", "Framed-Interface-Id = 0:0:0:102",
		"ADSL-Agent-Circuit-Id = 0x6f6c7431", "Actual-Data-Rate-Upstream = 40000000",
		"Attainable-Data-Rate-Upstream = 4294967295", "Actual-Interleaving-Delay-Upstream = 8",
		"Access-Loop-Encapsulation = 0x010200",
		"Attainable-Data-Rate-Upstream = 4294967295", "Event-Timestamp = \"", "Acct-Delay-Time = 0"} {
		testkit.ErrorIf(t, !strings.Contains(got, want), "no %s", want)
	}
	testkit.ErrorIf(t, t.Failed(), "%s", got)
}
