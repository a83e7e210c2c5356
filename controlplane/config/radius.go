// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// RADIUS is the servers that know subscribers, and those that may change sessions.
type RADIUS struct {
	At         `yaml:""`
	NAS        NAS            `yaml:"nas" doc:"What we are called."`
	Servers    []RADIUSServer `yaml:"servers" maxlen:"32" doc:"Asked by priority."`
	CoA        CoA            `yaml:"coa" doc:"Changes and disconnections by servers (RFC 5176)."`
	Accounting Accounting     `yaml:"accounting" doc:"How sessions are accounted."`
}

// NAS is who we are to RADIUS.
type NAS struct {
	At         `yaml:""`
	Identifier string  `yaml:"identifier" default:"isthmus" max:"253" doc:"NAS-Identifier."`
	Address    Address `yaml:"address" doc:"NAS-IP-Address or NAS-IPv6-Address."`
}

// RADIUSServer is one server, or one of several that stand for each other.
type RADIUSServer struct {
	At         `yaml:""`
	Name       Name          `yaml:"name" doc:"In show radius; absent: the address."`
	Address    Address       `yaml:"address" req:"true" doc:"Its address."`
	Port       uint16        `yaml:"port" doc:"0: 1812, over TLS 2083."`
	AcctPort   uint16        `yaml:"accounting_port" doc:"0: 1813, over TLS 2083."`
	Use        string        `yaml:"use" default:"both" enum:"both|authentication|accounting" doc:"What it is asked for."`
	Secret     Secret        `yaml:"secret" max:"128" doc:"Absent, over TLS: radsec (RFC 6614)."`
	SecretFile string        `yaml:"secret_file" max:"255" file:"true" doc:"File with the secret in its first line."`
	TLS        PeerTLS       `yaml:"tls" doc:"TLS in place of UDP (RFC 6614)."`
	Source     Address       `yaml:"source" doc:"Our address; absent: the kernel's choice."`
	Timeout    time.Duration `yaml:"timeout_ms" unit:"ms" default:"2000" min:"10" max:"60000" doc:"Doubles, up to 16 s."`
	Tries      uint8         `yaml:"tries" default:"3" min:"1" max:"10" doc:"Of one request."`
	DeadTime   time.Duration `yaml:"dead_time" default:"30" min:"1" max:"3600" doc:"Seconds, or until it answers."`
	Probe      time.Duration `yaml:"status" default:"2" max:"3600" doc:"Seconds between Status-Server; 0: none."`
	Priority   uint8         `yaml:"priority" default:"1" doc:"Lower ones first, equal ones in turn."`
	Policy     string        `yaml:"message_authenticator" default:"required" enum:"required|anywhere|optional" doc:"Of answers. required: first and right; anywhere: right; optional: right or absent, which can be forged (CVE-2024-3596)."`
	Sockets    uint8         `yaml:"sockets" default:"8" min:"1" max:"64" doc:"Each for 256 requests at a time."`
	Queue      uint32        `yaml:"queue" default:"4096" max:"1048576" doc:"Requests that wait for them."`
}

// PeerTLS is TLS 1.2 or later with certificates on both sides.
type PeerTLS struct {
	At          `yaml:""`
	CA          string `yaml:"ca" max:"255" file:"true" doc:"PEM file: who signs the server's certificate."`
	Certificate string `yaml:"certificate" max:"255" with:"ca" file:"true" doc:"PEM file of ours."`
	Key         string `yaml:"key" max:"255" with:"certificate" file:"true" doc:"PEM file."`
	Name        string `yaml:"name" max:"253" with:"ca" doc:"In its certificate; absent: its address."`
}

// On: it is configured.
func (t *PeerTLS) On() bool { return t.CA != "" }

// CoA is the server side of RFC 5176.
type CoA struct {
	At           `yaml:""`
	Listen       []Collector   `yaml:"listen" maxlen:"8" doc:"Our addresses, port 3799 or as given."`
	Clients      []CoAClient   `yaml:"clients" maxlen:"64" doc:"Who may send requests."`
	ReplayWindow time.Duration `yaml:"replay_window" default:"300" min:"1" max:"3600" doc:"Seconds."`
	Timestamp    string        `yaml:"event_timestamp" default:"required" enum:"required|optional" doc:"Of requests; optional allows replays."`
	Rate         uint32        `yaml:"rate" default:"1000" min:"1" max:"1000000" doc:"A second and client."`
}

