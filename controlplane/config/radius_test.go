// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

func TestRADIUS(t *testing.T) {
	c := mustParse(t, base+`radius:
  servers: [{address: 10.0.0.9, secret: hush}]
  coa: {listen: [10.0.0.1, "[2001:db8::1]:4000"], clients: [{address: 10.0.0.0/24, secret: hush}]}
aaa: {methods: [local, radius], users: [{name: a, password: hush}]}
`)
	s := c.RADIUS.Servers[0]
	testkit.Equal(t, s.Policy, "required", "policy")
	testkit.Equal(t, string(s.Secret), "hush", "secret")
	testkit.Equal(t, c.RADIUS.NAS.Identifier, "isthmus", "identifier")
	testkit.Equal(t, c.RADIUS.CoA.Listen[0].Or(3799).String(), "10.0.0.1:3799", "listen")
	testkit.Equal(t, c.AAA.Name, "{mac}", "name")
	text, err := json.Marshal(c.RADIUS)
	testkit.Must(t, err)
	for _, printed := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v", c.RADIUS, c.AAA), string(text)} {
		testkit.ErrorIf(t, strings.Contains(printed, "hush"), "a secret was printed: %s", printed)
	}
}

func TestRefusedRADIUS(t *testing.T) {
	server := func(fields string) string {
		return base + "radius:\n  servers: [{address: 10.0.0.9, " + fields + "}]\n"
	}
	coa := func(fields string) string { return base + "radius:\n  coa: {" + fields + "}\n" }
	aaa := func(fields string) string { return base + "aaa: {" + fields + "}\n" }
	hash := func(text string) string { return aaa("users: [{name: a, password_hash: '" + text + "'}]") }
	for _, row := range []struct{ text, want string }{
		{server("port: 1812"), "radius.servers[0].secret: missing"},
		{server("secret: a, secret_file: b"), "given beside secret"},
		{server("tls: {ca: x}"), "certificates on both sides"},
		{server("tls: {ca: x, certificate: y}"), "key: missing"},
		{server("tls: {certificate: y, key: z}"), "given without ca"},
		{server("secret: a, source: \"2001:db8::1\""), "different families"},
		{server("secret: a, tries: 0"), "not between 1 and 10"},
		{server("secret: a, message_authenticator: never"), "none of required, anywhere, optional"},
		{server("secret: a}, {address: 10.0.0.9, secret: b"), "is that of the server in line"},
		{base + "radius: {nas: {identifier: \"\"}, servers: [{address: 10.0.0.9, secret: a}]}\n",
			"RADIUS needs one of them"},
		{coa("listen: [10.0.0.1]"), "nobody could use listen"},
		{coa("clients: [{address: 10.0.0.9}]"), "either secret or secret_file"},
		{coa("clients: [{address: 10.0.0.9/24, secret: a}]"), "bits behind its length"},
		{coa("listen: [10.0.0.1, 10.0.0.1], clients: [{address: 10.0.0.9, secret: a}]"), "there twice"},
		{coa("listen: [0.0.0.0], clients: [{address: 10.0.0.9, secret: a}]"), "no single address"},
		{aaa("methods: [radius]"), "radius.servers has none"},
		{aaa("methods: [local]"), "neither users nor users_file"},
		{aaa("methods: [accept, local], users: [{name: a}]"), "leaves nothing to it"},
		{aaa("methods: [accept, accept]"), "there twice"},
		{aaa("name: \"{slot}\""), "{slot is none of"},
		{aaa("name: \"{mac\""), "is none of"},
		{aaa("name: \"\""), "no user without a name"},
		{aaa("users: [{name: a}, {name: a}]"), "is that of the user in line"},
		{aaa("users: [{name: a, nt_password_hash: 12}]"), "32 hexadecimal digits"},
		{aaa("users: [{name: a, password_hash: md5}]"), "neither argon2id nor bcrypt"},
		{hash("$argon2id$x"), "is not $argon2id$v=19"}, {hash("$argon2id$v=19$m=1,t=1$a$b"), "is not $argon2id$v=19"},
		{hash("$argon2id$v=18$m=64,t=1,p=1$c2l4dGVlbg$c2l4dGVlbg"), "is not $argon2id$v=19"},
		{hash("$argon2id$v=19$m=9999999,t=1,p=1$c2l4dGVlbmJ5dGVzLi4u$c2l4dGVlbmJ5dGVzLi4uLi4u"), "at most m=262144"},
		{hash("$2y$10$short"), "no hash of bcrypt"},
		{hash("$2y$31$abcdefghijklmnopqrstuuJc0z0gWn8vqUj1LBjBGXnuGqBUX8v0e"), "cost may be 15 at most"},
		{aaa("users: [{name: a, ipv4: \"2001:db8::1\"}]"), "no IPv4 address"},
		{aaa("users: [{name: a, delegated: 2001:db8::1/56}]"), "no IPv6 network"},
	} {
		_, err := Parse("x.yaml", []byte(row.text))
		testkit.Refused(t, err, row.want)
	}
}

