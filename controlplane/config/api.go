// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
)

// APIPort is where the API listens when an address has no port.
const APIPort = 9443

// API is the control plane's HTTP API by TCP; by the Unix socket it is always there.
type API struct {
	At          `yaml:""`
	Listen      []Collector `yaml:"listen" maxlen:"8" doc:"Addresses, port 9443 or as given."`
	TLS         string      `yaml:"tls" default:"on" enum:"on|off" doc:"off: on loopback addresses alone."`
	Certificate string      `yaml:"certificate" max:"255" with:"key" file:"true" doc:"PEM file; absent: we make one."`
	Key         string      `yaml:"key" max:"255" with:"certificate" file:"true" doc:"PEM file."`
	Hosts       []string    `yaml:"hosts" maxlen:"16" doc:"Further names of ours, for browsers."`
	Anonymous   string      `yaml:"anonymous" default:"none" enum:"none|read" doc:"Loopback clients, tokenless."`
	Tokens      []Token     `yaml:"tokens" maxlen:"64" doc:"Who may do what (isthmus token make)."`
}

// Token is a secret of a client, of which we know the hash.
type Token struct {
	At     `yaml:""`
	Name   Name   `yaml:"name" req:"true" doc:"What logs call who has it."`
	Role   string `yaml:"role" req:"true" enum:"read|operate" doc:"operate: change things, too."`
	SHA256 Hash   `yaml:"sha256" req:"true" doc:"SHA-256 of the token, 64 hexadecimal digits."`
}

// Hash is a SHA-256 sum.
type Hash [sha256.Size]byte

func (h *Hash) UnmarshalText(b []byte) error {
	sum, err := hex.DecodeString(string(b))
	if err != nil || len(sum) != len(h) {
		return errors.New("is not 64 hexadecimal digits")
	}
	*h = Hash(sum)
	return nil
}

func (h Hash) schema() map[string]any {
	return map[string]any{"type": "string", "maxLength": 2 * len(h)}
}

// Addresses are those to listen on.
func (p *API) Addresses() (list []netip.AddrPort) {
	for _, l := range p.Listen {
		list = append(list, l.Or(APIPort))
	}
	return list
}

// Static is what is in effect when the control plane is started again; the rest is so at once.
func (p *API) Static() string { return fmt.Sprint(p.Addresses(), p.TLS, p.Certificate, p.Key) }

func (p *API) check(k *checker) {
	seen := map[netip.AddrPort]Line{}
	for _, a := range p.Addresses() {
		once(k, p.At, "listen", seen, a, "%s is there twice, line %d", a)
		if p.TLS == "off" && !a.Addr().IsLoopback() {
			k.fail(p.At, "tls", "off, but %s can be reached from other machines", a)
		}
	}
	named(k, p.Tokens, "name", func(t *Token) (Name, At) { return t.Name, t.At })
	hashes := map[Hash]Line{}
	for i := range p.Tokens {
		t := &p.Tokens[i]
		once(k, t.At, "sha256", hashes, t.SHA256, "is that of the token in line %d")
	}
	if len(p.Listen) > 0 && len(p.Tokens) == 0 && p.Anonymous == "none" {
		k.fail(p.At, "tokens", "missing: nobody could use listen; isthmus token make NAME --role read")
	}
}

func (c *Control) check(k *checker) {
	c.API.check(k)
	if c.Page && len(c.API.Listen) == 0 {
		k.fail(c.At, "page", "needs an address in control.api.listen")
	}
}