// CoAClient is who may send CoA-Request and Disconnect-Request.
type CoAClient struct {
	At         `yaml:""`
	Address    Prefix `yaml:"address" req:"true" doc:"Address or prefix."`
	Secret     Secret `yaml:"secret" max:"128" doc:"Shared secret."`
	SecretFile string `yaml:"secret_file" max:"255" file:"true" doc:"File with the secret in its first line."`
	Policy     string `yaml:"message_authenticator" default:"optional" enum:"required|optional" doc:"Of requests."`
}

// Accounting is how and how patiently.
type Accounting struct {
	At    `yaml:""`
	Queue uint32 `yaml:"queue" default:"262144" min:"16" max:"16777216" doc:"Records that wait for a server, over a boot too."`
	Drain uint32 `yaml:"drain" default:"1000" min:"1" max:"1000000" doc:"Late records a second."`
}

// AAA is who decides whether a subscriber is let in.
type AAA struct {
	At        `yaml:""`
	Methods   []string `yaml:"methods" default:"[accept]" enum:"local|radius|accept" maxlen:"3" doc:"In turn. local: decides on names that it knows; radius: passed over while no server answers; accept: lets all in."`
	Name      string   `yaml:"name" default:"'{mac}'" max:"253" doc:"User name of who gives none."`
	Password  Secret   `yaml:"password" max:"128" doc:"Its password; absent: the user name."`
	Users     []User   `yaml:"users" maxlen:"1048576" doc:"Users of the method local."`
	UsersFile string   `yaml:"users_file" max:"255" file:"true" doc:"File with more: a list, as in users."`
}

// User is one of the method local.
type User struct {
	At        `yaml:""`
	Name      string   `yaml:"name" req:"true" max:"253" private:"true" doc:"User name."`
	Password  Secret   `yaml:"password" max:"128" doc:"Serves PAP, CHAP and MS-CHAPv2."`
	Hash      Secret   `yaml:"password_hash" max:"255" doc:"argon2id or bcrypt: serves PAP."`
	NTHash    Secret   `yaml:"nt_password_hash" max:"32" doc:"Serves PAP and MS-CHAPv2."`
	Profile   Name     `yaml:"profile" doc:"Absent: the default one."`
	IPv4      Address  `yaml:"ipv4" doc:"Absent: of the pool."`
	IPv6      Prefix   `yaml:"ipv6" doc:"Absent: of the pool."`
	Delegated Prefix   `yaml:"delegated" doc:"Absent: of the pool."`
	Routes    []Prefix `yaml:"framed_routes" maxlen:"15" doc:"Networks behind it; absent: the profile's."`
}

// ReadUsers are the users of the method local: those of the configuration and those of its file. What is wrong in the
// file is said without its contents.
func (a *AAA) ReadUsers() ([]User, error) {
	if a.UsersFile == "" {
		return a.Users, nil
	}
	data, err := ReadFile(a.UsersFile)
	if err != nil {
		return nil, err
	}
	return parseUsers(a.UsersFile, data, a.Users)
}

// parseUsers reads a file of users beside those that are known.
func parseUsers(file string, data []byte, known []User) ([]User, error) {
	d := &decoder{file: file, closed: true}
	var users []User
	if root := d.tree(data); root != nil {
		d.value(root, reflect.ValueOf(&users).Elem(), "", `maxlen:"1048576"`)
	}
	k := &checker{file: file, errs: d.errs, closed: true}
	if k.errs.result() == nil {
		checkUsers(k, users)
		names := make(map[string]bool, len(known))
		for i := range known {
			names[known[i].Name] = true
		}
		for i := range users {
			if names[users[i].Name] {
				k.fail(users[i].At, "name", "is that of a user in aaa.users")
			}
		}
	}
	return slices.Concat(known, users), k.errs.result()
}

func (r *RADIUS) check(k *checker) {
	seen := map[string]Line{}
	names := map[Name]Line{}
	for i := range r.Servers {
		s := &r.Servers[i]
		s.check(k)
		once(k, s.At, "address", seen, fmt.Sprint(s.Address, s.Port, s.AcctPort, s.Use),
			"is that of the server in line %d")
		if s.Name != "" {
			once(k, s.At, "name", names, s.Name, "is that of the server in line %d")
		}
	}
	if r.NAS.Identifier == "" && !r.NAS.Address.IsValid() && len(r.Servers) > 0 {
		k.fail(r.NAS.At, "identifier",
			"missing, and so is address: RADIUS needs one of them (RFC 2865 section 4.1)")
	}
	r.CoA.check(k)
}