func TestFileOfUsers(t *testing.T) {
	users, err := parseUsers("u",
		[]byte("- {name: a, password: b}\n- {name: c, nt_password_hash: 8846f7eaee8fb117ad06bdd830b7586c}\n"), nil)
	testkit.Must(t, err)
	testkit.Equal(t, len(users), 2, "users")
	for _, row := range []struct{ text, want string }{
		{"- {name: a}\n- {name: a}\n", "u:2: "}, {"- {nam: a}\n", "unknown key"}, {"", "the file is empty"},
		{"x: y", "needs a list"},
	} {
		_, err := parseUsers("u", []byte(row.text), nil)
		testkit.Refused(t, err, row.want)
	}
}

// A text is shown without its secrets, wherever they are, is read by who looks at it, and cannot be applied.
func TestShown(t *testing.T) {
	text := base + `radius: # a comment of hush
  # servers: [{address: 10.0.0.9, secret: hush}]
  servers: [{address: 10.0.0.9, secret: &s hush}, {address: 10.0.0.8, secret: *s, use: accounting}]
  coa: {clients: [{address: 10.0.0.9, secret: "hush"}]} # secret: hush
aaa:
  password: hush
  users: [{name: a, nt_password_hash: 8846f7eaee8fb117ad06bdd830b7586c}, {name: b, password: 'hush'}]
`
	mustParse(t, text)
	shown, err := Shown([]byte(text))
	testkit.Must(t, err)
	for _, secret := range []string{"hush", "8846f7"} {
		testkit.ErrorIf(t, strings.Contains(string(shown), secret), "%s", shown)
	}
	testkit.ErrorIf(t, !strings.Contains(string(shown), "name: b"), "%s", shown)
	_, err = ParseShown("x", shown)
	testkit.Must(t, err)
	_, err = Parse("x", shown)
	testkit.Refused(t, err, "secret: is what we show in place of a secret")
	testkit.Refused(t, err, "nt_password_hash: is what we show")
	same, err := Shown([]byte(base))
	testkit.Must(t, err)
	testkit.Equal(t, string(same), base, "a text without secrets")
	for _, comment := range []string{"# password: hush\n", "\n\n  # password: hush"} {
		shown, err = Shown([]byte(base + comment))
		testkit.Must(t, err)
		testkit.ErrorIf(t, strings.Contains(string(shown), "hush"), "%s", shown)
		_, err = Parse("x", shown)
		testkit.Must(t, err)
	}
}

// Nothing is left of secrets, users, comments, and of what is not known to be none, in a good file or a bad one.
func TestRedacted(t *testing.T) {
	text := `# password: hush1
access: # hush2
  # hush3
  profiles: [{name: home, redirect: "http://bob:hush4@pay.test/"}]
  api_token: hush5
aaa: {password: hush6, users: [{name: hush7, password: [hush8], profile: home}, {name: u, hash: hush9}, hush10]}
pools: [{name: homes, reservations: {user: hush12, address: 10.0.0.9}}, {reservations: [{circuit: hush13}]}]
instances: {qfi_dscp: {1: 7}, hush14: {x: y}}
radius: hush15
`
	out, err := Redacted([]byte(text), func(name string) string { return "N" + strings.TrimPrefix(name, "hush") })
	testkit.Must(t, err)
	kept := string(out)
	testkit.ErrorIf(t, strings.Contains(kept, "hush"), "%s", out)
	for _, want := range []string{"name: N7", "user: N12", "circuit: N13", "http://REMOVED@pay.test/",
		"name: homes", "profile: home", "1: 7"} {
		testkit.ErrorIf(t, !strings.Contains(kept, want), "%q is lost in\n%s", want, out)
	}
	_, err = Redacted([]byte("a: [secret"), strings.ToUpper)
	testkit.ErrorIf(t, err == nil, "no YAML is read")
}
