// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"cmp"
	"fmt"

	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
)

const (
	portAuthentication = 1812
	portAccounting     = 1813
	portTLS            = 2083
)

// servers makes a client's servers of the configuration: all but those of one use.
func servers(r *config.RADIUS, not string) (list []radius.ServerConfig, err error) {
	for i := range r.Servers {
		one := radius.ServerConfig{RADIUSServer: r.Servers[i]}
		if one.Use == not {
			continue
		}
		one.Name, one.Port = cmp.Or(one.Name, config.Name(one.Address.String())), port(&r.Servers[i], not)
		one.Use, one.AcctPort = "", 0 // another use's change does not count
		if one.Secret, err = secretOf(one.Secret, one.SecretFile, one.TLS.On()); err == nil && one.TLS.On() {
			one.Security, err = security(&one.RADIUSServer)
		}
		if err != nil {
			return nil, fmt.Errorf("RADIUS server %s: %w", one.Name, err)
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

func secretOf(secret config.Secret, file string, tls bool) (config.Secret, error) {
	b, err := config.Load(secret, file)
	if err == nil && len(b) == 0 {
		if !tls {
			return "", errSecret
		}
		return "radsec", nil // RFC 6614 §2.3
	}
	return config.Secret(b), err
}

// security reads the certificates of a server. Their contents are compared, so that a new file takes effect.
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