func (s *RADIUSServer) check(k *checker) {
	k.given(s.At, "secret", s.Secret)
	switch {
	case s.Secret != "" && s.SecretFile != "":
		k.fail(s.At, "secret_file", "given beside secret")
	case s.Secret == "" && s.SecretFile == "" && !s.TLS.On():
		k.fail(s.At, "secret", "missing")
	}
	if s.TLS.On() && s.TLS.Certificate == "" {
		k.fail(s.TLS.At, "certificate", "missing: RFC 6614 wants certificates on both sides")
	}
	if s.TLS.Certificate != "" && s.TLS.Key == "" {
		k.fail(s.TLS.At, "key", "missing")
	}
	if s.Source.IsValid() && s.Source.Is4() != s.Address.Is4() {
		k.fail(s.At, "source", "%s and address %s are of different families", s.Source, s.Address)
	}
}

func (c *CoA) check(k *checker) {
	if len(c.Listen) > 0 && len(c.Clients) == 0 {
		k.fail(c.At, "clients", "missing: nobody could use listen")
	}
	seen := map[netip.AddrPort]Line{}
	for _, l := range c.Listen {
		once(k, c.At, "listen", seen, l.Or(3799), "%s is there twice, line %d", l.Or(3799))
		if l.Addr().IsUnspecified() {
			k.fail(c.At, "listen",
				"%s is no single address: an answer leaves from where the request came to", l.Addr())
		}
	}
	prefixes := map[netip.Prefix]Line{}
	for i := range c.Clients {
		one := &c.Clients[i]
		k.given(one.At, "secret", one.Secret)
		if (one.Secret == "") == (one.SecretFile == "") {
			k.fail(one.At, "secret", "give either secret or secret_file")
		}
		if one.Address.hostBits() {
			k.fail(one.At, "address", "%s has bits behind its length", one.Address)
		}
		once(k, one.At, "address", prefixes, one.Address.Prefix, "is that of the client in line %d")
	}
}

// nameFields are what a template of user names may have.
const nameFields = "{port} {svlan} {cvlan} {mac} {circuit} {remote} {host}"

func (a *AAA) check(k *checker) {
	k.given(a.At, "password", a.Password)
	methods := map[string]Line{}
	for i, m := range a.Methods {
		once(k, a.At, "methods", methods, m, "%s is there twice, line %d", m)
		if m == "accept" && i < len(a.Methods)-1 {
			k.fail(a.At, "methods", "%s comes after accept, which leaves nothing to it", a.Methods[i+1])
		}
	}
	if _, ok := methods["radius"]; ok && !k.RADIUS.Authenticates() {
		k.fail(a.At, "methods", "radius, but radius.servers has none for authentication")
	}
	if _, ok := methods["local"]; ok && len(a.Users) == 0 && a.UsersFile == "" {
		k.fail(a.At, "methods", "local, but there are neither users nor users_file")
	}
	for rest := a.Name; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		word, tail, closed := strings.Cut(after, "}")
		if !closed || !strings.Contains(nameFields, "{"+word+"}") {
			k.fail(a.At, "name", "{%s is none of %s", clip(word), nameFields)
			break
		}
		rest = tail
	}
	if a.Name == "" {
		k.fail(a.At, "name", "empty: RADIUS has no user without a name")
	}
	checkUsers(k, a.Users)
}

// Authenticates: a server is configured for authentication.
func (r *RADIUS) Authenticates() bool {
	return slices.ContainsFunc(r.Servers, func(s RADIUSServer) bool { return s.Use != "accounting" })
}

func checkUsers(k *checker, list []User) {
	seen := map[string]Line{}
	for i := range list {
		u := &list[i]
		once(k, u.At, "name", seen, u.Name, "is that of the user in line %d")
		if u.Name == "" {
			k.fail(u.At, "name", "empty")
		}
		k.given(u.At, "password", u.Password)
		k.given(u.At, "password_hash", u.Hash)
		k.given(u.At, "nt_password_hash", u.NTHash)
		if u.Hash != "" && u.Hash != Hidden {
			if err := checkHash(u.Hash); err != nil {
				k.errs.say(k.file, u.Line("password_hash"), u.Path("password_hash"), err.Error(), nil) // quotes nothing
			}
		}
		if b, err := hex.DecodeString(string(u.NTHash)); u.NTHash != "" && u.NTHash != Hidden &&
			(err != nil || len(b) != 16) {
			k.fail(u.At, "nt_password_hash", "is not 32 hexadecimal digits")
		}
		if u.IPv4.IsValid() && !u.IPv4.Is4() {
			k.fail(u.At, "ipv4", "%s is no IPv4 address", u.IPv4)
		}
		k.framedRoutes(u.At, u.Routes)
		for key, p := range map[string]Prefix{"ipv6": u.IPv6, "delegated": u.Delegated} {
			if p.IsValid() && (!p.Addr().Is6() || p.hostBits()) {
				k.fail(u.At, key, "%s is no IPv6 network", p)
			}
		}
	}
}
