// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/ppp/chap"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/testkit"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	testkit.Must(t, err)
	return b
}

// RFC 2759 §9.2.
func exampleMSCHAP(t testing.TB) *access.Request {
	response := unhex(t, "21402324255E262A28295F2B3A337C7E")
	response = append(response, make([]byte, 8)...)
	response = append(response, unhex(t, "82309ECD8D708B5EA08FAA3981CD83544233114A3D85D6DF")...)
	return &access.Request{Credentials: access.Credentials{Method: access.MSCHAPv2, User: "User",
		Challenge: unhex(t, "5B5D7C7D7B3F2F3E3C2C602132262628"), Response: append(response, 0)}}
}

func TestMSCHAPVector(t *testing.T) {
	u := &config.User{Password: "clientPass"}
	for _, name := range []string{"User", `DOMAIN\User`} {
		r := exampleMSCHAP(t)
		r.User = name
		success, err := checkMSCHAP(u, r)
		testkit.Must(t, err)
		testkit.Equal(t, success, "S=407A5589115FD0D6209F510FE9C04566932CDA56", "success")
		r.Challenge = r.Challenge[1:]
		_, err = checkMSCHAP(u, r)
		testkit.ErrorIf(t, err == nil, "a challenge of 15 octets is taken")
	}
}

func aaaOf(t testing.TB, yaml string, o Options) *AAA {
	t.Helper()
	c, err := config.Parse("x.yaml", []byte("ports: []\n"+yaml))
	testkit.Must(t, err)
	a, err := New(c, o)
	testkit.Must(t, err)
	t.Cleanup(func() { a.Close(t.Context()) })
	return a
}

func decide(t testing.TB, a *AAA, r *access.Request) *access.Verdict {
	t.Helper()
	ch := make(chan *access.Verdict, 2)
	a.Authenticate(r, "s1", func(v *access.Verdict) { ch <- v })
	return testkit.Receive(t, ch)
}

func pap(user, password string) *access.Request {
	return &access.Request{Credentials: access.Credentials{Method: access.PAP, User: user,
		Password: []byte(password)}}
}

func byCHAP(user, password string) *access.Request {
	challenge := []byte("challenge of ours")
	sum := md5.Sum(append(append([]byte{7}, password...), challenge...))
	return &access.Request{Credentials: access.Credentials{Method: access.CHAP, User: user, Identifier: 7,
		Challenge: challenge, Response: sum[:]}}
}

