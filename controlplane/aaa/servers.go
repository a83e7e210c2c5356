// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
)

const (
	portAuthentication = 1812
	portAccounting     = 1813
	portTLS            = 2083
)

var policies = map[string]radius.Policy{"required": radius.First, "anywhere": radius.Anywhere,
	"optional": radius.Optional}

// servers makes a client's servers of the configuration: all but those of one use.
func servers(r *config.RADIUS, not string) (list []radius.ServerConfig, err error) {
	for i := range r.Servers {
		s := &r.Servers[i]
		if s.Use == not {
			continue
		}
		name := cmp.Or(string(s.Name), s.Address.String())
		one := radius.ServerConfig{Name: name, Address: netip.AddrPortFrom(s.Address.Addr, port(s, not)),
			Source:  s.Source.Addr,
			Timeout: time.Duration(s.TimeoutMS) * time.Millisecond, Tries: int(s.Tries),
			Priority: int(s.Priority),
			DeadTime: time.Duration(s.DeadTime) * time.Second, Probe: time.Duration(s.Status) * time.Second,
			Policy: policies[s.Policy], Sockets: int(s.Sockets), Queue: int(s.Queue)}
		if one.Secret, err = secretOf(s.Secret, s.SecretFile, s.TLS.On()); err != nil {
			return nil, fmt.Errorf("RADIUS server %s: %w", name, err)
		}
		if s.TLS.On() {
			if one.Security, err = security(s); err != nil {
				return nil, fmt.Errorf("RADIUS server %s: %w", name, err)
			}
		}
		list = append(list, one)
	}
	return list, nil
}

func port(s *config.RADIUSServer, not string) uint16 {
	p, usual := s.Port, uint16(portAuthentication)
	if not == "authentication" {
		p, usual = s.AcctPort, portAccounting
	}
	if s.TLS.On() {
		usual = portTLS
	}
	if p == 0 {
		p = usual
	}
	return p
}

func secretOf(secret config.Secret, file string, tls bool) ([]byte, error) {
	b, err := config.Load(secret, file)
	if err == nil && len(b) == 0 {
		if !tls {
			return nil, errSecret
		}
		b = []byte("radsec") // RFC 6614 §2.3
	}
	return b, err
}

// security reads the certificates of a server. They are compared by what was read, so that a new one on disk takes
// effect.
func security(s *config.RADIUSServer) (*radius.Security, error) {
	made := &radius.Security{Name: cmp.Or(s.TLS.Name, s.Address.String())}
	for _, one := range []struct {
		key, file string
		into      *[]byte
	}{
		{"ca", s.TLS.CA, &made.CA},
		{"certificate", s.TLS.Certificate, &made.Certificate},
		{"key", s.TLS.Key, &made.Key},
	} {
		data, err := config.ReadFile(one.file)
		if err != nil {
			return nil, fmt.Errorf("tls.%s: %w", one.key, err)
		}
		*one.into = data
	}
	return made, nil
}