func TestLocal(t *testing.T) {
	salt := []byte("sixteen bytes...")
	argon := fmt.Sprintf("$argon2id$v=19$m=64,t=1,p=1$%s$%s", base64.RawStdEncoding.EncodeToString(salt),
		base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte("pw"), salt, 1, 64, 1, 32)))
	crypt, err := bcrypt.GenerateFromPassword([]byte("pw"), bcrypt.MinCost)
	testkit.Must(t, err)
	nt := chap.NTHash("pw")
	a := aaaOf(t, fmt.Sprintf(`aaa:
  methods: [local]
  name: "{port}"
  users:
    - {name: plain, password: pw, profile: gold, ipv4: 100.64.0.9, ipv6: 2001:db8::/64, delegated: 2001:db8:100::/56,
       framed_routes: [10.9.0.0/24, "2001:db8:9::/48"]}
    - {name: argon, password_hash: "%s"}
    - {name: bcrypt, password_hash: "%s"}
    - {name: nt, nt_password_hash: %x}
    - {name: User, password: clientPass}
    - {name: none}
    - {name: access-1}
`, argon, crypt, nt), Options{})
	wrong := exampleMSCHAP(t)
	wrong.Response[30] ^= 1
	unknown := exampleMSCHAP(t)
	unknown.User = "nobody"
	short := exampleMSCHAP(t)
	short.Response = short.Response[:48]
	for _, row := range []struct {
		name string
		r    *access.Request
		why  string // empty: accepted
	}{
		{"PAP", pap("plain", "pw"), ""},
		{"PAP, wrong", pap("plain", "pW"), "wrong password"},
		{"PAP, argon2id", pap("argon", "pw"), ""},
		{"PAP, argon2id, wrong", pap("argon", "p"), "wrong password"},
		{"PAP, bcrypt", pap("bcrypt", "pw"), ""},
		{"PAP, bcrypt, wrong", pap("bcrypt", ""), "wrong password"},
		{"PAP, NT hash", pap("nt", "pw"), ""},
		{"PAP, NT hash, wrong", pap("nt", "x"), "wrong password"},
		{"PAP, no password", pap("none", ""), "the user has no password"},
		{"PAP, unknown", pap("nobody", ""), "unknown user"},
		{"no name", pap("", "pw"), "a user name of 0 bytes: 1 to 253"},
		{"CHAP", byCHAP("plain", "pw"), ""},
		{"CHAP, wrong", byCHAP("plain", "x"), "wrong password"},
		{"CHAP, hash", byCHAP("argon", "pw"),
			"the user's password is kept in a form that CHAP cannot be checked with"},
		{"MS-CHAPv2", exampleMSCHAP(t), ""},
		{"MS-CHAPv2, wrong", wrong, "wrong password"},
		{"MS-CHAPv2, unknown", unknown, "unknown user"},
		{"MS-CHAPv2, short", short, "wrong password"},
		{"line", &access.Request{Line: access.Line{Port: "access-1"}}, ""},
		{"line, unknown", &access.Request{Line: access.Line{Port: "access-2"}}, "unknown user"},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := decide(t, a, row.r)
			testkit.Equal(t, v.Why, row.why, "why")
			testkit.Equal(t, v.Accept, row.why == "", "accepted")
			testkit.Equal(t, v.Success != "", v.Accept && row.r.Method == access.MSCHAPv2, "success text")
			testkit.Equal(t, v.Failure != "", !v.Accept && row.r.Method == access.MSCHAPv2, "failure text")
		})
	}
	v := decide(t, a, pap("plain", "pw"))
	testkit.Equal(t, v.Plan.Profile, "gold", "profile")
	testkit.Equal(t, v.Plan.Delegated.String(), "2001:db8:100::/56", "delegated")
	testkit.Equal(t, fmt.Sprint(v.Plan.Routes), "[10.9.0.0/24 2001:db8:9::/48]", "framed routes")
}

// Every subscriber is accepted, under a name made of the line.
func TestAccept(t *testing.T) {
	a := aaaOf(t, `aaa: {name: "{port}:{svlan}.{cvlan}/{mac}/{circuit}/{remote}/{host}"}`, Options{})
	r := &access.Request{Kind: access.IPoE4, Line: access.Line{Port: "a1", STag: 100, CTag: 7, MAC: [6]byte{2, 0,
		0, 0, 0, 9}},
		Agent: access.Agent{CircuitID: []byte("olt1 0/1"), RemoteID: []byte{0, 1, 0xff}}, HostName: "tv"}
	testkit.Equal(t, a.UserName(r), "a1:100.7/02:00:00:00:00:09/olt1 0/1/0001ff/tv", "name")
	testkit.ErrorIf(t, !decide(t, a, r).Accept, "refused")
	testkit.ErrorIf(t, !decide(t, a, pap("x", "y")).Accept, "PAP was refused")
	testkit.ErrorIf(t, decide(t, a, exampleMSCHAP(t)).Accept, "MS-CHAPv2 was accepted without its password")
	testkit.Equal(t, a.State().Accepted, 2, "accepted")
}

// Acct-Authentic is the method that accepted the subscriber, whatever else is configured (RFC 2866 §5.6).
func TestWhoAuthenticated(t *testing.T) {
	for _, row := range []struct {
		methods, user string
		want          uint32
	}{{"[local, radius]", "known", 2}, {"[local, radius]", "other", 1}, {"[local, accept]", "other", 2}} {
		a := aaaOf(t, answering(t, &radius.Packet{Code: radius.AccessAccept}, row.methods), Options{})
		v := decide(t, a, pap(row.user, "pw"))
		testkit.ErrorIf(t, !v.Accept, "%s %s: %s", row.methods, row.user, v.Why)
		r := sample(Start, "s1")
		r.Local = v.Plan.Local
		one, err := encode(r, a.now.Load())
		testkit.Must(t, err)
		p, err := one.packet()
		testkit.Must(t, err)
		got := radius.Attribute{Type: radius.AcctAuthentic, Value: p.Get(radius.AcctAuthentic)}
		n, _ := got.Uint32()
		testkit.Equal(t, n, row.want, "%s by %s", row.user, row.methods)
	}
}
